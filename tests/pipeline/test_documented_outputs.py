"""The page of outputs says of every column and field of real files what it is, in its own type, and of none that no file has."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs.fields import fields
from leafledger import compare, explain
from tests.pipeline.conftest import FEATURES
from tests.pipeline.running import attributions

PAGES = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\|(.+)\|$", re.MULTILINE)
TYPES = {
    "float": {"float", "double"},
    "double": {"double"},
    "string": {"string"},
    "int32": {"int32"},
    "int64": {"int64"},
    "boolean": {"bool"},
}


def section(page, heading):
    """The text of a page from a heading to the next of its level."""
    text = (PAGES / page).read_text()
    start = text.index(f"{heading}\n")
    level = heading.split()[0]
    end = re.search(rf"^#{{1,{len(level)}}} ", text[start + len(heading) :], re.MULTILINE)
    said = text[start : start + len(heading) + end.start()] if end else text[start:]
    return re.sub(r"^```\{generated\} fields (.*)\n```$", lambda asked: fields(*asked[1].split()), said, flags=re.MULTILINE)


def documented(text):
    """From every name that tables of a section list to its type in words; names that depend on the run keep their brackets."""
    found = {}
    for row in ROW.findall(text):
        cells = [cell.strip() for cell in row.split(" | ")]
        first = int(len(cells) == 4)  # where a method comes before its columns
        names = cells[first]
        if not names.startswith("`"):
            continue
        kind = cells[first + 1]
        kinds = [kind] if "{" in kind else kind.split(", ")
        listed = re.findall(r"`([^`]+)`", names)
        for k, name in enumerate(listed):
            found[name] = kinds[k] if len(kinds) == len(listed) else kinds[0]
    return found


def match(name, pages):
    """The documented name that a column's is of."""
    if name in pages:
        return name
    return next((written for written in pages if "<" in written and name.startswith(written.partition("<")[0])), None)


@pytest.fixture(scope="module")
def runs(example, tmp_path_factory):
    """Runs with all that can be asked for."""
    out = tmp_path_factory.mktemp("outputs")
    frame = example.frame.assign(
        prediction=example.booster.predict(example.frame[FEATURES].assign(carrier=example.frame["carrier"].astype("category")))
    )
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), out / "data.parquet")
    pq.write_table(pa.Table.from_pandas(frame[FEATURES][:100], preserve_index=False), out / "background.parquet")
    told = {"direction": "raises", "default": {"code": "x", "text": "{feature}"}}
    told |= {"changes": {"threshold": 100.0}, "change": [{"feature": "distance"}]}
    asked = {
        "all": {"ids": "flight", "top": 2, "interactions": 2, "reasons": told, "values": True, "background": out / "background.parquet",
                "background_errors": True},
        "response": {"space": "response", "by": "month"},
        "loss": {"space": "loss", "label": "delay", "by": "month", "background": out / "background.parquet"},
        "r2": {"method": "r2", "label": "delay", "by": "month"},
        "ranker": {"method": "ranker"},
        "curves": {"method": "curves"},
        "gap": {"method": "gap"},
    }  # fmt: skip
    for name, options in asked.items():
        explain(example.model, out / "data.parquet", out / name, scheduler="serial", **options)
    compare(example.model, out / "data.parquet", out / "x.parquet", methods=["shapley", "banzhaf"], ids="flight", scheduler="serial")
    return out, list(asked)


def check(schema, pages, passed=()):
    """Every column is documented in its type; which names were found."""
    found = set()
    for field in schema:
        if field.name in passed:
            continue
        written = match(field.name, pages)
        assert written is not None, f"{field.name} is not documented"
        words = pages[written]
        if words in TYPES:
            assert str(field.type) in TYPES[words], (field, words)
        elif words.startswith("list of {"):
            assert [inner.name for inner in field.type.value_type] == re.findall(r"`(\w+)`", words), field
        elif words.startswith("list of"):
            assert pa.types.is_list(field.type), field
        found.add(written)
    return found


@pytest.mark.slow
def test_columns_of_parts(runs):
    out, names = runs
    pages = documented(section("outputs.md", "## attributions/part-NNNNN.parquet")) | documented(section("reasons.md", "## What is written"))
    found = set()
    for name in names:
        found |= check(attributions(out / name).schema, pages, ("flight",))
    never = set(pages) - found
    assert never == {"output"}, never  # of several outputs, see tests of selection


def test_columns_of_summaries(runs):
    out, names = runs
    pages, found = documented(section("outputs.md", "## summary")), set()
    for name in names:
        for path in (out / name / "summary").glob("*.parquet"):
            table = pq.read_table(path)
            found |= check(table.schema, pages, ("month",))
            assert pd.DataFrame(json.loads(path.with_suffix(".json").read_text())).columns.tolist() == table.column_names
    assert set(pages) == found


def test_fields_of_the_manifest(runs):
    out, names = runs
    pages = documented(section("outputs.md", "## manifest.json"))
    for name in names:
        written = set(json.loads((out / name / "manifest.json").read_text()))
        # These runs have no number for missing values, no sets of features, and no rows were forgotten; a quantity has that of losses.
        assert written | {"missing", "forgotten", "sets", "quantity"} == set(pages)
        assert ("quantity" in written) == (name == "loss")


def test_columns_of_comparisons(runs):
    out, _ = runs
    for file, heading in (("x", "### x.parquet"), ("x.features", "### x.features.parquet"), ("x.rows", "### x.rows.parquet")):
        pages = documented(section("later.md", heading))
        found = check(pq.read_schema(out / f"{file}.parquet"), pages, ("flight",))
        assert set(pages) == found


def test_what_stands_in_a_parts_metadata(runs):
    """Units and base values, so that a part alone says what its numbers are."""
    out, names = runs
    for name in names:
        manifest = json.loads((out / name / "manifest.json").read_text())
        said = json.loads(pq.read_metadata(out / name / "attributions/part-00000.parquet").metadata[b"leafledger"])
        assert (said["space"], list(said["base"].values())) == (manifest["space"], manifest["base"])
        assert np.isfinite(manifest["base"]).all()
