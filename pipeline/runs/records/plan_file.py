"""Plans on disk: written once, and validated when read, whoever wrote them."""

import dataclasses
import hashlib
import json
import math
from functools import lru_cache
from typing import get_args

from leafledger.kernels.method.open_parameters import find_open
from leafledger.kernels.methods import METHODS
from leafledger.kernels.trees.binning import BATCH

from ...arguments.choices import LOSS, MARGIN, MissingLabels
from ...arguments.readers import read_choice, read_interactions, read_names
from ...dataset.columns.grouping import check_described
from ...dataset.columns.partition import read_groups
from ...dataset.files.listing import WorkItem
from ...display.text import is_whole
from ...errors import InvalidRun, RunConflict, UsageError
from ...json_records import iterate_text, parse_text
from ...methods.interaction_lists import choose_sets
from ...methods.parameters import check_by, check_parameters, find_method
from ...methods.worker_memory import SLICE_ROWS, max_group_rows
from ...models.catboost.cityhash import HashedCategory
from ...models.model import Feature
from ...models.row_output import SEEDS
from ...stores import storage
from ..columns.reasons import Reasons
from ..columns.reasons_file import check_reasons
from ..formats.earlier import take_plan
from ..formats.numbers import FORMAT
from .folder import RunFolder
from .json_file import JsonFile, create_same, refuse_rewritten
from .plan import Earlier, Plan, differences, recipe, without_rows

MOST = 2**31  # row groups, and rows, that a file may have


def _with_hashes(feature: Feature) -> Feature:
    """Categories of which the model has hashes alone were written as objects."""
    categories = feature.categories
    try:
        if categories is not None:
            categories = tuple(HashedCategory(**entry) if isinstance(entry, dict) else entry for entry in categories)
    except TypeError as error:
        raise ValueError(f"categories of feature {feature.name!r}: {error}") from error
    return dataclasses.replace(feature, categories=categories)


def _check_item(item: WorkItem) -> None:
    for piece in item.pieces:
        groups, numbers = piece.row_groups, (*piece.row_groups, piece.skip, piece.n_rows, piece.first_row)
        if not all(0 <= number < MOST for number in numbers) or list(groups) != sorted(set(groups)) or (item.joined and not piece.n_rows):
            raise ValueError(f"item {item.part} has rows that no file has")
    if len({piece.uri for piece in item.pieces}) != 1 + len(item.joined):
        raise ValueError(f"item {item.part} has a file twice")


def _check_reasons(plan: Plan, reasons: Reasons) -> None:
    method = METHODS[plan.method]
    if plan.global_only or not method.attributes or reasons.most < 1 or not 0 <= reasons.least <= 1:
        raise ValueError(f"reasons are at most {reasons.most} of at least {reasons.least}, of method {plan.method!r}")
    if reasons.default is not None and not reasons.default.for_others:
        raise ValueError("default reasons are for some values, expected all")
    for band in (band for each in reasons.worded for band in each.bands):
        if None not in (band.above, band.at_least) or None not in (band.below, band.at_most):
            raise ValueError("a reason begins or ends at two bounds")
        if not all(math.isfinite(bound) for bound in (band.above, band.at_least, band.below, band.at_most) if bound is not None):
            raise ValueError("a reason begins or ends at a bound that is not finite")
    if len({each.player for each in reasons.worded}) != len(reasons.worded):
        raise ValueError("a feature or group has reasons twice")
    bands = (band for bands in (*(each.bands for each in reasons.worded), (reasons.default,)) for band in bands if band is not None)
    if not all(is_whole(text) for band in bands for text in (band.text, band.code or "")):
        raise ValueError("words of a reason are no text")
    read_names("never", reasons.never)
    check_reasons(reasons, plan.players, plan.features, plan.groups if method.phi.of_groups else (), (), "reasons")


def _check_sense(plan: Plan) -> None:
    """Refuse what no run has, and what cannot be worked with."""
    values = check_parameters(find_method(plan.method), dict(plan.parameters))
    if json.dumps(sorted(values.items())) != json.dumps(plan.parameters):
        raise ValueError(f"parameters are not those of method {plan.method!r}")
    if find_open(find_method(plan.method), values):
        raise ValueError(f"parameters of method {plan.method!r} are left open")
    if plan.groups and read_groups(dict(plan.groups), plan.features) != plan.groups:
        raise ValueError("groups are no partition of the features")
    if plan.interactions is not None and json.dumps(read_interactions("interactions", plan.interactions)) != json.dumps(plan.interactions):
        raise ValueError(f"interactions are {plan.interactions!r}, of another type than is written")
    sets = plan.sets
    asked = None if sets is None else choose_sets(find_method(plan.method), plan.interactions, sets.order, sets.index or None)
    if asked != sets:
        raise ValueError(f"sets are {sets}, expected {asked}")
    if plan.labels is not None:
        read_choice("missing", plan.labels.missing, get_args(MissingLabels))
    check_by(METHODS[plan.method], read_names("by", tuple(column.name for column in plan.by)), plan.space)
    check_described(plan.by)
    if plan.background_digest is not None and plan.background is None:
        raise ValueError("there is a digest of a background, and no background")
    if plan.output is not None and (not 0 <= plan.output < MOST or len(plan.outputs) != 1):
        raise ValueError(f"output is {plan.output}, the only one of {len(plan.outputs)}")
    if plan.row_output is not None and not (len(plan.outputs) > 1 and 0 <= plan.row_output.seed < SEEDS):
        raise ValueError(f"row_output is {plan.row_output}, with {len(plan.outputs)} outputs")
    carried = [each for each in (plan.link, plan.quantity) if each is not None]
    if len(carried) != (plan.space != MARGIN) or not all(0 < each.scale < math.inf for each in carried):
        raise ValueError(f"link is {plan.link}, quantity {plan.quantity}, in space {plan.space!r}")
    if plan.quantity is not None and (plan.background_digest is None or plan.quantity.labelled != (plan.space == LOSS)):
        raise ValueError(f"quantity is {plan.quantity}, in space {plan.space!r}, background {plan.background!r}")
    if carried and not plan.additive:
        raise ValueError(f"space is {plan.space!r}, of method {plan.method!r}")
    if plan.top is not None and (plan.top.most < 1 or plan.global_only or not METHODS[plan.method].attributes):
        raise ValueError(f"top is {plan.top}, of method {plan.method!r}")
    if plan.reasons is not None:
        _check_reasons(plan, plan.reasons)
    if plan.values and plan.global_only:
        raise ValueError("there are values of rows, and no rows")
    if plan.background_errors and plan.background_digest is None:
        raise ValueError("there are errors of a background, and no rows of one")
    if [item.part for item in plan.items] != list(range(len(plan.items))):
        raise ValueError("items are not numbered from 0")
    for item in plan.items:
        _check_item(item)
    if not BATCH <= plan.slice_rows <= SLICE_ROWS:
        raise ValueError(f"slice_rows is {plan.slice_rows}, expected {BATCH} to {SLICE_ROWS}")
    if plan.group_rows % plan.slice_rows or not plan.slice_rows <= plan.group_rows <= max_group_rows(plan.slice_rows, 1):
        raise ValueError(f"group_rows is {plan.group_rows}, expected a multiple of slice_rows up to {SLICE_ROWS}")


def _check(plan: Plan, data: bytes) -> None:
    try:
        _check_sense(plan)
    except (TypeError, UsageError) as error:
        raise ValueError(str(error)) from error
    refuse_rewritten(plan, data, sort_keys=True)


def _complete(plan: Plan, data: bytes) -> Plan:
    """Make categories of hashes, and keep what a text of an earlier format is known by."""
    plan = dataclasses.replace(plan, features=tuple(map(_with_hashes, plan.features)))
    if plan.format_version == FORMAT:
        return plan
    text = parse_text(data)
    found = hashlib.sha256(data).hexdigest()
    without = json.dumps({**text, "model": "", "data": "", "items": [], "rejected": []}, indent=1, sort_keys=True)
    named = found if plan.format_version == 1 else hashlib.sha256(without.encode()).hexdigest()  # 0.1's parts were of one plan each
    return dataclasses.replace(plan, earlier=Earlier(found, named))


FILE = JsonFile(Plan, "not a plan of this version", "; choose another output or remove it", _check, take_plan, _complete)


def from_json(text: str | bytes, where: str) -> Plan:
    """Read the plan that ``to_json`` wrote.

    Parameters
    ----------
    where : str
        URI of the text, for the message.
    """
    return FILE.parse(text if isinstance(text, bytes) else text.encode(), where)


def other_run(run: str, differs: str) -> RunConflict:
    """Say that a folder holds another run.

    Parameters
    ----------
    differs : str
        In what, in words.
    """
    return RunConflict(f"{run}: holds another run, different in {differs}; choose another output, or replace it with --if-changed replace")


def commit_plan(run: str, plan: Plan) -> None:
    """Write the plan of a run, or find it written.

    Raises
    ------
    RunConflict
        Another one is there.
    """
    uri = RunFolder(run).plan
    held = create_same(uri, iterate_text(plan, sort_keys=True))
    if held is not None and (other := from_json(held, uri)) != plan:
        raise other_run(run, differences(other, plan))


@lru_cache(maxsize=2)
def read_plan(run: str, plan_digest: str) -> Plan:
    """Read the plan of a run, once in every process.

    Parameters
    ----------
    plan_digest : str
        SHA-256 that the plan has to have, hexadecimal.
    """
    where = RunFolder(run).plan
    text = storage.read(where)
    found = hashlib.sha256(text).hexdigest()
    if found != plan_digest:
        raise InvalidRun(f"{where}: not the plan of this run, got {found[:12]}, expected {plan_digest[:12]}")
    return from_json(text, where)


@lru_cache(maxsize=2)
def read_recipe(run: str, plan_digest: str) -> str:
    """Make the recipe of a run's plan, once in every process.

    Parameters
    ----------
    plan_digest : str
        SHA-256 that the plan has to have, hexadecimal.

    Returns
    -------
    str
        SHA-256, hexadecimal; see `plan.recipe`.
    """
    return recipe(read_plan(run, plan_digest))


def broadcast_recipe(run: str, plan: Plan) -> str:
    """Put where workers read it what they need of a plan: which rows there are, each is told with its work.

    Returns
    -------
    str
        SHA-256 of the recipe, hexadecimal; see `plan.recipe`.
    """
    name = recipe(plan)
    uri = _recipe_uri(run, name)
    if create_same(uri, iterate_text(without_rows(plan), sort_keys=True)) is not None:
        raise InvalidRun(f"{uri}: is damaged; remove it")
    return name


def _recipe_uri(run: str, name: str) -> str:
    return storage.join(RunFolder(run).tables, f"{name}.json")


@lru_cache(maxsize=2)
def open_recipe(run: str, name: str) -> Plan:
    """Read a recipe that was broadcast, once in every process.

    Parameters
    ----------
    name : str
        As `broadcast_recipe` returned it.

    Returns
    -------
    Plan
        Without its rows, see `plan.without_rows`.
    """
    where = _recipe_uri(run, name)
    text = storage.read(where)
    found = hashlib.sha256(text).hexdigest()
    if found != name:
        raise InvalidRun(f"{where}: SHA-256 is {found[:12]}, expected {name[:12]}")
    return from_json(text, where)
