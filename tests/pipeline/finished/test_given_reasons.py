"""Reasons as a table and as letters have what is to be told, of every row, and nothing else."""

import csv

import pyarrow.parquet as pq
import pytest

from leafledger import explain, read_run, write_reasons
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import NoSuchRow, RunConflict, UsageError

REASONS = {
    "direction": "raises",
    "most": 2,
    "never": ["distance"],
    "reason": [{"feature": "delay", "code": "D1", "text": "<Left> {value:.0f} minutes late"}],
    "default": {"text": "=By {feature}"},
}


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    out = tmp_path_factory.mktemp("given") / "run"
    explain(example.model, example.data, out, ids=["flight", "carrier"], reasons=REASONS, values=True, scheduler="serial")
    return out


@pytest.fixture(scope="module")
def rows(run):
    """What was published."""
    return read_run(run).attributions(["flight", "carrier", "reasons"]).to_pylist()


def read_table(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_the_table_has_a_row_for_each_row(run, rows, tmp_path):
    """Ids, and codes and texts by rank; a text that a spreadsheet would run has an apostrophe in front."""
    written = write_reasons(run, csv=tmp_path / "reasons.csv")
    heads, *cells = read_table(tmp_path / "reasons.csv")
    assert heads == ["flight", "carrier", "reason 1 code", "reason 1 text", "reason 2 code", "reason 2 text"]
    assert (written.n_rows, written.n_without, written.letters) == (len(rows), sum(not row["reasons"] for row in rows), None)
    expected = []
    for row in rows:
        told = [part for each in row["reasons"] for part in (each["code"] or "", each["text"].replace("=By", "'=By"))]
        expected.append([str(row["flight"]), str(row["carrier"] or ""), *told, *[""] * (4 - len(told))])
    assert cells == expected
    assert any("D1" in row for row in cells)
    assert (tmp_path / "reasons.csv").read_bytes()[:3] == b"\xef\xbb\xbf"  # by which Excel knows UTF-8


def test_what_is_never_to_be_named_stays_in_the_house(run, tmp_path):
    """Neither the feature nor its values, nor any attribution."""
    write_reasons(run, csv=tmp_path / "reasons.csv", letters=tmp_path / "letters", where={"carrier": "AA"})
    texts = [(tmp_path / "reasons.csv").read_text(), *(path.read_text() for path in (tmp_path / "letters").iterdir())]
    assert not any("distance" in text or "phi" in text for text in texts)


@pytest.mark.parametrize(("template", "ending", "said"), [("text", "txt", "1. <Left> "), ("html", "html", "<li>&lt;Left&gt; ")])
def test_a_letter_for_each_row_is_named_by_its_ids(run, rows, tmp_path, template, ending, said):
    row = next(row for row in rows if row["reasons"] and row["reasons"][0]["code"] == "D1" and row["carrier"])
    where = {"flight": row["flight"]}
    written = write_reasons(run, letters=tmp_path / "letters", template=template, where=where)
    assert written.n_rows == 1
    (letter,) = (tmp_path / "letters").iterdir()
    assert letter.name == f"flight={row['flight']},carrier={row['carrier']}.{ending}"
    text = letter.read_text()
    assert said in text
    assert "(D1)" in text
    assert f"flight: {row['flight']}" in text


def test_a_template_of_ones_own_is_filled_in(run, rows, tmp_path):
    (tmp_path / "own.html.jinja").write_text("<p>{{ ids.flight }}: {% for each in reasons %}{{ each.code }}|{{ each.text }};{% endfor %}</p>")
    row = next(row for row in rows if row["reasons"] and row["reasons"][0]["code"] == "D1")
    write_reasons(run, letters=tmp_path / "letters", template=tmp_path / "own.html.jinja", where={"flight": row["flight"]})
    (letter,) = (tmp_path / "letters").iterdir()
    assert letter.suffix == ".html"
    assert letter.read_text().startswith(f"<p>{row['flight']}: D1|&lt;Left&gt; ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% for %}", "no template: "),
        ("{{ ids.nobody }}", "cannot be filled in: .*nobody.*; a template has ids and reasons, each with code and text"),
        ("{{ phi }}", "cannot be filled in: 'phi' is undefined"),
        ("{{ ids.__class__.__mro__ }}", "cannot be filled in: "),
    ],
)
def test_a_template_that_cannot_be_filled_in_is_refused(run, tmp_path, text, said):
    """In one line; it is filled in where it can reach nothing else."""
    (tmp_path / "own.txt").write_text(text)
    with pytest.raises(UsageError, match=f"own.txt: {said}"):
        write_reasons(run, letters=tmp_path / "letters", template=tmp_path / "own.txt", where={"flight": 1})
    assert not (tmp_path / "letters").exists()


def test_what_cannot_be_written_is_refused(run, example, tmp_path):
    with pytest.raises(UsageError, match="nothing is to be written"):
        write_reasons(run)
    with pytest.raises(UsageError, match="output is 'x', expected one of "):
        write_reasons(run, csv=tmp_path / "a.csv", output="x")
    with pytest.raises(NoSuchRow, match=r"has no row with flight = 999999$"):
        write_reasons(run, csv=tmp_path / "a.csv", where={"flight": 999999})
    explain(example.model, f"{example.data}/month=1", tmp_path / "plain", scheduler="serial")
    with pytest.raises(UsageError, match="has no reasons; explain --reasons FILE writes them"):
        write_reasons(tmp_path / "plain", csv=tmp_path / "a.csv")
    explain(example.model, f"{example.data}/month=1", tmp_path / "alike", ids=["carrier"], reasons=REASONS, scheduler="serial")
    with pytest.raises(UsageError, match="rows have the ids of others; letters need ids that tell rows apart"):
        write_reasons(tmp_path / "alike", letters=tmp_path / "letters")


def test_a_column_s_name_is_no_formula_either(example, tmp_path):
    """Whatever an id is called."""
    data = pq.read_table(f"{example.data}/month=1")
    (tmp_path / "data/month=1").mkdir(parents=True)
    pq.write_table(data.append_column("=1+1", data["flight"]), tmp_path / "data/month=1/a.parquet")
    explain(example.model, tmp_path / "data", tmp_path / "run", ids=["=1+1"], reasons=REASONS, scheduler="serial")
    write_reasons(tmp_path / "run", csv=tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text("utf-8-sig").startswith("'=1+1,reason 1 code")


def test_another_file_is_not_overwritten(run, tmp_path):
    """The same one may be written again."""
    for _ in range(2):
        write_reasons(run, csv=tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("mine")
    with pytest.raises(RunConflict, match=r"a\.csv: there is another file; remove it, or choose another place"):
        write_reasons(run, csv=tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == "mine"


def test_a_page_of_rows_says_that_it_is_for_internal_use(run, tmp_path):
    """And which features nobody outside is to be told."""
    assert main(["show", str(run), "--where", "flight=1234", "--html", str(tmp_path / "row.html")]) == 0
    page = (tmp_path / "row.html").read_text()
    assert "<strong>For internal use.</strong> This page has every feature, distance too, which a customer is never to be told." in page
