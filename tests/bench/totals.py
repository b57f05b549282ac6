"""CatBoost's models from nothing: tables and all rows in one go, against one call of CatBoost's own, which prepares its tables in every call."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import prepare
from leafledger.pipeline.models import load_ensemble
from tests.bench.models import Case, make_rows, trained
from tests.bench.ours import SHAPLEY, explain_all
from tests.bench.timing import Contender, Speed, clock, race
from tests.bench.vendors import VENDORS


@dataclass(frozen=True, slots=True)
class Total:
    """Both on the same rows and one thread, everything included."""

    n_rows: int
    ours: Speed
    theirs: Speed

    @property
    def ratio(self) -> float:
        return self.theirs.seconds / self.ours.seconds


def race_totals(case: Case, folder: Path, sizes: tuple[int, ...], repeats: int) -> list[Total]:
    """Measure each number of rows; what takes long is measured once."""
    path, vendor = trained(case, folder), VENDORS[case.library]
    model, ensemble = vendor.load(path), load_ensemble(path).ensemble

    def ours(rows):
        explain_all(prepare(ensemble, METHODS[SHAPLEY], {}), rows)

    ours(make_rows(64, 4))  # compiles
    totals = []
    for n_rows in sizes:
        rows = make_rows(n_rows, 4)
        wrapped = vendor.wrap(rows)
        works = {"prepare and explain": partial(ours, rows), "library's own, one call": partial(vendor.contributions, model, wrapped, 1)}
        made = [Contender(name, 1, n_rows, call, clock(call)) for name, call in works.items()]
        totals.append(Total(n_rows, *race(made, repeats)))
    return totals
