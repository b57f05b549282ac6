"""Translation of records of earlier formats into today's: missing fields get the value that their absence means, and moved fields move.

1   by 0.1
2   by 0.2; versions before its release lacked some of its fields
3   by 0.3, which is the first to write its number
"""

from collections.abc import Callable, Mapping
from typing import Any

from leafledger.kernels.methods import METHODS
from leafledger.kernels.ranking.curves import KINDS
from leafledger.kernels.ranking.ranks import summarize_ranks
from leafledger.kernels.reductions.summary import Summary

from .numbers import NUMBER

PLAN: dict[str, Any] = {  # what it means that a plan says nothing of these
    "background_errors": False,
    "by": [],
    "combinations": [],
    "device": "cpu",
    "link": None,
    "output": None,
    "predictions": [],
    "reasons": None,
    "row_output": None,
    "space": "margin",
    "top": None,
    "trees": None,
    "values": False,
}
FEATURE: dict[str, Any] = {"hashed": False, "missing": None, "named": True, "perhaps_codes": False, "underscored": False}
MANIFEST: dict[str, Any] = {"device": "cpu", "place": "", "reasons": None, "space": "margin", "totals": {}}
FOOTER: dict[str, Any] = {"space": "margin", "base": None}  # base values were in the manifest alone
SCORES = {(1, "curves"): KINDS}  # of formats and methods that had others: areas alone, and not where they are best
SUMMARIES = {(1, "curves", "areas"): summarize_ranks("areas", len(KINDS), "score", "mean ranks, and mean areas under the curves")}
WITH_MISSING = 3  # from this number on a manifest that names no number for missing values has none
GROUPED = "string"  # type of columns of groups, whose values were texts


def _number(entry: Any, number: int) -> Any:
    """Write the number into a record that has none."""
    return {NUMBER: number, **entry} if isinstance(entry, dict) else entry


def _fill(entry: Any, meanings: Mapping[str, Any]) -> Any:
    return {**meanings, **entry} if isinstance(entry, dict) else entry


def list_scores(method: str, number: int) -> tuple[str, ...]:
    """Name the scores that parts of a method have behind the players."""
    return SCORES.get((number, method), METHODS[method].phi.scores)


def list_summaries(method: str, number: int) -> tuple[Summary, ...]:
    """List the summaries that a method has by itself."""
    return tuple(SUMMARIES.get((number, method, each.name), each) for each in METHODS[method].summaries)


def _with_defaults(method: Any, parameters: Any) -> Any:
    """Add parameters that a method got later, whose defaults are what it did before."""
    known = METHODS.get(method) if isinstance(method, str) else None
    if known is None or not isinstance(parameters, dict):
        return parameters
    return dict(sorted(({each.name: each.default for each in known.parameters} | parameters).items()))


def take_record(entry: Any, number: int) -> Any:
    """Take a record that has lacked nothing but its number."""
    return _number(entry, number)


def take_latest(entry: Any, number: int) -> Any:
    """Take what names the latest run, of which 0.1 did not say how much is explained."""
    told = isinstance(entry, dict) and ("n_rows" in entry or "share" in entry)
    return _number(entry, number) if told else _fill(_number(entry, number), {"n_rows": None, "share": None})


def _with_texts(item: Any) -> Any:
    """Take a work item of 0.1, which had integers of the path as such."""
    if not isinstance(item, dict) or not isinstance(item.get("partition"), list):
        return item
    pairs = item["partition"]
    known = all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    return {**item, "partition": [[name, str(value) if type(value) is int else value] for name, value in pairs]} if known else item


def take_plan(entry: Any, number: int) -> Any:
    """Take a plan."""
    if not isinstance(entry, dict):
        return entry
    found = _fill(_number(entry, number), PLAN)
    if "slice_rows" in found:
        found.setdefault("group_rows", found["slice_rows"])  # slices were written as they came
    if isinstance(found.get("features"), list):
        found["features"] = [_fill(feature, FEATURE) for feature in found["features"]]
    if number == 1 and isinstance(found.get("items"), list):
        found["items"] = [_with_texts(item) for item in found["items"]]
    labels = found.get("labels")
    if isinstance(labels, dict) and isinstance(labels.get("by"), list):
        found["by"] = [{"name": name, "type": GROUPED} for name in labels["by"]]
        found["labels"] = {name: value for name, value in labels.items() if name != "by"}
    parameters = found.get("parameters")
    if isinstance(parameters, list) and all(isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in parameters):
        found["parameters"] = sorted(map(list, _with_defaults(found.get("method"), dict(parameters)).items()))
    return found


def _list_used(found: Mapping[str, Any], plan: Mapping[str, Any]) -> list[Any]:
    """Positions of features that the players listed are made of, where a manifest has players alone."""
    players, names = found["players"], [feature["name"] for feature in plan["features"]]
    groups = plan["groups"] if METHODS[plan["method"]].phi.of_groups else []
    grouped = {name for _, members in groups for name in members}
    members = [*(members for _, members in groups), *([name] for name in names if name not in grouped)]  # scores, which are no players, follow
    return sorted(names.index(name) for player in players if player < len(members) for name in members[player])


def _find_missing(plan: Mapping[str, Any]) -> Any:
    """The number that stands for missing values, where a plan alone has it, by features."""
    return min((feature["missing"] for feature in plan["features"] if feature.get("missing") is not None), default=None)


def take_manifest(entry: Any, number: int, read_plan: Callable[[], Any]) -> Any:
    """Take a manifest, with what the plan says in the place of what it does not.

    Parameters
    ----------
    read_plan : callable
        Reads the plan, as parsed from JSON; it is asked only where something lacks.
    """
    if not isinstance(entry, dict):
        return entry
    found = _fill(_number(entry, number), MANIFEST)
    if "r2" in found:
        shares = found.pop("r2")
        found["totals"] = {} if shares is None else {"r2": shares}
    found["parameters"] = _with_defaults(found.get("method"), found.get("parameters"))
    made: dict[str, Callable[[Any], Any]] = {
        "model": lambda plan: plan["model"],
        "n_files": lambda plan: len({item["uri"] for item in plan["items"]}),
        "used": lambda plan: _list_used(found, plan),
        **({"missing": _find_missing} if number < WITH_MISSING else {}),
    }
    lacking = {name: make for name, make in made.items() if name not in found}
    plan = read_plan() if lacking else None
    try:
        told = {name: make(plan) for name, make in lacking.items()}
    except (AttributeError, KeyError, TypeError, IndexError, ValueError) as error:
        raise ValueError(f"its plan does not say what it lacks: {type(error).__name__} {' '.join(str(error).split())}") from error
    return {**{name: value for name, value in told.items() if value is not None}, **found}


def take_footer(entry: Any, number: int) -> Any:
    """Take the footer of a part: 0.1 named the plan itself, and had the work item in a record of its own."""
    if not isinstance(entry, dict) or "plan" not in entry:
        return _fill(_number(entry, number), FOOTER)
    item = entry.get("item")
    if not isinstance(item, dict) or item.get("n_rows") != entry.get("n_rows"):
        raise ValueError("it has other rows than its work item")
    rows = {name: value for name, value in _with_texts(item).items() if name != "part"}
    kept = {name: value for name, value in entry.items() if name not in ("plan", "item", "n_rows")}
    return _fill(_number({"recipe": entry["plan"], **rows, **kept}, number), FOOTER)
