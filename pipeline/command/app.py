"""The cyclopts application that commands register with."""

from cyclopts import App, Group


def find_version() -> str:
    """Find the version of this leafledger."""
    from importlib.metadata import version

    return version("leafledger")


app = App(
    name="leafledger",
    help="Explain every row of a Parquet data set with an XGBoost, LightGBM, CatBoost or scikit-learn model.",
    version=find_version,
    version_format="plaintext",
    version_flags=["--version"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # main reports how to resume
)
app.meta.group_parameters = Group("Every command", sort_key=9)
