"""The marginal game: what a background costs to prepare and then per row, beside explainers that take it along with every row, or in every call."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from leafledger.kernels.batch import attribute_batch
from leafledger.kernels.methods import METHODS
from leafledger.kernels.prepare import ask_background, measure_background, prepare
from leafledger.kernels.slices.buffers import Prepared
from leafledger.kernels.trees.ensemble import TreeEnsemble
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.runs.job.job import TABLE_BYTES
from leafledger.pipeline.stores.table_arrays import table_bytes
from tests.bench.compare import CHECKED_ROWS, LEAST_ROWS, PREDICT, Check, contend_peer
from tests.bench.machine import find_version
from tests.bench.models import CATBOOST, Case, feature_names, trained
from tests.bench.ours import SHAPLEY, attributions, explain_all, make_slices, spread
from tests.bench.peers import EVERY, WOODELF, WOODELF_PACKAGE, Peer, as_is, shap_values, wrap_woodelf
from tests.bench.timing import Contender, Speed, clock, race, size
from tests.bench.totals import Total
from tests.bench.vendors import VENDORS

BACKGROUNDS, QUICK_BACKGROUNDS, MOST_ROWS, TOTAL_BACKGROUND = (100, 1_000, 10_000, 100_000), (100, 1_000), 100_000, 10_000
PAIRS = 3_000  # of a row and a background row, that one call of a peer is made for at least
MOST_PAIRS = 10_000 * 100  # background rows times trees: more take a peer proportionally longer
SLOW = 2.0  # seconds: a longer call of a peer is made once, but in the race with everything included
ALL_ALONG = ("xgboost-100x6", "synthetic-300x4", "synthetic-300x6")  # cases in which woodelf is asked against every background
NEVER = ("lightgbm-100x127", "synthetic-300x7", "synthetic-300x8")  # minutes of woodelf, whatever the number of rows


@dataclass(frozen=True, slots=True)
class Preparation:
    """What is made of a background once: medians of seconds on one thread, and the tables' size."""

    n_rows: int
    survey: float  # of the model alone
    count: float
    tables: float
    n_bytes: int


@dataclass(frozen=True, slots=True)
class Marginal:
    """A model in the marginal game: ours with each background, the peers with those they were asked, and both with everything included."""

    case: str
    model: str
    preparations: tuple[Preparation, ...]
    speeds: tuple[Speed, ...]
    checks: tuple[Check, ...]
    total: Total | None
    failures: tuple[str, ...]

    def rate(self, name: str) -> float | None:
        """Rows per second of a contender."""
        return next((speed.rate for speed in self.speeds if speed.name == name), None)

    def check(self, name: str) -> Check | None:
        return next((check for check in self.checks if check.peer == name), None)

    @property
    def ours(self) -> list[float]:
        """Rows per second with every background, the smallest first."""
        return [speed.rate for speed in self.speeds if speed.name.startswith("ours")]


def named(who: str, n_rows: int) -> str:
    return f"{who}, {n_rows:,} background rows"


def prepare_against(ensemble: TreeEnsemble, background: np.ndarray) -> tuple[Prepared, list[float]]:
    """Tables, and the seconds of the survey, of counting and of making them."""
    method, moments = METHODS[SHAPLEY], [time.perf_counter()]
    surveyed = ask_background(ensemble, method, n_rows=len(background), budget=TABLE_BYTES)
    moments.append(time.perf_counter())
    counted = measure_background(surveyed, background.T[surveyed.bins.column].astype(float))
    moments.append(time.perf_counter())
    prepared = prepare(ensemble, method, {}, background=(surveyed, counted))
    moments.append(time.perf_counter())
    return prepared, [later - earlier for earlier, later in pairwise(moments)]


def _prepare(ensemble: TreeEnsemble, background: np.ndarray, repeats: int) -> tuple[Prepared, Preparation]:
    prepare_against(ensemble, background[:1])  # compiles
    with threadpool_limits(1):
        found = [prepare_against(ensemble, background) for _ in range(repeats)]
    prepared = found[0][0]
    return prepared, Preparation(len(background), *np.median([seconds for _, seconds in found], axis=0), table_bytes(prepared.method))


def _prepare_shap(background, case, model, threads):
    import shap

    masker = shap.maskers.Independent(background, max_samples=len(background))  # a mere matrix would be cut to 100 rows
    return shap.TreeExplainer(model, masker, feature_perturbation="interventional")


def _prepare_woodelf(background, case, model, threads):
    import woodelf

    return woodelf.WoodelfExplainer(model, wrap_woodelf(case, background))


def _reference(case, rows):
    import catboost

    return catboost.Pool(rows, np.zeros(len(rows)), feature_names=feature_names(case.n_features))  # it asks for labels and does not use them


def _call_reference(explainer, pool, threads):
    model, reference = explainer
    return model.get_feature_importance(pool, type="ShapValues", reference_data=reference, thread_count=threads)


def peers_against(case: Case, background: np.ndarray, n_trees: int) -> Iterator[Peer]:
    """Everything else that explains against a background, where it ends."""
    n = len(background)
    if n * n_trees <= MOST_PAIRS:
        yield Peer(
            name=named("shap", n),
            package="shap",
            libraries=EVERY,
            parallel=False,
            prepare=partial(_prepare_shap, background),
            wrap=as_is,
            call=lambda explainer, rows, threads: explainer.shap_values(rows, check_additivity=False),
            values=shap_values,
            least=lambda case: max(1, PAIRS // n),
        )
        yield Peer(
            name=named("CatBoost's own", n),
            package=None,
            libraries=frozenset({CATBOOST}),
            parallel=False,
            prepare=lambda case, model, threads: (model, _reference(case, background)),
            wrap=_reference,
            call=_call_reference,
            values=lambda case, result: np.asarray(result)[None, :, :-1],
            least=lambda case: max(1, PAIRS // n),
        )
    if n == TOTAL_BACKGROUND or case.key in ALL_ALONG:
        yield Peer(
            name=named(WOODELF, n),
            package=WOODELF_PACKAGE,
            libraries=EVERY,
            parallel=False,
            prepare=partial(_prepare_woodelf, background),
            wrap=wrap_woodelf,
            call=lambda explainer, frame, threads: explainer.shap_values(frame, verbose=False),
            values=lambda case, result: result[None],
            least=lambda case: MOST_ROWS,  # it prepares in every call
            without=frozenset(NEVER),
        )


def _race_total(case: Case, path: Path, rows: np.ndarray, background: np.ndarray, repeats: int) -> Total:
    """Everything from the model's file on, and from the library's model on, for woodelf."""
    model = VENDORS[case.library].load(path)
    frames = wrap_woodelf(case, rows), wrap_woodelf(case, background)

    def ours():
        prepared, _ = prepare_against(load_ensemble(path).ensemble, background)
        explain_all(prepared, rows)

    def theirs():
        import woodelf

        woodelf.WoodelfExplainer(model, frames[1]).shap_values(frames[0], verbose=False)

    with threadpool_limits(1):
        contenders = [Contender(name, 1, len(rows), call, clock(call)) for name, call in (("ours", ours), (WOODELF, theirs))]
    return Total(len(rows), *race(contenders, repeats))


def measure_marginal(case: Case, folder: Path, backgrounds: tuple[int, ...], repeats: int, seconds: float) -> Marginal:
    """Measure one model. Ours takes turns over all backgrounds; a peer's call is made once where it is long."""
    path, vendor = trained(case, folder), VENDORS[case.library]
    model, ensemble = vendor.load(path), load_ensemble(path).ensemble
    rows = case.draw(MOST_ROWS, 2, case.n_features)
    drawn = {n: case.draw(n, 3, case.n_features) for n in backgrounds}
    made = {n: _prepare(ensemble, background, 1 + repeats // 2) for n, background in drawn.items()}
    tables = {n: prepared for n, (prepared, _) in made.items()}

    ours = {n: attributions(prepared, SHAPLEY, rows[:CHECKED_ROWS], case.n_features) for n, prepared in tables.items()}
    one = tables[backgrounds[0]]
    few = size("ours", 1, lambda n: partial(explain_all, one, rows[:n]), LEAST_ROWS, len(rows), seconds).n_rows
    slices = make_slices(one, rows[:few], 1)  # bins are the model's alone

    def whole(prepared, piece):
        attribute_batch(METHODS[SHAPLEY], prepared, piece)

    contenders = [Contender(named("ours", n), 1, few, partial(spread, partial(whole, prepared), slices, None)) for n, prepared in tables.items()]
    contenders.append(Contender(PREDICT, 1, len(rows), partial(vendor.predict, model, vendor.wrap(rows), 1)))
    checks, failures = [], []
    for n, background in drawn.items():
        for peer in (peer for peer in peers_against(case, background, ensemble.root.size) if peer.supports(case)):
            try:
                contending, check = contend_peer(peer, case, model, rows, ours[n], 1, seconds)
            except Exception as error:  # a peer fails in its own way, and is said to
                failures.append(f"{peer.name}: {type(error).__name__}: {error}")
            else:
                contenders += contending
                checks.append(check)
    total = None
    if TOTAL_BACKGROUND in backgrounds and case.key not in NEVER and find_version(WOODELF_PACKAGE):
        total = _race_total(case, path, rows, drawn[TOTAL_BACKGROUND], repeats)
    return Marginal(
        case=case.key,
        model=case.name,
        preparations=tuple(preparation for _, preparation in made.values()),
        speeds=tuple(race(contenders, repeats, slow=SLOW)),
        checks=tuple(checks),
        total=total,
        failures=tuple(failures),
    )
