"""Files whose columns are alike are matched together, and each is refused in its own name."""

import json
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafledger.pipeline.dataset.columns import names as names_
from leafledger.pipeline.dataset.files import matching
from leafledger.pipeline.dataset.files.matching import SHAPES, ExtraColumns, Matching, make_shape
from leafledger.pipeline.errors import SchemaMismatch
from leafledger.pipeline.models import load_ensemble
from leafledger.pipeline.stores.store import Object
from leafledger.pipeline.tables.live_files import Columns, LiveFile
from tests.pipeline.conftest import FEATURES

TYPES = {"month": (pa.int64(), pa.string()), "name": (pa.string(), pa.int64()), "delay": (pa.float32(), pa.string())}


def columns(*others, **changed):
    """Fields of a file that fits, with others."""
    types = {**{name: pa.float64() for name in FEATURES}, "carrier": pa.string(), "name": pa.string(), **changed}
    return pa.schema([*types.items(), *others])


def live(uri, table=None, **partition):
    return LiveFile(Object(uri, 1, ""), tuple(sorted(partition.items())), table)


@pytest.fixture(scope="module")
def model(example):
    return load_ensemble(example.model)


def outcome(matcher, found, file):
    """All that a file is matched to, or why it is refused."""
    try:
        shape = make_shape(found, file)
        matched = matcher.match(shape)
        matcher.check(shape, file)
    except SchemaMismatch as error:
        return str(error)
    return matched.names, matched.by_position, matched.read, matched.in_file, matched.by, matched.types


@st.composite
def files(draw):
    """Files of a few schemas: of other types, orders, columns, indices of pandas, and columns that the path carries."""
    pool = []
    for _ in range(draw(st.integers(1, 3))):
        types = {name: draw(st.sampled_from(kinds)) for name, kinds in TYPES.items()}
        fields = [*columns(**types)]
        fields = fields[draw(st.integers(0, 1)) :] + [pa.field("more", pa.int8())] * draw(st.integers(0, 2))
        fields = fields[:: draw(st.sampled_from([1, -1]))]
        index = [draw(st.sampled_from(["more", "name"])), {"kind": "range", "stop": draw(st.integers(0, 2))}]
        metadata = {"pandas": json.dumps({"index_columns": index})} if draw(st.booleans()) else {"rows": str(draw(st.integers(0, 2)))}
        partition = draw(st.dictionaries(st.sampled_from([FEATURES[0], "name", "delay"]), st.sampled_from(["1", "x", "01", None])))
        pool.append((pa.schema(fields, metadata), partition))
    drawn = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=6))
    return [(found, live(f"file-{number}", **partition)) for number, (found, partition) in enumerate(drawn)]


@given(
    drawn=files(),
    asked=st.sampled_from(
        [ExtraColumns(), ExtraColumns(("name",), ("delay",), ("name",)), ExtraColumns(("more",), ("delay",), ("name",), values=True)]
    ),
)
def test_a_file_is_matched_as_if_it_were_alone(model, drawn, asked):
    """Whatever was matched or refused before it, and in whatever process: the same names, columns and types, or the same words."""
    together = Matching.of(model, asked)
    alone = [outcome(pickle.loads(pickle.dumps(together)), *each) for each in drawn]
    assert [outcome(together, *each) for each in drawn] == alone == [outcome(Matching.of(model, asked), *each) for each in drawn]


def test_columns_that_are_alike_are_matched_once(model, monkeypatch):
    """Also where footers say another number of rows; as long as no more kinds of files take turns than are kept."""
    spelt = []
    monkeypatch.setattr(matching, "spell", lambda *given, _spell=names_.spell: spelt.append(given[2]) or _spell(*given))
    kinds = [columns((f"more {number}", pa.int64())) for number in range(SHAPES)]
    matcher = Matching.of(model, ExtraColumns(ids=("name",)))
    for turn in range(3):
        for number, found in enumerate(kinds):
            outcome(matcher, found.with_metadata({"rows": str(turn)}), live(f"file-{turn}-{number}"))
    assert spelt == [f"file-0-{number}" for number in range(SHAPES)]


def test_every_file_is_refused_in_its_own_name(model):
    """A column that is missing, one of another type, a value that a path carries, and a column that is another one in the table."""
    matcher = Matching.of(model, ExtraColumns())
    fits, renamed = columns(), Columns({"name": 1}, {"name": 2})
    lacking, other = fits.remove(fits.get_field_index("month")), columns(month=pa.string())
    for uri in ("a", "b"):
        assert outcome(matcher, fits, live(uri))[2] == {"delay", "carrier"}  # of which trees have splits
        assert outcome(matcher, lacking, live(uri)).startswith(f"{uri}: column 'month' missing")
        assert outcome(matcher, other, live(uri)) == f"{uri}: column 'month' is string, the model was trained on numbers"
        assert outcome(matcher, lacking, live(uri, month="x")) == f"{uri} (its path): column 'month' is 'x', the model was trained on numbers"
        assert outcome(matcher, lacking, live(uri, month="7"))[1] is False
        assert outcome(matcher, fits, live(uri, renamed)).startswith(f"{uri}: column 'name' is another column than the table's")
