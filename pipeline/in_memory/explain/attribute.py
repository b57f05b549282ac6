"""The function ``attribute``: attributions of rows in memory, on all cores."""

from collections.abc import Mapping
from typing import Any

from ...arguments.choices import CPU, MARGIN, SHARED, Device, Space
from ...dataset.columns.partition import Partition
from ...models import load_ensemble
from ...models.model import Model
from ...models.row_output import choose_among, read_row_output
from ..rows.dask_frames import is_dask
from ..rows.given_rows import spell_features
from .attributions import Attributions
from .encoded import follow
from .explainer import Explainer, say_prepare
from .question import ask


def attribute(
    model: Model | Any,
    rows: Any,
    method: str = "shapley",
    *,
    parameters: Mapping[str, Any] | None = None,
    partition: Partition | None = None,
    interactions: int | str | None = None,
    order: int | None = None,
    index: str | None = None,
    combinations: str = SHARED,
    background: Any = None,
    background_errors: bool = False,
    label: Any = None,
    weight: Any = None,
    allow_unseen: bool = False,
    output: str | int | None = None,
    space: Space = MARGIN,
    device: Device = CPU,
) -> Attributions:
    """Attribute every row's margin, or prediction, to the features, or to groups of them.

    Parameters
    ----------
    model : Model, str, path or model object
        A loaded model, or whatever `load_ensemble` takes. Or a fitted Pipeline of scikit-learn whose last step is such a model: rows, and a
        background, are as its first step takes them, and attributions are of their columns.
    rows : data frame, Arrow table, array, dict or list of dicts
        Features by name, or in their order where the model has no names, categories as values; or an (n, features) matrix, categories as the library
        takes them there: values for scikit-learn and CatBoost, codes for XGBoost and LightGBM. A dict holds columns, or the values of one row. NaN,
        None or null where missing.
    method : str
        One of `METHODS`.
    parameters : mapping, optional
        Parameters of the method by name, such as ``{"p": 0.3}``.
    partition : mapping, str or path, optional
        Groups of features, group -> features by name or position, or a JSON file of such an object; others are groups of their own. Values are the
        groups', with methods "owen", "two_step" and "asymmetric" the features' within their groups.
    interactions : int or "all", optional
        Also the interactions of every two features or groups: of how many pairs of a row and output, the largest by magnitude, or of all; those of
        the other pairs are 0.
    order : int, optional
        Interactions of sets of up to so many features or groups, single ones too, in the place of pairs.
    index : str, optional
        Which interaction index of sets: "SII", "k-SII", "STII", "FSII", "BII", "FBII", "Moebius" or "Co-Moebius"; by default "k-SII". Methods other
        than "shapley" weigh sets by their own measure.
    combinations : "shared" or "own"
        What several features do together through one number, as CatBoost's target statistics of combinations: shared equally among them, or players
        of their own, called as ``city×job``.
    background : data frame, Arrow table, array or "model", optional
        Rows, like `rows`, whose values absent features take, averaged over all of them (the marginal game), or "model" for those behind the model's
        own leaf weights, where its trees are symmetric. By default features are averaged over the trees' own covers (the path-dependent game).
        Methods "gap" and "gap_greedy" measure perturbations on them.
    background_errors : bool
        How sure are values, if the background is a sample of the rows that it stands for? Also estimate standard errors, which takes about twenty
        times as long.
    label : array or str, optional
        What the model predicts, (n,) numbers, NaN where it is missing, or the name of a column of the rows; for method "r2" and space "loss".
    weight : array or str, optional
        How much each row counts, (n,) numbers of at least 0, or the name of a column of the rows; by default 1.
    allow_unseen : bool
        Take rows, and a background, of which the model knows hardly any category of some feature; by default they are refused.
    output : str or int, optional
        The only output to explain, by its name or position; by default all. Or "predicted", the class of every row's largest margin, or "other",
        another one, drawn with the seed behind a colon, as in "other:7".
    space : "margin", "probability", "response" or "loss"
        What to attribute: margins, classes' probabilities, predictions in the label's units, or the loss of the model's objective, which takes
        `label`. With a background of rows, of one background row after the other, so that the base value is the mean prediction, or the mean loss
        for a row's own label; without, or for a softmax of several classes, along the straight line of margins from base value to row.
    device : "cpu", "cuda" or "auto"
        Where attributions are computed: the processor's cores, a graphics card by CUDA, or a card where there is one and the method runs there
        without a background. Only Shapley, Banzhaf and Beta values and other semivalues run there, with a background Owen and asymmetric values too.

    Returns
    -------
    Attributions
        With ``importance()``, ``top(3)``, ``waterfall(0)``, ``plot.beeswarm()``, ``to_frame()`` and more: see ``help(leafledger.Attributions)``.

    Raises
    ------
    LeafledgerError
        One line: what was got, what was expected, where.
    """
    encoder = follow(model, method, parameters, partition)
    given = rows
    if encoder is not None:
        encoded = encoder.encode(rows, label, weight)
        rows, given, label, weight = encoded.rows, encoded.given, encoded.label, encoded.weight
        model, partition, background = encoder.last, None, encoder.encode_background(background)
    row_output = read_row_output(output)
    loaded = choose_among(row_output, load_ensemble(model, output=None if row_output is not None else output))
    spelled = spell_features(loaded, rows, label, weight)
    asked = (method, parameters, partition, interactions, combinations, background, background_errors, allow_unseen, space, device)
    first = None if is_dask(rows) else rows
    if encoder is None and hasattr(rows, "__len__"):
        say_prepare(model, len(rows))
    players = None if encoder is None else encoder.players
    found = Explainer(*ask(spelled, row_output, *asked, rows=first, order=order, index=index, players=players))(rows, label=label, weight=weight)
    return found if encoder is None else encoder.show(found, given)
