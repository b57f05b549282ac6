"""H2O: a model of its own, since it explains no other, of the same size and of the same rows; contributions of every row, and what explain draws."""

import sys
from pathlib import Path

from tests.beside.night import DEPTH, FEATURES, N_TREES, NIGHT, TARGET, TRAINING
from tests.beside.steps import Steps


def figures(found, name=""):
    """Every figure of an explanation, and what it is called."""
    if hasattr(found, "items"):
        for key, value in found.items():
            yield from figures(value, f"{name}-{key}")
    elif hasattr(found, "figure") and callable(found.figure):
        yield name.strip("-"), found.figure()
    elif hasattr(found, "savefig"):
        yield name.strip("-"), found


def main(folder, out):
    """Train, which is not counted among what explaining takes, explain the night, and draw."""
    import h2o
    import matplotlib

    matplotlib.use("Agg")
    from h2o.estimators import H2OXGBoostEstimator

    steps, report = Steps(), Path(out) / "report"
    report.mkdir()
    with steps.step("start"):
        h2o.init(nthreads=2, max_mem_size="4G", strict_version_check=False, verbose=False)
        h2o.no_progress()
    try:
        with steps.step("train"):
            model = H2OXGBoostEstimator(ntrees=N_TREES, max_depth=DEPTH, learn_rate=0.1, seed=1)
            model.train(x=FEATURES, y=TARGET, training_frame=h2o.import_file(str(Path(folder) / TRAINING)))
        with steps.step("explain"):
            rows = h2o.import_file(str(Path(folder) / NIGHT))
            found = model.predict_contributions(rows).as_data_frame()
            found = found.rename(columns={"BiasTerm": "base"})
            predicted = model.predict(rows).as_data_frame()["predict"]
            found.assign(prediction=predicted).to_parquet(Path(out) / "phi.parquet")
        with steps.step("report"):
            for name, figure in figures(model.explain(rows, render=False)):
                figure.savefig(report / f"{name}.png")
    finally:
        h2o.cluster().shutdown()
    steps.save(out, ["h2o"])


if __name__ == "__main__":
    main(*sys.argv[1:])
