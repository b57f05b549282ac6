"""shap: values of every row, the pictures that its documentation begins with, and its only page, of 1,000 rows."""

import sys
from pathlib import Path

from tests.beside.night import MODEL, read_night
from tests.beside.steps import Steps

ROWS_OF_THE_PAGE = 1_000  # as in shap's examples; the page holds every one of them
ROWS, SCATTERED = 3, 6  # waterfalls, and features


def main(folder, out):
    """Explain the night, and draw."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    import shap
    import xgboost

    steps, report = Steps(), Path(out) / "report"
    report.mkdir()
    with steps.step("explain"):
        model = xgboost.XGBRegressor()
        model.load_model(Path(folder) / MODEL)
        rows = read_night(folder)
        found = shap.TreeExplainer(model)(rows)
        table = rows.iloc[:, :0].assign(**dict(zip(rows.columns, found.values.T, strict=True)), base=found.base_values)
        table.assign(prediction=model.predict(rows)).to_parquet(Path(out) / "phi.parquet")
    with steps.step("report"):

        def keep(name):
            plt.savefig(report / f"{name}.png", bbox_inches="tight")
            plt.close()

        shap.plots.bar(found, show=False, max_display=20)
        keep("bar")
        shap.plots.beeswarm(found, show=False, max_display=20)
        keep("beeswarm")
        largest = abs(found.values).mean(axis=0).argsort()[::-1]
        for j in largest[:SCATTERED]:
            shap.plots.scatter(found[:, int(j)], show=False)
            keep(f"scatter-{rows.columns[j]}")
        for i in range(ROWS):
            shap.plots.waterfall(found[i], show=False)
            keep(f"waterfall-{i}")
        some = slice(0, ROWS_OF_THE_PAGE)
        shap.save_html(str(report / "force.html"), shap.plots.force(found.base_values[0], found.values[some], rows.iloc[some]))
    steps.save(out, ["shap", "xgboost"])


if __name__ == "__main__":
    main(*sys.argv[1:])
