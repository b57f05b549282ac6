"""What the kernels must reach, as ratios to be met: each computed from what was measured, next to its bar."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from leafledger.pipeline.display.text import count
from tests.bench.by_row import ByRow
from tests.bench.calls import Calls
from tests.bench.changes import FEATURES, Changed
from tests.bench.changes import MOST as MOST_PREDICTIONS
from tests.bench.compare import PREDICT, Comparison
from tests.bench.effects import BRUTE, EffectSpeed
from tests.bench.effects import TIMES as EFFECT_TIMES
from tests.bench.forecasts import Foreseen
from tests.bench.gap import BAR as GAP_BAR
from tests.bench.gap import GREEDY, MOST_SECONDS, PLAIN, SET, GapStep
from tests.bench.gap import TIMES as TIMES_PLAIN
from tests.bench.interaction_sets import SETS_MARGINAL, SETS_PATH_DEPENDENT
from tests.bench.interactions import MARGINAL_GAME, OURS, PATH_DEPENDENT, Interactions
from tests.bench.marginal import TOTAL_BACKGROUND, Marginal, named
from tests.bench.ours import BANZHAF, KERNEL, SHAPLEY, WHOLE
from tests.bench.peers import OWN, SHAPIQ, WOODELF
from tests.bench.rankings import CURVES, RANKER, Rankings
from tests.bench.runs import CLUSTER_RUN, COLD, OTHER, SERIAL_RUN, STARTS, THREADS_RUN, First
from tests.bench.starts import AGAIN, EXPLAINED, IMPORTS, VERSION
from tests.bench.timing import Speed
from tests.bench.totals import Total
from tests.bench.usual import SHAP, Usual

# Times a peer's rows per second on one thread: bins, margins and phi of ours.
TIMES = {
    "xgboost-100x6": {OWN: 30, WOODELF: 14, SHAPIQ: 40},
    "xgboost-500x8": {OWN: 20, WOODELF: 12, SHAPIQ: 25},
    "xgboost-100x3": {OWN: 40},
    "xgboost-1000x2": {OWN: 40},
    "lightgbm-100x1024": {SHAPIQ: 12},
    "lightgbm-1x1024": {SHAPIQ: 12},
}
AHEAD = {"deep-1x40": 1, "classes-10": 1, "features-2000": 1, "forest-100x16": 10}  # times the fastest peer that is exact
TOTALS = {20_000: 5, 1_000_000: 20}  # times CatBoost's own in one call, by rows
LOOKED_UP = ("catboost-500x6", *(f"synthetic-300x{depth}" for depth in range(4, 9)))
OF_PREDICT = dict.fromkeys(("xgboost-100x6", *LOOKED_UP), 1 / 3)
TABLES = {"xgboost-500x8": (100e6, 5.0)}  # bytes and seconds at most
# Of the marginal game: rows/s at the slowest background over those at the fastest, times shap with 100 background rows, and times woodelf
# with everything included.
FLAT, SHAP_TIMES, WOODELF_TIMES = 0.9, 100, 1
MARGINAL_RATES = {"lightgbm-100x127": 20_000}  # rows per second
# Interactions: times a peer's rows per second.
PAIR_TIMES = {
    ("xgboost-100x6", PATH_DEPENDENT): {OWN: 30, WOODELF: 10},
    ("xgboost-500x8", PATH_DEPENDENT): {OWN: 15, WOODELF: 12},
    ("xgboost-100x6", MARGINAL_GAME): {WOODELF: 20},
    ("xgboost-100x6", SETS_PATH_DEPENDENT): {SHAPIQ: 100},
    ("xgboost-100x6", SETS_MARGINAL): {SHAPIQ: 100},
}
RANKER_TIMES = 25  # of Banzhaf values, where these are walked too or looked up, which costs nearly nothing
AREAS = {"xgboost-100x6": 30}  # microseconds of a row, both curves of a ranking
TWO_THREADS = 1.7  # times one, with reading and writing
CALLS = {1: 0.3, 100: 1.0}  # milliseconds of a call, by its rows
FIRST_SECONDS = {COLD: 2.0, OTHER: 0.5}  # of compiling, where nothing is compiled yet, and where another model was explained before
START_SECONDS = {VERSION: 0.25, AGAIN: 1.0, EXPLAINED: 1.8}  # of processor time
AGAIN_TIMES = 5  # the imports that no run does without
USUAL_TIMES = {"categories": 10, "forest": 10}  # a data frame in, attributions out
SHAP_DIFFERENCE = 1e-12  # of the largest attribution of scikit-learn's models
SHAP_BY_ROW = 200  # times shap's rows per second, of probabilities and losses
FORESEEN = 0.2  # of what a run takes, by which its forecast may be off
CORES_TIMES, CORES, BANZHAF_TIMES = 1.9, 2, 2.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure that must not be below its bar, or not above where ``most``."""

    case: str
    what: str
    measured: float
    bar: float
    most: bool = False

    @property
    def met(self) -> bool:
        return self.measured <= self.bar if self.most else self.measured >= self.bar


def _of_case(found: Comparison, n_threads: int) -> Iterator[Bar]:
    key, shapley = found.case, f"{SHAPLEY}: {WHOLE}"
    rate = found.rate(shapley)
    for name, times in TIMES.get(key, {}).items():
        if theirs := found.rate(name):
            yield Bar(key, f"times {name}", rate / theirs, times)
    if key in AHEAD:
        rivals = {check.peer: found.rate(check.peer) for check in found.checks if check.exact}
        if rivals:
            fastest = max(rivals, key=lambda name: rivals[name])
            yield Bar(key, f"times the fastest exact peer, {fastest}", rate / rivals[fastest], AHEAD[key])
    if key in OF_PREDICT:
        yield Bar(key, "times predict, tables apart", rate / found.rate(PREDICT), OF_PREDICT[key])
    if key in TABLES:
        most_bytes, most_seconds = TABLES[key]
        yield Bar(key, "MB of tables", found.table_bytes / 1e6, most_bytes / 1e6, most=True)
        yield Bar(key, "seconds to prepare them", found.table_seconds, most_seconds, most=True)
    if n_threads == CORES:
        yield Bar(key, "two cores over one", found.rate(shapley, n_threads) / rate, CORES_TIMES)
    for what in (WHOLE, KERNEL):
        yield Bar(key, f"Banzhaf over Shapley: {what}", found.rate(f"{BANZHAF}: {what}") / found.rate(f"{SHAPLEY}: {what}"), BANZHAF_TIMES)


def _of_marginal(found: Marginal) -> Iterator[Bar]:
    slowest = min(found.ours)
    yield Bar(found.case, "marginal: slowest background over fastest", slowest / max(found.ours), FLAT)
    if found.case in LOOKED_UP:
        yield Bar(found.case, "marginal: times predict, tables apart", slowest / found.rate(PREDICT), OF_PREDICT[found.case])
    if found.case in MARGINAL_RATES:
        yield Bar(found.case, "marginal: rows/s", slowest, MARGINAL_RATES[found.case])
    if theirs := found.rate(named("shap", 100)):
        yield Bar(found.case, "marginal: times shap, 100 background rows", slowest / theirs, SHAP_TIMES)
    if found.total:
        what = f"marginal: times woodelf, {found.total.n_rows:,} rows, {TOTAL_BACKGROUND:,} background rows, all included"
        yield Bar(found.case, what, found.total.ratio, WOODELF_TIMES)


def judge_interactions(found: Sequence[Interactions]) -> list[Bar]:
    """Bars of interactions, with values."""
    bars = []
    for each in found:
        for name, times in PAIR_TIMES.get((each.case, each.game), {}).items():
            if theirs := each.rate(name):
                bars.append(Bar(each.case, f"interactions, {each.game}: times {name}", each.rate(OURS) / theirs, times))
    return bars


def judge_gaps(steps: Sequence[GapStep]) -> list[Bar]:
    """Bars of the prediction gap."""
    bars = []
    for step in (step for step in steps if (step.n_trees, step.depth) == GAP_BAR):
        case = f"gap-{step.n_trees}x{step.depth}"
        bars.append(Bar(case, "ms of a greedy ranking", 1e3 * step.seconds[GREEDY], 1e3 * MOST_SECONDS, most=True))
        bars.append(Bar(case, f"times {PLAIN} in Python", step.seconds[PLAIN] / step.seconds[SET], TIMES_PLAIN))
    return bars


def judge_effects(found: Sequence[EffectSpeed]) -> list[Bar]:
    """Bars of partial dependence."""
    return [Bar(f"effects, {each.n_rows:,} background rows", f"times {BRUTE}", each.ratio, EFFECT_TIMES) for each in found]


def judge_changes(found: Sequence[Changed]) -> list[Bar]:
    """Bars of nearest changes."""
    return [Bar(each.case, f"predictions that changes of {FEATURES} features take", each.times, MOST_PREDICTIONS, most=True) for each in found]


def judge_by_row(found: Sequence[ByRow]) -> list[Bar]:
    """Bars of predictions and losses: as many times the margin's time as there are weighted backgrounds, whatever the background's size."""
    bars = []
    for name in dict.fromkeys(each.quantity for each in found if each.games > 1):
        some = [each for each in found if each.quantity == name]
        for each in some:
            case = f"{name}, {each.n_background:,} background rows"
            bars.append(Bar(case, f"times the margin's own time, of {each.games} weighted backgrounds", each.times_margin, each.games, most=True))
            if each.times_shap:
                bars.append(Bar(case, "times shap", each.times_shap, SHAP_BY_ROW))
        rates = [each.ours.rate * each.games for each in some]
        bars.append(Bar(name, "slowest background over fastest, each times its weighted backgrounds", min(rates) / max(rates), FLAT))
    return bars


def judge_forecasts(found: Sequence[Foreseen]) -> list[Bar]:
    """How far forecasts are from what their runs took."""
    bars = []
    for each in found:
        case = f"{each.model}: {each.method}, {count(each.workers, 'worker')}"
        bars += [Bar(case, f"forecast of {name} off by", abs(each.ratio(name) - 1), FORESEEN, most=True) for name in each.run]
    return bars


def judge_usual(found: Sequence[Usual]) -> list[Bar]:
    """Bars of models as people train them."""
    times = [Bar(each.key, f"times {each.peer}, on all cores", each.ratio, USUAL_TIMES[each.key]) for each in found if each.key in USUAL_TIMES]
    return times + [Bar(each.key, f"difference from {SHAP}", each.difference, SHAP_DIFFERENCE, most=True) for each in found if each.peer == SHAP]


def judge_calls(found: Sequence[Calls]) -> list[Bar]:
    """How long small calls take."""
    return [Bar(each.case, f"ms of a call, {count(each.n_rows, 'row')}", 1e3 * each.ours.seconds, CALLS[each.n_rows], most=True) for each in found]


def judge_runs(speeds: Sequence[Speed], firsts: Mapping[str, First]) -> list[Bar]:
    """Threads beside one, and beside a local cluster, and what compiling takes."""
    seconds = {speed.name: speed.seconds for speed in speeds}
    bars = [Bar("explain", f"times {SERIAL_RUN}, on threads", seconds[SERIAL_RUN] / seconds[THREADS_RUN], TWO_THREADS)]
    bars.append(Bar("explain", f"times {CLUSTER_RUN}, on threads", seconds[CLUSTER_RUN] / seconds[THREADS_RUN], 1))
    return bars + [
        Bar("explain", f"s of compiling, {STARTS[start]}", firsts[start].compiling, most, most=True)
        for start, most in FIRST_SECONDS.items()
        if start in firsts
    ]


def judge_starts(found: Mapping[str, float]) -> list[Bar]:
    """How soon a command is done that has little to do."""
    bars = [Bar("starts", f"s of {start}", found[start], most, most=True) for start, most in START_SECONDS.items()]
    return [*bars, Bar("starts", f"times {IMPORTS}, {AGAIN}", found[AGAIN] / found[IMPORTS], AGAIN_TIMES, most=True)]


def judge(
    comparisons: Sequence[Comparison], totals: Sequence[Total], marginal: Sequence[Marginal], rankings: Sequence[Rankings], n_threads: int
) -> list[Bar]:
    """Every bar that what was measured can be held against."""
    bars = [bar for found in comparisons for bar in _of_case(found, n_threads)]
    bars += [bar for found in marginal for bar in _of_marginal(found)]
    bars += [
        Bar(found.case, f"seconds of {RANKER}, over those of {BANZHAF}", found.seconds(RANKER) / found.seconds(BANZHAF), RANKER_TIMES, most=True)
        for found in rankings
    ]
    bars += [
        Bar(found.case, f"µs of {CURVES}", 1e6 * found.seconds(CURVES), AREAS[found.case], most=True) for found in rankings if found.case in AREAS
    ]
    bars += [
        Bar("catboost-500x6", f"times {OWN}, {t.n_rows:,} rows, both with tables", t.ratio, TOTALS[t.n_rows]) for t in totals if t.n_rows in TOTALS
    ]
    return bars
