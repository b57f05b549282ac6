"""Small calls of a model in memory: how soon the attributions of one row, or of a hundred, are there."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import leafledger
from tests.bench.models import Case, trained
from tests.bench.peers import OWN
from tests.bench.timing import Contender, Speed, race
from tests.bench.vendors import VENDORS, Vendor

SIZES = (1, 100)
EXPLAINER = "an Explainer's call"


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls with few rows on one thread: an Explainer's, and the library's own, each from rows in memory to attributions."""

    case: str
    model: str
    n_rows: int
    ours: Speed
    theirs: Speed


def _ask(vendor: Vendor, model, rows) -> None:
    vendor.contributions(model, vendor.wrap(rows), 1)


def measure_calls(case: Case, folder: Path, repeats: int) -> Iterator[Calls]:
    """One model, call by call; tables are made before."""
    path, vendor = trained(case, folder), VENDORS[case.library]
    model, explain = vendor.load(path), leafledger.prepare(path)
    for n in SIZES:
        rows = case.draw(n, 2, case.n_features)
        calls = {EXPLAINER: partial(explain, rows), OWN: partial(_ask, vendor, model, rows)}
        yield Calls(case.key, case.name, n, *race([Contender(name, 1, n, call) for name, call in calls.items()], repeats))
