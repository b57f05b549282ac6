"""What commands write with ``--json``: one document, strict JSON, with the fields that the documentation has."""

import json
import math
import re
from pathlib import Path

import pandas
import pytest

from leafledger.pipeline.command import cli
from leafledger.pipeline.command import cli as app_
from leafledger.pipeline.command.terminal import documents

KINDS = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict, "null": type(None)}


def strict(text):
    """A document of one line, in which no number is one that JSON does not have."""

    def refuse(word):
        raise ValueError(f"{word} is not JSON")

    assert text.count("\n") == 1
    return json.loads(text, parse_constant=refuse)


def typed(capsys, *arguments):
    """Exit code and document, and standard error."""
    capsys.readouterr()
    code = cli.main([*map(str, arguments), "--json"])
    captured = capsys.readouterr()
    return code, strict(captured.out), captured.err


def is_of(kind, value):
    """A value is of one of the kinds; true is no number."""
    kinds = kind.split(" or ")
    return any(isinstance(value, KINDS[each]) and (each == "boolean" or not isinstance(value, bool)) for each in kinds)


def check(name, document):
    """Its fields are those of the schema, in their order and of their kinds."""
    entries = documents.SCHEMAS[name]
    assert list(document) == [entry.name for entry in entries]
    assert {entry.name for entry in entries if not is_of(entry.kind, document[entry.name])} == set()


@pytest.fixture(scope="module")
def out(example, tmp_path_factory):
    return tmp_path_factory.mktemp("documents") / "{date}"


@pytest.mark.slow
def test_commands_write_what_the_schema_says(example, out, capsys):
    """Each of them, one after the other on one run."""
    told = (example.model, example.data, "--out", out, "--date", "2026-03-02", "--id", "flight", "--scheduler", "serial")
    run = Path(str(out).format(date="2026-03-02"))
    latest = run.parent / "latest.json"
    code, document, _ = typed(capsys, "plan", *told)
    check("plan", document)
    assert (code, document["n_rows"], document["n_files"], document["finished"]) == (0, 3000, 4, False)
    for before in (False, True):
        code, document, _ = typed(capsys, "explain", *told, "--latest", latest)
        check("explain", document)
        assert (code, document["run"], document["n_rows"], document["finished_before"]) == (0, str(run), 3000, before)
        assert document["latest"]["run"] == str(run)
    code, document, _ = typed(capsys, "explain", example.model, example.data, "--out", out, *told[6:], "--dates", "2026-03-02..2026-03-02")
    check("explain --dates", document)
    assert [each["finished_before"] for each in document["runs"]] == [True]
    code, document, _ = typed(capsys, "check", run)
    check("check", document)
    assert (code, document["sound"], document["run"]) == (0, True, str(run))
    code, document, _ = typed(capsys, "show", run, "--where", "flight=7")
    check("show", document)
    other = run.with_name("other")
    assert typed(capsys, "explain", *told[:2], "--out", other, *told[4:])[0] == 0
    code, document, _ = typed(capsys, "drift", other, "--against", run, "--scheduler", "serial")
    check("drift", document)
    assert (code, document["alarms"], document["reference"]) == (0, [], str(run))
    code, document, _ = typed(capsys, "report", other, "--scheduler", "serial")
    check("report", document)
    assert (code, document["size"]) == (0, Path(document["page"]).stat().st_size)
    given = {"direction": "raises", "default": {"text": "By {feature}"}}
    (run.parent / "reasons.json").write_text(json.dumps(given))
    asked = ("--out", run.with_name("told"), "--reasons", run.parent / "reasons.json", "--id", "flight", "--scheduler", "serial")
    assert typed(capsys, "explain", *told[:2], *asked)[0] == 0
    code, document, _ = typed(capsys, "reasons", run.with_name("told"), "--csv", run.parent / "reasons.csv")
    check("reasons", document)
    assert (code, document["n_rows"], document["letters"]) == (0, 3000, None)
    code, document, _ = typed(capsys, "inspect", example.model)
    check("inspect", document)
    given = ("--background", example.data, "--out", run.parent / "effects", "--features", "distance", "--scheduler", "serial")
    code, document, _ = typed(capsys, "effects", example.model, *given)
    check("effects", document)
    assert (code, document["n_rows"], document["found"]) == (0, 3000, False)
    code, document, _ = typed(capsys, "config", "check")
    check("config", document)
    measures = run.parent / "measures.parquet"
    found = typed(capsys, "compare", example.model, example.data, "--methods", "shapley,banzhaf", "--out", measures, "--gap-rows", "5", "--quiet")
    check("compare", found[1])
    assert all(Path(found[1][name]).exists() for name in ("measures", "features", "rows"))
    assert len(found[1]["table"]) == len(pandas.read_parquet(measures))


@pytest.mark.parametrize(
    ("arguments", "code", "kind"),
    [
        (("check", "{out}/none"), 6, "NotFinished"),
        (("check", "{out}/none", "--deeply"), 2, "UsageError"),
        (("plan", "{model}", "nope://x", "--out", "{out}/x"), 2, "UnknownStore"),
        (("plan", "{data}/month=1/data.parquet", "{data}", "--out", "{out}/x"), 8, "UnsupportedModel"),
        (("config", "explode"), 2, "UsageError"),
        (("explode",), 2, "UsageError"),
    ],
)
def test_errors_are_documents_too(example, out, capsys, arguments, code, kind):
    """Beside the line on standard error, whose words they have."""
    names = {"out": out.parent, "model": example.model, "data": example.data}
    found, document, log = typed(capsys, *(argument.format(**names) for argument in arguments))
    check("any, with an error", document)
    assert (found, document["error"]["exit_code"], document["error"]["type"]) == (code, code, kind)
    assert log == f"leafledger: {document['error']['message']}\n"


def test_an_interruption_is_a_document(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("leafledger.pipeline.runs.check.check.check_run", interrupt)
    code, document, _ = typed(capsys, "check", "anywhere")
    assert (code, document["error"]["exit_code"]) == (130, 130)


def test_numbers_that_json_does_not_have(capsys):
    """NaN is null, what is infinite a text; neither is lost in what is nested."""
    documents.write_document({"a": math.nan, "b": [{"c": math.inf}, -math.inf], "d": 0.1, "e": pandas.Timestamp("2026-01-02").date()})
    assert strict(capsys.readouterr().out) == {"a": None, "b": [{"c": "inf"}, "-inf"], "d": 0.1, "e": "2026-01-02"}


def test_every_command_has_a_schema():
    """But what writes a script, and reads arguments of another one."""
    commands = {name for name in app_.app if not name.startswith("-")}
    assert {name.partition(" ")[0] for name in documents.SCHEMAS} - {"any,"} == commands - {"completion"}
    assert all(re.fullmatch(r"[a-z]+( or null)?", entry.kind) for entries in documents.SCHEMAS.values() for entry in entries)
