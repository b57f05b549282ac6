"""Explainers as models of MLflow: saved, logged, and loaded as its ``pyfunc``, which serves them by REST and in Spark."""

import warnings
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from ..arguments.readers import shorten
from ..errors import UnsupportedModel, UsageError
from ..extras import needing
from ..models.sklearn.loader import find_kinds, unwrap
from ..stores import storage
from .recipe import Asked, Served, answer, open_explainer, write_explainer

LOADER = "leafledger.mlflow"  # module that MLflow imports to load a model, in a checkout as in a wheel
FOLDER = "explainer"  # below MLflow's "data"
EXAMPLE_ROWS = 5
PIPELINE = (
    "a Pipeline's steps have no file without a pickle; save it by mlflow.sklearn.save_model, and serve "
    "leafledger.prepare(mlflow.sklearn.load_model(uri)) by a pyfunc of your own, or save the explainer of its last step, model[-1], with "
    "partition=leafledger.encoder_groups(model), and give it model[:-1].transform(rows)"
)


class ServedExplainer:
    """What ``mlflow.pyfunc.load_model`` returns a wrapper of: ``predict(frame)`` gives a frame with a row for every row."""

    def __init__(self, folder: Path) -> None:
        self.served = open_explainer(folder)

    def predict(self, rows: Any, params: Any = None) -> Any:
        """Explain rows.

        Parameters
        ----------
        rows : pandas.DataFrame
            Columns as in the model's signature.
        params : dict, optional
            MLflow's; there are none.

        Returns
        -------
        pandas.DataFrame
            See `leafledger.mlflow.save_explainer`.
        """
        if params:
            raise UsageError(f"params are {shorten(params)}, expected none: how rows are explained was said when the explainer was logged")
        return answer(self.served, rows).to_pandas().set_axis(rows.index)


def _load_pyfunc(path: str) -> ServedExplainer:
    """Load an explainer for MLflow, by this name."""
    return ServedExplainer(Path(path))


def _take_example(example: Any, background: Any) -> Any:
    """Take the first rows as a pandas frame, categories by their values, since MLflow's signatures have no categories."""
    import pandas as pd

    given = background if example is None else example
    if given is None or isinstance(given, str):
        raise UsageError("example is missing, expected some rows, a data frame or Arrow table: their names and types become the model's signature")
    if not isinstance(given, pd.DataFrame | pa.Table):
        raise UsageError(f"example is {shorten(given)}, expected a pandas data frame or an Arrow table")
    frame = (given.to_pandas() if isinstance(given, pa.Table) else given).head(EXAMPLE_ROWS).reset_index(drop=True).rename(columns=str)
    return frame.astype({name: object for name, dtype in frame.dtypes.items() if isinstance(dtype, pd.CategoricalDtype)})


def _describe(served: Served, example: Any) -> dict[str, Any]:
    """What MLmodel says of the explainer, for people and programs that read no recipe."""
    recipe, found = served.recipe, served.explainer(example)
    base = found.base.reshape(-1).tolist() if found.base.ndim == 1 else None
    said = {"version": recipe.leafledger, "method": recipe.method, "game": recipe.game, "outputs": [*found.outputs], "base": base}
    return {"leafledger": said | {"library": recipe.library, "model": recipe.digest}}


def _saved(save: Any, model: Any, method: str, example: Any, background: Any, requirements: Any, answered: tuple[Any, Any, Any], asked: Any) -> Any:
    """Write an explainer, explain the example, and let MLflow save the folder."""
    if "Pipeline" in find_kinds(unwrap(model)):
        raise UnsupportedModel(PIPELINE)
    with needing("an explainer in MLflow", "mlflow"):
        from mlflow.models import infer_signature
    rows = _take_example(example, background)
    with storage.scratch() as above:
        folder = above / FOLDER
        folder.mkdir()
        served = write_explainer(folder, model, method, background, *answered, asked)
        named = {*served.explainer(rows).features, *served.recipe.ids}
        rows = rows[[name for name in rows.columns if name in named]]  # what the signature then asks for
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Hint: Inferred schema contains integer")  # which the docstring says
            signature = infer_signature(rows, answer(served, rows).to_pandas())
        return save(
            loader_module=LOADER,
            data_path=str(folder),
            signature=signature,
            input_example=rows,
            pip_requirements=[f"leafledger[mlflow]=={version('leafledger')}"] if requirements is None else requirements,
            metadata=_describe(served, rows),
        )


def save_explainer(
    model: Any,
    path: str | PathLike,
    method: str = "shapley",
    *,
    example: Any = None,
    background: Any = None,
    ids: Any = (),
    top: int | None = None,
    reasons: Any = None,
    pip_requirements: Any = None,
    **asked: Unpack[Asked],
) -> None:
    """Save an explainer as a model of MLflow, a ``pyfunc`` without a pickle: the model's file, background, tables, and a recipe in JSON.

    Parameters
    ----------
    model : Model, str, path or model object
        What is explained, as `leafledger.prepare` takes it, but no Pipeline.
    path : str or path
        Of the folder, which must not be there yet.
    method : str
        One of `METHODS`.
    example : data frame or Arrow table, optional
        Rows as they will come; of the first five the model's columns and the ids are kept. Their names and types become the signature, so that a
        column of integers takes no missing values later. By default the background.
    background : data frame, Arrow table, array or "model", optional
        As `leafledger.prepare` takes it. Its rows are kept beside the model.
    ids : str or sequence of str
        Columns of the rows that come first in the answer.
    top : int, optional
        Answer with so many of the largest attributions of a row, as columns ``feature_1``, ``phi_1``, ``value_1``, …, where the model has one output
        or `output` names one. By default with all: the columns of `Attributions.to_arrow`.
    reasons : mapping, str or path, optional
        Answer with reasons in words, as columns ``code_1``, ``reason_1``, …: a reasons file, as
        `leafledger.explain` takes it.
    pip_requirements : list of str, optional
        What MLflow installs where it makes an environment; by default this version of leafledger with its extra ``mlflow``.
    **asked : Asked
        ``parameters``, ``partition``, ``interactions``, ``order``, ``index``, ``combinations``, ``background_errors``, ``allow_unseen``, ``output``
        and ``space``, as `leafledger.prepare` takes them.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """

    def save(**given: Any) -> None:
        from mlflow import pyfunc

        pyfunc.save_model(str(path), **given)

    _saved(save, model, method, example, background, pip_requirements, (ids, top, reasons), asked)


def log_explainer(
    model: Any,
    name: str = "explainer",
    method: str = "shapley",
    *,
    example: Any = None,
    background: Any = None,
    ids: Any = (),
    top: int | None = None,
    reasons: Any = None,
    pip_requirements: Any = None,
    registered_model_name: str | None = None,
    **asked: Unpack[Asked],
) -> Any:
    """Log an explainer in MLflow, in the active run or one of its own, see `save_explainer`.

    Parameters
    ----------
    model : Model, str, path or model object
        As `save_explainer` takes it.
    name : str
        Of the logged model.
    method : str
        As `save_explainer` takes it.
    example : data frame or Arrow table, optional
        As `save_explainer` takes it.
    background : data frame, Arrow table, array or "model", optional
        As `save_explainer` takes it.
    ids : str or sequence of str
        As `save_explainer` takes it.
    top : int, optional
        As `save_explainer` takes it.
    reasons : mapping, str or path, optional
        As `save_explainer` takes it.
    pip_requirements : list of str, optional
        As `save_explainer` takes it.
    registered_model_name : str, optional
        Also register it by this name.
    **asked : Asked
        As `save_explainer` takes it.

    Returns
    -------
    mlflow.models.model.ModelInfo
        What MLflow says of it; ``model_uri`` is in it.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """

    def save(**given: Any) -> Any:
        from mlflow import pyfunc

        return pyfunc.log_model(name=name, registered_model_name=registered_model_name, **given)

    return _saved(save, model, method, example, background, pip_requirements, (ids, top, reasons), asked)
