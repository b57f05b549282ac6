"""shapash: contributions of every row, and its report."""

import sys
from pathlib import Path

from tests.beside.night import MODEL, read_night
from tests.beside.steps import Steps


def main(folder, out):
    """Explain the night, and write the report as shapash's defaults have it."""
    import xgboost
    from shapash import SmartExplainer

    steps, report = Steps(), Path(out) / "report"
    report.mkdir()
    with steps.step("explain"):
        model = xgboost.XGBRegressor()
        model.load_model(Path(folder) / MODEL)
        rows = read_night(folder)
        explainer = SmartExplainer(model=model)
        predicted = rows.iloc[:, :0].assign(prediction=model.predict(rows))
        explainer.compile(x=rows, y_pred=predicted)
        base = float(explainer.explainer.backend.explainer.expected_value)
        explainer.explainer.contributions.assign(base=base, prediction=predicted["prediction"]).to_parquet(Path(out) / "phi.parquet")
    with steps.step("report"):
        explainer.generate_report(output_file=str(report / "report.html"))
    steps.save(out, ["shapash", "shap", "xgboost"])


if __name__ == "__main__":
    main(*sys.argv[1:])
