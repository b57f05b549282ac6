"""Reasons in words for rows that are served: those of a run, laid out as a column for each."""

from typing import Any

import numpy as np
import pyarrow as pa

from leafledger.kernels.methods import METHODS
from leafledger.kernels.slices.buffers import Prepared

from ..display.text import list_some
from ..errors import SchemaMismatch, UsageError
from ..in_memory.explain.attributions import Attributions
from ..in_memory.explain.question import Names, Question
from ..runs.columns.reason_columns import CODE, REASONS, TEXT, make_columns, reason_column_types
from ..runs.columns.reasons import Reasons
from ..runs.columns.reasons_file import read_reasons
from ..runs.columns.top_attributions import feature_of


def check_told(given: Any, question: Question, prepared: Prepared) -> Reasons:
    """Read what is said of each feature, and refuse what a run would refuse, before any row is explained."""
    method, names = METHODS[question.method], question.name_players(None)
    if not method.attributes:
        raise UsageError(f"reasons are of attributions of the margin, of which method {method.name!r} has none")
    features = question.model.features
    used = [features[place].name for place in prepared.bins.read.tolist()]
    told = read_reasons(given, names.players, features, names.groups if method.phi.of_groups else (), used)
    if told.changes is not None:
        raise UsageError("reasons: changes are not served, expected a file without them; leafledger.nearest_changes finds them")
    return told


def tell(found: Attributions, told: Reasons, question: Question, prepared: Prepared, rows: pa.Table) -> dict[str, pa.Array]:
    """Tell the reasons of every row, as columns ``code_1``, ``reason_1``, …, null where there are fewer, and how sure their choice is."""
    names: Names = question.name_players(None)
    if len(found.outputs) > 1:
        raise UsageError(f"reasons are of one output, but the model has {list_some(found.outputs)}; give output, such as output='predicted'")
    if found.players != names.players:
        raise SchemaMismatch(f"rows: columns are {list_some(found.features)}, but reasons are of {list_some(names.features)}; name them alike")
    groups = names.groups if METHODS[found.method].phi.of_groups else ()
    there = {feature.name: feature for feature in names.model.features if feature.name in rows.column_names}
    features = {player: there[name] for player in names.players if (name := feature_of(player, groups)) in there}
    values = {player: rows.column(feature.name).combine_chunks() for player, feature in features.items()}
    phi = found.phi[:, 0].T[prepared.players]
    columns = make_columns(phi, np.zeros((0, *phi.shape)), told, prepared, names.players, features, values, np.dtype(np.float64))
    named = dict(zip(reason_column_types(pa.float64(), False), columns, strict=True))
    listed, laid_out = named.pop(REASONS), dict[str, pa.Array]()
    counts, flat = np.diff(listed.offsets.to_numpy()), listed.flatten()
    for rank in range(told.most):
        place = pa.array(listed.offsets.to_numpy()[:-1] + rank, mask=counts <= rank)
        laid_out |= {f"{CODE}_{rank + 1}": flat.field(CODE).take(place), f"reason_{rank + 1}": flat.field(TEXT).take(place)}
    return laid_out | named
