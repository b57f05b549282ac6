"""The application that commands are added to."""

from importlib.metadata import version

from cyclopts import App, Group

app = App(
    name="leafledger",
    help="Explain every row of a Parquet data set with an XGBoost, LightGBM, CatBoost or scikit-learn model.",
    version=lambda: version("leafledger"),
    version_flags=["--version"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # main says how to go on
)
app.meta.group_parameters = Group("Every command", sort_key=9)
