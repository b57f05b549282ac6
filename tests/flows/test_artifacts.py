"""What Prefect shows of a run: its first features, what interacts, progress at most once a second; a server that is away costs nothing else."""

import json
import re
from types import SimpleNamespace

import pyarrow as pa
import pytest

import leafledger
from leafledger.flows import artifacts as shown_by_prefect
from leafledger.flows.explain import explain
from leafledger.pipeline.progress import Work
from tests.flows.reading import artifacts_of, contents


def test_the_report_shows_importance_outputs_and_progress(finished, client):
    """Artifacts: the top features as the summary has them, a link to the folder, and progress at its end."""
    state, out = finished
    artifacts = artifacts_of(client, state)
    summary = json.loads((out / "summary" / "importance.json").read_text())
    assert json.loads(artifacts["leafledger-importance"].data) == sorted(summary, key=lambda row: row["rank"])
    assert artifacts[shown_by_prefect.key_of(shown_by_prefect.OUTPUTS)].data == f"[{out}]({out.as_uri()})"
    assert artifacts[shown_by_prefect.key_of(shown_by_prefect.PROGRESS)].data == 100
    assert artifacts[shown_by_prefect.key_of(shown_by_prefect.PROGRESS)].type == "progress"


def test_groups_and_interactions_are_reported(server, client, example, tmp_path):
    """The flow takes a partition and interactions; what interacts most is a table of its own, absent where it was not asked for."""
    arguments = {"partition": {"when": ["hour", "delay"]}, "interactions": "all", "method": "semivalue", "parameters": {"atoms": [[0.25, 1], [1, 2]]}}
    state = explain(example.model, example.data, str(tmp_path / "run"), scheduler="serial", **arguments, return_state=True)
    leafledger.explain(example.model, example.data, tmp_path / "plain", scheduler="serial", **arguments)
    assert contents(tmp_path / "run") == contents(tmp_path / "plain")
    artifacts = artifacts_of(client, state)
    summary = json.loads((tmp_path / "run" / "summary" / "interactions.json").read_text())
    assert [(row["first"], row["second"]) for row in summary] == [("distance", "when")]
    assert json.loads(artifacts["leafledger-interactions"].data) == summary


@pytest.mark.parametrize("method", ["ranker", "curves", "gap"])
def test_a_ranking_s_run_is_reported(server, client, example, tmp_path, method):
    """Its first features are a table; its objective, step by step, is one too, in its own order."""
    state = explain(example.model, example.data, str(tmp_path / "run"), method=method, scheduler="serial", return_state=True)
    assert state.is_completed()
    artifacts = artifacts_of(client, state)
    summaries = sorted(path.stem for path in (tmp_path / "run" / "summary").glob("*.json"))
    for name in summaries:
        written = json.loads((tmp_path / "run" / "summary" / f"{name}.json").read_text())
        shown = json.loads(artifacts[shown_by_prefect.key_of(name)].data)
        scores = [row for row in written if row.get("rank") == 0]
        ranked = sorted((row for row in written if row.get("rank") != 0), key=lambda row: row.get("rank", 0))
        assert shown == [*ranked[: shown_by_prefect.TOP], *scores]


def test_shares_of_r2_are_reported(server, client, example, tmp_path):
    """The flow takes labels and groups; shares of all rows and of every group are tables, and the bytes are those of a plain run."""
    arguments = {"method": "r2", "label": "late", "by": ["carrier"], "missing_labels": "refuse"}
    state = explain(example.model, example.data, str(tmp_path / "run"), scheduler="serial", **arguments, return_state=True)
    leafledger.explain(example.model, example.data, tmp_path / "plain", scheduler="serial", **arguments)
    assert contents(tmp_path / "run") == contents(tmp_path / "plain")
    artifacts = artifacts_of(client, state)
    for name, n_rows in (("r2", 3), ("r2_by", 6)):
        summary = json.loads((tmp_path / "run" / "summary" / f"{name}.json").read_text())
        shown = json.loads(artifacts[shown_by_prefect.key_of(name)].data)
        assert shown == sorted(summary, key=lambda row: row["rank"])
        assert len(shown) == n_rows


def test_a_report_without_interactions_has_no_table_of_them(finished, client):
    """What was not asked for is not shown."""
    state, _ = finished
    keys = set(artifacts_of(client, state))
    assert "leafledger-importance" in keys
    assert "leafledger-interactions" not in keys


def test_progress_asks_the_server_once_a_second_at_most(tmp_path, monkeypatch):
    """However fast parts are done, an update is sent a second after the last one or at the end; a server that is away stops nothing."""
    sent, clock, warned = [], iter([0.0, 0.4, 0.9, 1.1, 1.5]), []

    def update(artifact, percent):
        sent.append(percent)
        raise ConnectionError("away")

    monkeypatch.setattr(shown_by_prefect, "create_progress_artifact", lambda *_, **__: "id")
    monkeypatch.setattr(shown_by_prefect, "update_progress_artifact", update)
    monkeypatch.setattr(shown_by_prefect, "get_run_logger", lambda: SimpleNamespace(warning=lambda *words: warned.append(words)))
    monkeypatch.setattr(shown_by_prefect.time, "monotonic", lambda: next(clock))
    said = shown_by_prefect.show_progress(Work("explaining", str(tmp_path / "run"), n_items=4, n_rows=400))
    for _ in range(4):
        said(SimpleNamespace(n_rows=100))
    assert sent == [75.0, 100.0]
    assert len(warned) == 2


def test_a_server_that_is_away_costs_what_is_shown_and_nothing_else(finished, example, tmp_path, monkeypatch):
    """Neither progress nor summaries nor the link to the outputs can be shown: the run is published, and the flow completed."""

    def away(*_, **__):
        raise ConnectionError("away")

    for name in ("create_progress_artifact", "create_table_artifact", "create_link_artifact"):
        monkeypatch.setattr(shown_by_prefect, name, away)
    state = explain(example.model, example.data, str(tmp_path / "run"), ids=["flight"], scheduler="serial", return_state=True)
    assert state.is_completed()
    assert contents(tmp_path / "run") == contents(finished[1])


@pytest.fixture
def shown(monkeypatch):
    """Artifacts as they would be sent to a server, by their keys."""
    found = {}
    for kind in ("table", "link", "progress"):
        monkeypatch.setattr(shown_by_prefect, f"create_{kind}_artifact", lambda *given, key, **named: found.update({key: (given, named)}))
    return found


def test_the_first_of_every_output_are_a_table(shown):
    """By rank, where rows have one; in their own order else. The key is what Prefect allows."""
    ranked = [{"output": output, "feature": f"f{j}", "rank": 15 - j} for output in ("no", "yes") for j in range(15)]
    steps = [{"step": j} for j in range(15)]
    shown_by_prefect.show_summaries("run", {"r2_by": pa.Table.from_pylist(ranked), "steps": pa.Table.from_pylist(steps)})
    assert list(shown) == ["leafledger-r2-by", "leafledger-steps"]
    (table,), _ = shown["leafledger-r2-by"]
    assert [(row["output"], row["rank"]) for row in table] == [(output, rank) for output in ("no", "yes") for rank in range(1, 11)]
    (table,), _ = shown["leafledger-steps"]
    assert table == steps[:10]


def test_scores_stand_behind_features(shown):
    """What a ranking method measures has rank 0: it came before the features, and left the last of them out."""
    scores = ["insertion", "deletion"]
    areas = [{"output": "0", "feature": name, "rank": 0} for name in scores] + [{"output": "0", "feature": f"f{j}", "rank": j + 1} for j in range(12)]
    shown_by_prefect.show_summaries("run", {"areas": pa.Table.from_pylist(areas)})
    (table,), _ = shown["leafledger-areas"]
    assert [row["feature"] for row in table] == [*(f"f{j}" for j in range(10)), *scores]


@pytest.mark.parametrize(("out", "link"), [("s3://bucket/run", "s3://bucket/run"), ("/a b/run", "file:///a%20b/run")])
def test_outputs_are_linked_to(shown, out, link):
    """A folder of this machine as a browser opens it."""
    shown_by_prefect.show_outputs(out, SimpleNamespace(counted="1,234 rows in 2 parts", rejected=(), place="", sha256="abc"))
    _, named = shown[shown_by_prefect.key_of(shown_by_prefect.OUTPUTS)]
    assert (named["link"], named["link_text"]) == (link, out)
    assert named["description"] == "1,234 rows in 2 parts: attributions/, summary/, manifest.json; SHA-256 of manifest.json abc"


def test_outputs_say_where_they_lie_and_what_is_missing(shown):
    """Of a run that an earlier version put in the place of another they lie below it; whoever opens a partly rejected one is told what is missing."""
    for place, below in (("replacements/01", "replacements/01/"), ("_replacements/01", "")):
        shown_by_prefect.show_outputs("run", SimpleNamespace(counted="5 rows in 1 part", rejected=(1,), place=place, sha256="abc"))
        _, named = shown[shown_by_prefect.key_of(shown_by_prefect.OUTPUTS)]
        said, _, rest = named["description"].partition(": ")
        where, missing, digest = rest.split("; ")
        assert (said, where) == ("5 rows in 1 part", f"{below}attributions/, {below}summary/, manifest.json")
        assert (missing, digest) == (f"1 piece of the data rejected, see {below}rejected.json", "SHA-256 of manifest.json abc")


def test_names_are_shown_as_they_are(shown):
    """Of folders and features, whatever stands in them: no markup and no control characters."""
    shown_by_prefect.show_outputs("s3://b/[x](y) \x1b", SimpleNamespace(counted="1 row in 1 part", rejected=(), place="", sha256="abc"))
    _, named = shown[shown_by_prefect.key_of(shown_by_prefect.OUTPUTS)]
    assert (named["link"], named["link_text"]) == ("s3://b/%5Bx%5D%28y%29%20%1B", r"s3://b/\[x\](y) \\x1b")
    shown_by_prefect.show_summaries("a*b", {"importance": pa.table({"feature": ["\x1b[31m"], "rank": [1]})})
    (table,), named = shown["leafledger-importance"]
    assert table == [{"feature": "\\x1b[31m", "rank": 1}]
    assert named["description"] == r"importance: the first 10 per output of a\*b"


def test_nothing_to_do_is_done(shown):
    """A stage of no rows, which no piece will tell of, starts at its end."""
    for n_rows, percent in ((0, 100.0), (7, 0.0)):
        shown_by_prefect.show_progress(Work("explaining", "run", n_items=1, n_rows=n_rows))
        assert shown[shown_by_prefect.key_of(shown_by_prefect.PROGRESS)] == ((percent,), {"description": "explaining: run"})


def test_artifacts_of_deployments_have_keys_of_their_own(monkeypatch):
    """Prefect takes lower case, digits and dashes alone; names that are alike but for others are told apart."""

    def key_of(name):
        monkeypatch.setattr(shown_by_prefect, "runtime", SimpleNamespace(deployment=SimpleNamespace(name=name), flow_run=SimpleNamespace(id=name)))
        return shown_by_prefect.key_of("r2_by")

    assert (key_of(None), key_of("a-b")) == ("leafledger-r2-by", "leafledger-a-b-r2-by")
    told_apart = [key_of(name) for name in ("Nächtlich (EU)", "%", "a b", "A-b", "夜間", "毎晩")]
    assert len({*told_apart, key_of(None), key_of("a-b")}) == 8
    assert all(re.fullmatch(r"leafledger(-[a-z0-9]+)+-r2-by", key) for key in told_apart)
