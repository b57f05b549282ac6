"""The cyclopts application that commands register with."""

from importlib.metadata import version

from cyclopts import App, Group

app = App(
    name="leafledger",
    help="Explain every row of a Parquet data set with an XGBoost, LightGBM, CatBoost or scikit-learn model.",
    version=lambda: version("leafledger"),
    version_flags=["--version"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # main reports how to resume
)
app.meta.group_parameters = Group("Every command", sort_key=9)
