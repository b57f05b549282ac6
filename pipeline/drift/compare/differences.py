"""Differences between two runs' plans: incomparable ones are refused, others are reported."""

from collections.abc import Callable, Iterable, Iterator

from leafledger.kernels.methods import METHODS

from ...arguments.choices import LOSS, MARGIN
from ...display.text import count, printable
from ...errors import UnlikeRuns
from ...runs.advisories.known import find_advisories
from ...runs.records.manifest import Manifest
from ...runs.records.plan import Plan
from ..measure.distribution import Distribution
from ..measure.measured_run import Measured

SOME = 5  # names listed
SHOWN = 60  # characters of a name
MENTIONED = 0.01  # change of the number of rows that is told in percent
ALIKE: dict[str, Callable[[Plan], object]] = {  # required to be equal in both runs
    "method": lambda plan: plan.method,
    "parameters": lambda plan: plan.parameters,
    "space": lambda plan: plan.space,
    "way from margins": lambda plan: "none" if plan.space == MARGIN else "line" if plan.quantity is None else "background row by background row",
    "loss": lambda plan: plan.quantity.name if plan.space == LOSS and plan.quantity is not None else "none",
    "weight": lambda plan: plan.labels.weight if plan.space == LOSS and plan.labels is not None else None,
    "outputs": lambda plan: plan.outputs,
    "output of a row": lambda plan: None if plan.row_output is None else plan.row_output.which,
    "background": lambda plan: "none" if plan.background is None else "model" if plan.background_digest is None else "rows",
}


def refuse_unlike(current: Measured, reference: Measured) -> None:
    """Refuse runs whose numbers have different meanings.

    Raises
    ------
    UnlikeRuns
        They have another method, parameters, space, way from margins, loss, weight, outputs or kind of background, or nothing that is compared.
    """
    for measured in (current, reference):
        if not METHODS[measured.plan.method].attributes:
            what = "shares out an error" if METHODS[measured.plan.method].labelled else "has ranks"
            raise UnlikeRuns(f"{measured.uri}: {what}, of method {measured.plan.method!r}; expected attributions of margins or predictions")
    for name, find in ALIKE.items():
        mine, other = find(current.plan), find(reference.plan)
        if mine != other:
            raise UnlikeRuns(f"{current.uri}: {name} is {_say(mine)}, {reference.uri} has {_say(other)}; expected the same of both")


def _say(found: object) -> str:
    if isinstance(found, tuple):
        found = _list(found if all(isinstance(each, str) for each in found) else (f"{name}={value}" for name, value in found))
    return printable(str(found))[:200] if found is not None else "none"


def _list(names: Iterable[str]) -> str:
    names = [printable(str(name))[:SHOWN] for name in names]
    return ", ".join(names[:SOME]) + (f" and {len(names) - SOME} more" if len(names) > SOME else "")


def _model(mine: Manifest, other: Manifest) -> Iterator[str]:
    if mine.model_digest != other.model_digest:
        yield f"the model is another one: SHA-256 {mine.model_digest[:12]} ({printable(mine.model)}), it was {other.model_digest[:12]}"
    if mine.version != other.version:
        yield f"leafledger was {other.version}, it is {mine.version}"


def _features(mine: Plan, other: Plan) -> Iterator[str]:
    now, before = ({feature.name: feature for feature in plan.features} for plan in (mine, other))
    new, gone = [name for name in now if name not in before], [name for name in before if name not in now]
    if new:
        yield f"features that are new: {_list(new)}"
    if gone:
        yield f"features that are gone: {_list(gone)}"
    changed = [name for name in now if name in before and now[name] != before[name]]
    kinds = [name for name in changed if now[name].categorical != before[name].categorical]
    if kinds:
        yield f"features that were numbers and are categories, or the other way round: {_list(kinds)}"
    categories = [name for name in changed if now[name].categories != before[name].categories and name not in kinds]
    if categories:
        yield f"features whose categories in the model changed: {_list(categories)}"
    missing = [name for name in changed if now[name].missing != before[name].missing]
    if missing:
        yield f"features of which another number stands for a missing value: {_list(missing)}"
    if mine.groups != other.groups:
        yield "the groups of features are other ones"


def _options(mine: Plan, other: Plan) -> Iterator[str]:
    if mine.trees != other.trees:
        was, now = ("all" if plan.trees is None else "{}:{}".format(*plan.trees) for plan in (other, mine))
        yield f"iterations of the model were {was}, they are {now}"
    if mine.precision != other.precision:
        yield f"precision was {other.precision}, it is {mine.precision}; attributions are compared as float32"
    if bool(mine.combinations) != bool(other.combinations):
        yield f"combinations of features are {'' if mine.combinations else 'no '}players of their own now"
    if mine.labels != other.labels:
        yield "the labels are of another column, or rows without one are treated otherwise"
    if mine.background_digest != other.background_digest:
        yield "the background has other files"


def _rows(mine: Manifest, other: Manifest) -> Iterator[str]:
    if mine.n_rows != other.n_rows:
        change = abs(mine.n_rows - other.n_rows) / other.n_rows if other.n_rows else 0.0
        more = "more" if mine.n_rows > other.n_rows else "fewer"
        before = f"{change:.0%} {more} than before ({other.n_rows:,})" if change >= MENTIONED else f"before {other.n_rows:,}"
        yield f"{count(mine.n_rows, 'row')}, {before}"
    for when, manifest in (("now", mine), ("before", other)):
        if manifest.rejected:
            rows = f" of {count(manifest.n_rejected, 'row')}" if manifest.n_rejected else ""
            yield f"{count(len(manifest.rejected), 'piece')} of the data{rows} could not be read {when}"


def _bits(measured: Measured) -> dict[str, int]:
    found = ((feature.name, measured.value(feature.name)) for feature in measured.plan.features)
    return {name: values.bits for name, values in found if isinstance(values, Distribution)}


def _columns(current: Measured, reference: Measured) -> Iterator[str]:
    now, before = _bits(current), _bits(reference)
    otherwise = [name for name in now if name in before and now[name] != before[name]]
    if otherwise:
        yield f"features whose values have another precision, and are compared by the lower one: {_list(otherwise)}"
    for measured in (current, reference):
        plan = measured.plan
        if plan.global_only:
            yield f"{measured.uri}: has summaries and no rows, of which means can be compared alone"
        elif not plan.wide:
            yield f"{measured.uri}: has no columns of phi, only the largest; of attributions, means can be compared alone"
    if current.plan.values != reference.plan.values:
        without = reference if current.plan.values else current
        yield f"{without.uri}: has no values of features, which are not compared"


def _advised(measured: Measured) -> set[str]:
    return {each.name for each in find_advisories(measured.manifest, lambda: measured.plan)}


def list_advised(current: Measured, reference: Measured, explained_again: bool) -> tuple[str, ...]:
    """List mistakes of versions that make a difference between the runs, besides the data and the models.

    Parameters
    ----------
    explained_again : bool
        Rows of each were explained by the other's model with this version, which makes none of the mistakes that both runs may share.

    Returns
    -------
    tuple of str
        A line for each run that advisories may concern, of those that are not about both, or of all where it matters.
    """
    nights = (current, reference)
    named = [_advised(night) for night in nights]
    shared = set[str]() if explained_again else named[0] & named[1]
    told_as = "told as what data and models did" if explained_again else "told as drift"
    return tuple(
        f"{night.uri}: advisories may concern it ({_list(sorted(names - shared))}): if so, what was mended since is {told_as}; make it again first"
        for night, names in zip(nights, named, strict=True)
        if names - shared
    )


def list_differences(current: Measured, reference: Measured) -> tuple[str, ...]:
    """List the plans' differences in words, except the rows.

    Returns
    -------
    tuple of str
        Lines, in which names are escaped; none where only rows differ, and there are as many.
    """
    mine, other = current.manifest, reference.manifest
    return (
        *_model(mine, other),
        *_features(current.plan, reference.plan),
        *_options(current.plan, reference.plan),
        *_rows(mine, other),
        *_columns(current, reference),
    )
