"""CatBoost's target statistics in its JSON export, which may omit tables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import InvalidModel, UnsupportedModel
from ..formats.json_fields import NUMERIC, get, list_of, numbers, parse, single
from .assemble import Contents, loss_name
from .cityhash import HASH_MASK
from .ctr import COUNTERS, EMPTY, KINDS, MEANS, Counts, CtrCounts, Projection, Statistic, count_targets, make_counts

LEAST_HASH = -(2**31)  # hashes may be written signed or unsigned
MOST_DIGITS = 20  # decimal digits of a 64-bit key
PARAMETERS = re.compile(r"(model\d+:)*params")  # parameters of each model of a sum
LISTS = ("simple_ctrs", "combinations_ctrs")
ONE_TARGET = {"MultiClass", "MultiClassOneVsAll", "RMSEWithUncertainty", "MultiQuantile"}  # losses with several outputs for one target
TWO_TARGETS = "SurvivalAft"


def _projection(elements: list[Any], where: str) -> Projection:
    categories, above, equal = [], [], []
    for element in elements:
        kind = get(element, "combination_element", str, where)
        if kind == "cat_feature_value":
            categories.append(get(element, "cat_feature_index", int, where))
        elif kind == "float_feature":
            above.append((get(element, "float_feature_index", int, where), single(element, "border", where)))
        elif kind == "cat_feature_exact_value":
            value = get(element, "value", int, where)
            if not LEAST_HASH <= value <= HASH_MASK:
                raise InvalidModel(f"{where} asks for hash {value}, expected {LEAST_HASH}..{HASH_MASK}")
            equal.append((get(element, "cat_feature_index", int, where), value & HASH_MASK))
        else:
            raise InvalidModel(f"{where} has an element of kind {kind[:40]!r}, expected cat_feature_value, float_feature or cat_feature_exact_value")
    return Projection(tuple(categories), tuple(above), tuple(equal))


def _counted(record: Any, elements: str, kind: str, where: str) -> CtrCounts:
    """Read a projection from members with these names; the binarization is not exported."""
    found = get(record, kind, str, where)
    if found not in KINDS:
        raise InvalidModel(f"{where} is of kind {found[:40]!r}, expected one of {', '.join(KINDS)}")
    return CtrCounts(_projection(get(record, elements, list, where), where), found, 0)


def read_statistics(model: Any, where: str) -> tuple[Statistic, ...]:
    """Read the columns of statistics."""
    found = []
    for number, record in enumerate(list_of(model.get("features_info"), "ctrs", where)):
        label = f"{where}: target statistic {number}"
        counted = _counted(record, "elements", "ctr_type", label)
        with np.errstate(over="ignore"):  # an infinite border is above all
            borders = numbers(list_of(record, "borders", label), f"{label}, borders").astype(np.float32)
        prior = single(record, "prior_numerator", label), single(record, "prior_denomerator", label)  # CatBoost's spelling
        target_border = get(record, "target_border_idx", int, label)
        found.append(Statistic(counted, target_border, prior, single(record, "shift", label), single(record, "scale", label), borders))
    return tuple(found)


def _counts(record: Any, kind: str, where: str) -> Counts:
    stride, flat = get(record, "hash_stride", int, where), get(record, "hash_map", list, where)
    width = 1 if kind in COUNTERS else 2 if kind in MEANS else stride - 1
    if width < 1 or stride != width + 1 or len(flat) % stride:
        raise InvalidModel(f"{where} has {len(flat)} entries in steps of {stride}, expected keys, each with {max(width, 1)} counts")
    keys, columns = flat[::stride], [flat[k::stride] for k in range(1, stride)]
    if not all(type(key) is str and key.isascii() and key.isdecimal() and len(key) <= MOST_DIGITS for key in keys):
        raise InvalidModel(f"{where}: a key is no text of decimal digits")
    whole = columns[1:] if kind in MEANS else columns
    if not all({int}.issuperset(map(type, column)) for column in whole) or not NUMERIC.issuperset(map(type, columns[0])):
        raise InvalidModel(f"{where}: a count is no whole number")
    key = np.array(list(map(int, keys)), np.uint64)
    with np.errstate(over="ignore"):
        counts = np.array(columns, float).T.astype(np.float32) if kind in MEANS else np.array(columns, np.int64).T
    there = key != EMPTY  # empty slots are exported with another key's counts
    return make_counts(key[there], counts[there], get(record, "counter_denominator", int, where), kind, where)


def read_tables(model: Any, statistics: Sequence[Statistic], where: str) -> dict[CtrCounts, Counts]:
    """Read the tables that statistics need."""
    needed, found = {statistic.counted for statistic in statistics}, dict[CtrCounts, Counts]()
    tables = model.get("ctr_data")
    if not needed or tables is None:
        return found
    for number, (text, record) in enumerate(get(model, "ctr_data", dict, where).items()):
        label = f"{where}: table {number} of counts"
        counted = _counted(parse(text, label), "identifier", "type", label)
        if counted in found:
            raise InvalidModel(f"{label} is of what another one is of")
        if counted in needed:
            found[counted] = _counts(record, counted.kind, label)
    return found


def _parameters(info: Any, where: str) -> list[Any]:
    """Return the parameters of the model, or of every model that it is a sum of."""
    found = [value for key, value in info.items() if PARAMETERS.fullmatch(key)] if isinstance(info, dict) else []
    return [parse(value, f"{where}, parameters") if isinstance(value, str) else value for value in found]


def _descriptions(parameters: Any) -> Iterator[list[Any]]:
    """Return the lists of kinds counted for one projection."""
    found = parameters.get("cat_feature_params") if isinstance(parameters, dict) else None
    if isinstance(found, dict):
        single_features = found.get("per_feature_ctrs")
        lists = [*(found.get(name) for name in LISTS), *(single_features.values() if isinstance(single_features, dict) else ())]
        yield from ([each for each in entries if isinstance(each, dict)] for entries in lists if isinstance(entries, list))


def _is_ambiguous(statistics: Sequence[Statistic], tables: Mapping[CtrCounts, Counts]) -> bool:
    """Return whether columns may come from several tables: CatBoost sorts a table's by target border and prior."""
    last: dict[CtrCounts, tuple[float, ...]] = {}
    for each in statistics:
        said = (each.target_border, *each.prior, each.shift, each.scale)
        table = tables.get(each.counted)
        if (each.counted in last and said <= last[each.counted]) or (table and each.target_border >= count_targets(each.counted.kind, table)):
            return True
        last[each.counted] = said
    return False


def check_unambiguous(contents: Contents, info: Any, where: str) -> None:
    """Refuse a file that may lack tables.

    Counts depend on the binarization of the target. A model may have several for one projection and kind, but the export keeps one table, under a key
    that does not say which, and CatBoost itself reads it wrongly.
    """
    counted = {statistic.counted.kind for statistic in contents.statistics} - set(COUNTERS)
    if not counted:
        return
    parameters = _parameters(info, where)
    losses = {contents.loss, *map(loss_name, parameters)} - {""}
    several = TWO_TARGETS in losses or (contents.bias.size > 1 and not (losses and losses <= ONE_TARGET))
    for found in (each for record in parameters for each in _descriptions(record)):
        for kind in counted:
            ways = [entry.get("target_binarization") for entry in found if entry.get("ctr_type") == kind]
            several |= any(way != ways[0] for way in ways)
    if several or not parameters or _is_ambiguous(contents.statistics, contents.tables):
        raise UnsupportedModel(
            f"{where}: JSON lacks some counts of a model whose target statistics are of several targets, or of one in several ways: save it as cbm"
        )
