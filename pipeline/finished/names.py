"""Readable names of a model's features, its prediction and its rows, as a person gives them, and what is shown by them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from ..arguments.choices import PROBABILITY
from ..arguments.readers import shorten
from ..display.nearest import did_you_mean
from ..display.text import is_whole
from ..display.waterfall import Step
from ..errors import UsageError
from ..runs.columns.reasons_file import load_settings
from ..runs.records.plan import Plan
from .row_data import ShownOutput, ShownRow, Wording

NamesFile = Mapping[str, Any] | str | PathLike  # or where such an object is, in TOML or JSON
TITLE, UNIT, DESCRIPTION = FIELDS = ("title", "unit", "description")
PREDICTION, ROWS, FEATURES = TABLES = ("prediction", "rows", "features")
ONE, MANY = NUMBERS = ("one", "many")


@dataclass(frozen=True, slots=True)
class Name:
    """What a thing is called."""

    title: str = ""
    unit: str = ""  # of its numbers, as written behind them
    description: str = ""  # a sentence


@dataclass(frozen=True, slots=True)
class Names:
    """What the features, the prediction and the rows of a run are called; without a name each keeps its own."""

    features: Mapping[str, Name] = field(default_factory=dict)
    prediction: Name = Name()
    row: str = "row"
    rows: str = "rows"

    def title(self, feature: str) -> str:
        """Return what a feature or group is called."""
        found = self.features.get(feature)
        return found.title if found is not None and found.title else feature

    def unit(self, feature: str) -> str:
        """Return the unit of a feature's values."""
        found = self.features.get(feature)
        return "" if found is None else found.unit

    def count(self, n: int) -> str:
        """Format a number of rows, as ``1,234 flights``."""
        return f"{n:,} {self.row if n == 1 else self.rows}"

    def rename(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Call the features of a table's rows by their titles."""
        single = ("feature", "first", "second")
        return [
            {
                key: self.title(value) if key in single and isinstance(value, str) else [*map(self.title, value)] if key == "features" else value
                for key, value in row.items()
            }
            for row in rows
        ]

    def _step(self, step: Step) -> Step:
        unit, known = self.unit(step.player), step.value is not None and step.value == step.value
        return replace(step, player=self.title(step.player), value=f"{step.shown} {unit}" if unit and known else step.value)

    def show_row(self, row: ShownRow) -> ShownRow:
        """Call the features of a row by their titles, with units behind values and attributions."""
        return replace(row, outputs=tuple(map(self._show_output, row.outputs)), values={self.title(name): each for name, each in row.values.items()})

    def _show_output(self, found: ShownOutput) -> ShownOutput:
        pairs = found.interactions
        named = None if pairs is None else tuple((tuple(map(self.title, players)), value) for players, value in pairs)
        return replace(found, steps=tuple(map(self._step, found.steps)), interactions=named)

    def show_wording(self, wording: Wording) -> Wording:
        """Call the total of a row by its title."""
        return replace(wording, name=self.prediction.title or wording.word, unit=self.prediction.unit)


UNNAMED = Names()  # each thing keeps its own


def _read_name(given: Any, where: str) -> Name:
    if not isinstance(given, Mapping):
        raise UsageError(f"{where}: is {shorten(given)}, expected a table of {', '.join(FIELDS)}")
    for name, value in given.items():
        if name not in FIELDS:
            raise UsageError(f"{where}: has {name!r:.80}, expected {', '.join(FIELDS)}{did_you_mean(name, FIELDS)}")
        if not (isinstance(value, str) and value.strip() and is_whole(value)):
            raise UsageError(f"{where}: {name} is {shorten(value)}, expected words")
    return Name(**{name: " ".join(value.split()) for name, value in given.items()})


def _read_rows(given: Any, where: str) -> tuple[str, str]:
    if not (isinstance(given, Mapping) and {*given} == {*NUMBERS} and all(isinstance(word, str) and word.strip() for word in given.values())):
        raise UsageError(f'{where}: rows is {shorten(given)}, expected one = "…" and many = "…", as flight and flights')
    return given[ONE], given[MANY]


def read_names_file(given: NamesFile | None, plan: Plan) -> Names:
    """Read the names of a run's features.

    Parameters
    ----------
    given : mapping, str, path or None
        Tables ``features``, of a title, a unit and a description by feature, ``prediction``, of the same, and ``rows``, of the words for one and for
        many; or a TOML or JSON file of them. None for none.
    plan : Plan
        Of the run, whose features and groups are named. What is said of the prediction holds where attributions are of predictions in the label's
        units. Names of other features are passed over, but where the run has none of them.

    Raises
    ------
    UsageError
        It is not as expected, or two features have one title.
    """
    if given is None:
        return Names()
    found, _, where = load_settings(given, "names")
    if not isinstance(found, Mapping):
        raise UsageError(f"{where}: is {shorten(found)}, expected tables {', '.join(TABLES)}")
    for name in found:
        if name not in TABLES:
            raise UsageError(f"{where}: has {name!r:.80}, expected {', '.join(TABLES)}{did_you_mean(name, TABLES)}")
    listed = found.get(FEATURES, {})
    if not isinstance(listed, Mapping):
        raise UsageError(f"{where}: features is {shorten(listed)}, expected a table of features, each with {', '.join(FIELDS)}")
    known = [*dict.fromkeys((*plan.players, *(feature.name for feature in plan.features)))]
    features = {name: _read_name(each, f"{where}: {name!r}") for name, each in listed.items()}
    if features and not {*features} & {*known}:
        raise UsageError(f"{where}: names {next(iter(features))!r:.80} and no feature of the run, whose features are {', '.join(known[:5])} …")
    names = Names({name: each for name, each in features.items() if name in known})
    called = dict[str, str]()
    for name in known:
        other = called.setdefault(names.title(name), name)
        if other != name:
            both = f"{other!r:.80} and {name!r:.80} are both called {names.title(name)!r:.80}"
            raise UsageError(f"{where}: {both}, expected a title of its own for each")
    words = _read_rows(found[ROWS], where) if ROWS in found else (names.row, names.rows)
    prediction, of_labels = _read_name(found.get(PREDICTION, {}), f"{where}: prediction"), plan.total == PREDICTION and plan.space != PROBABILITY
    return replace(names, prediction=prediction if of_labels else Name(), row=words[0], rows=words[1])
