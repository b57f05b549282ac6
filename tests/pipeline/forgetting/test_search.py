"""What counts as holding a value: rows, texts as words, and bytes; what only looks like it does not."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger.pipeline.forgetting.search import Holding, Sought, list_objects, search, search_object

NAME, SHORT = Sought("customer", "person-00123"), Sought("customer", 17)


def found(path, sought):
    held = search_object(str(path), sought)
    assert held is None or held.uri == str(path)
    return None if held is None else held.what


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("person-00123 was here", True),
        ("person-001234", False),
        ("aperson-00123", False),
        ("<!DOCTYPE html><td>customer</td><td>person&#45;00123</td>", True),
        ('<a title="person-00123">', True),
        ('{"row": "person-00123"}', True),
        ('{"person-00123": 1}', True),
        ('{"a": [1, {"b": ["x", "path/person-00123/y"]}]}', True),
        ('{"a": 1}\n{"add": {"stats": "{\\"min\\": \\"person-00123\\"}"}}\n', True),
        ('{"a": "person"}', False),
        ("", False),
    ],
)
def test_a_long_value_is_found_anywhere(tmp_path, text, held):
    """As a word."""
    (tmp_path / "object").write_text(text)
    assert found(tmp_path / "object", NAME) == ("names it" if held else None)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ('{"size": 17, "sizes": [17], "rows": "17"}', False),
        ('{"customer": 17}', True),
        ('{"customer": [17]}', True),
        ('{"ids": {"customer": "17"}}', True),
        ('{"partition": [["customer", "17"]]}', True),
        ('{"partition": [["customer", "170"]]}', False),
        ('{"uri": "data/customer=17/x.parquet"}', True),
        ('{"uri": "data/customer=171/x.parquet"}', False),
        ("<!DOCTYPE html><h2>row customer = 17, day = 3</h2>", True),
        ("<!DOCTYPE html><td>customer</td><td>17</td>", True),
        ("<!DOCTYPE html><td>rows</td><td>17</td>", False),
    ],
)
def test_a_short_value_is_found_beside_its_column(tmp_path, text, held):
    """Else it would be in every list of sizes."""
    (tmp_path / "object").write_text(text)
    assert found(tmp_path / "object", SHORT) == ("names it" if held else None)


def test_rows_are_counted(tmp_path):
    """By the column's own type, whatever it is, and where a feature's values are called by its name."""
    for k, kind in enumerate((pa.int64(), pa.int8(), pa.float32(), pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))):
        column = pa.array([16, 17, None, 17]).cast(pa.string()).cast(kind) if k > 2 else pa.array([16, 17, None, 17]).cast(kind)
        pq.write_table(pa.table({"customer": column, "amount": [17, 17, 17, 17]}), tmp_path / f"{k}.parquet")
        assert found(tmp_path / f"{k}.parquet", SHORT) == "2 rows"
    pq.write_table(pa.table({"value_customer": [1, 17], "amount": [17, 17]}), tmp_path / "values.parquet")
    assert found(tmp_path / "values.parquet", SHORT) == "1 row"
    pq.write_table(pa.table({"amount": [17, 17]}), tmp_path / "amounts.parquet.own")
    assert found(tmp_path / "amounts.parquet.own", SHORT) is None


def test_texts_of_parquet_are_found_at_any_depth(tmp_path):
    """In lists of records, in dictionaries that keep a value that no row has, in views, in what the footer says and in its statistics."""
    deep = pa.array([[{"feature": "name", "value": "person-00123"}], None])
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["other", "person-00123"]))
    view = pa.array(["x", "person-00123"]).cast(pa.string_view())
    for name, column in {"deep": deep, "dictionary": dictionary, "view": view}.items():
        pq.write_table(pa.table({name: column, "n": [1, 2]}), tmp_path / f"{name}.parquet", compression="zstd")
        assert found(tmp_path / f"{name}.parquet", NAME) == "names it"
    for said in ('{"states": ["person-00123"]}', "person-00123"):
        table = pa.table({"n": [1]}).replace_schema_metadata({"leafledger": said})
        pq.write_table(table, tmp_path / "footer.parquet")
        assert found(tmp_path / "footer.parquet", NAME) == "names it"
    pq.write_table(pa.table({"name": ["person-0012", "person-001234"]}), tmp_path / "others.parquet", compression="none")
    assert found(tmp_path / "others.parquet", Sought("customer", "person-0013")) is None


def test_texts_are_found_in_every_kind_of_list_and_in_bytes(tmp_path):
    """In keys and values of maps, in list views, and where an id is bytes; compressed, so that the object's own bytes do not have it."""
    text = "".join(f"person-{i:05}" for i in range(1, 200))  # what bytes are compressed by
    columns = {
        "keys": pa.array([[(text, "x")], [("person-00123", "x")]], pa.map_(pa.string(), pa.string())),
        "items": pa.array([[("x", text)], None, [("x", "person-00123")]], pa.map_(pa.string(), pa.string())),
        "view": pa.array([[text], ["person-00123"]], pa.list_view(pa.string())),
        "large_view": pa.array([[text], ["person-00123"]], pa.large_list_view(pa.string())),
        "binary": pa.array([text.encode(), b"\xff person-00123", None]),
        "large_binary": pa.array([text.encode(), b"person-00123"], pa.large_binary()),
        "binary_view": pa.array([text.encode(), b"person-00123"], pa.binary_view()),
        "fixed": pa.array([b"person-00001", b"person-00123"], pa.binary(12)),
        "coded": pa.array([text.encode(), b"person-00123"]).dictionary_encode(),
    }
    for name, column in columns.items():
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({name: column}), path, compression="zstd", write_statistics=False)
        assert found(path, NAME) == "names it", name
        pq.write_table(pa.table({name: column.slice(0, 1)}), path, compression="zstd", write_statistics=False)
        assert name == "coded" or found(path, Sought("customer", "person-90123")) is None, name


def test_damaged_objects_are_searched_by_their_bytes(tmp_path):
    """Such as a part that was cut, or a pickle of somebody."""
    pd.to_pickle(["person-00123"], tmp_path / "rows.pickle")
    pq.write_table(pa.table({"name": ["person-00123"] * 3}), tmp_path / "whole.parquet", compression="none")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:-9])
    assert found(tmp_path / "cut.parquet", NAME) == found(tmp_path / "rows.pickle", NAME) == "names it"


def test_all_objects_are_searched_once(tmp_path):
    """Hidden ones too; empty ones and those that are gone by then hold nothing."""
    for name in (".hidden/a.json", "_replacements/x/plan.json.own", "b.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps({"customer": "person-00123"}))
    (tmp_path / ".lock").touch()
    uris = sorted(list_objects(str(tmp_path)))
    assert uris == [f"{tmp_path}/{name}" for name in (".hidden/a.json", "_replacements/x/plan.json.own", "b.json")]
    n, held = search([*uris, *uris, f"{tmp_path}/gone"], NAME)
    assert (n, held) == (4, [Holding(uri, "names it") for uri in uris])
    assert list(list_objects(f"{tmp_path}/nowhere")) == []
