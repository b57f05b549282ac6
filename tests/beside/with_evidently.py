"""Evidently: drift of the features and of attributions that somebody else computed, here XGBoost, which is not counted."""

import sys
from pathlib import Path

from tests.beside.night import BEFORE, MODEL, NIGHT, read_night
from tests.beside.steps import Steps


def main(folder, out):
    """Compare both nights, and write the report as Evidently's defaults have it."""
    import xgboost
    from evidently import Report
    from evidently.presets import DataDriftPreset

    steps, report = Steps(), Path(out) / "report"
    report.mkdir()
    model = xgboost.Booster(model_file=Path(folder) / MODEL)
    before, night = (
        rows.assign(**{f"phi_{name}": column for name, column in zip(rows.columns, phi.T[:-1], strict=True)})
        for rows in (read_night(folder, name) for name in (BEFORE, NIGHT))
        for phi in [model.predict(xgboost.DMatrix(rows), pred_contribs=True)]
    )
    with steps.step("drift"):
        found = Report([DataDriftPreset()]).run(current_data=night, reference_data=before)
    with steps.step("report"):
        found.save_html(str(report / "drift.html"))
    steps.save(out, ["evidently"])


if __name__ == "__main__":
    main(*sys.argv[1:])
