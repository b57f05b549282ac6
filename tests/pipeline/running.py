"""What tests read of runs: every byte that was published, attributions as one table, the library's own values; and models and plans made by hand."""

from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.models.model import Feature, Model
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.plan.planned_run import plan_run
from leafledger.pipeline.runs.records.folder import PROVENANCE
from leafledger.pipeline.runs.stages import broadcast_run
from tests.pipeline.conftest import FEATURES


def contributions(example, frame=None):
    """LightGBM's own values ``(n, features + 1)``, base last."""
    frame = example.frame if frame is None else frame
    return example.booster.predict(frame[FEATURES].assign(carrier=frame["carrier"].astype("category")), pred_contrib=True)


def attributions(run):
    """All parts of a run in order, as one table."""
    return pa.concat_tables([pq.read_table(path) for path in sorted(Path(run).glob("attributions/*.parquet"))])


def contents(run):
    """Every published file of a run, by name, but for the record of how it was made, which no two runs share, and empty files that are locked."""
    files = (path for path in sorted(Path(run).rglob("*")) if path.is_file() and path.name != PROVENANCE and path.suffix != ".lock")
    return {str(path.relative_to(run)): path.read_bytes() for path in files}


def as_model(ensemble):
    """An ensemble with names: features f0, f1, …."""
    features = tuple(Feature(f"f{j}", bool(ensemble.n_categories[j])) for j in range(ensemble.n_features))
    return Model(ensemble, features, tuple(map(str, range(ensemble.base.size))), "xgboost", "")


def planned(example, data, **arguments):
    """The plan of a job on ``data``, and the memory it takes."""
    run = plan_run(make_job(example.model, data, f"{gettempdir()}/nowhere/run", Options(**arguments)), load_ensemble(example.model))
    return run.plan, run.memory


def ready(example, out, data=None, **arguments):
    """A run that is planned and committed, and its tables where workers read them: all that is there before the first item."""
    options = Options(**({"scheduler": "serial"} | arguments))
    run = plan_run(make_job(example.model, data or example.data, str(out), options), load_ensemble(example.model))
    return run, broadcast_run(run)


def read_phi(out):
    """Attributions of a run of one output, ``(n, players)``."""
    table = attributions(out)
    return np.column_stack([table[name].to_numpy() for name in table.column_names if name.startswith("phi_")])


def stored(folder):
    """The one folder of tables that runs left."""
    (found,) = Path(folder).iterdir()
    return found


def write_copies(example, folder, *paths, **given):
    """Make copies of the example's first month, below a folder."""
    table = pq.read_table(f"{example.data}/month=1/data.parquet", partitioning=None)
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / path, **given)
    return table
