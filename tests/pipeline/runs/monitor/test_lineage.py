"""Lineage is OpenLineage's, by its own schemas; it goes where it was asked to go, and costs no run."""

import json
import shutil
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import referencing

from leafledger import explain
from leafledger.pipeline.errors import LeafledgerError, UsageError
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.monitor import lineage
from leafledger.pipeline.runs.monitor.attempt import Attempt
from leafledger.pipeline.runs.monitor.lineage import emit_lineage, name_dataset, split_version
from leafledger.pipeline.runs.records.provenance import FlowRun
from tests.pipeline.conftest import FEATURES

SCHEMAS = [json.loads(path.read_text()) for path in sorted((Path(__file__).parents[3] / "openlineage").glob("*.json"))]
REGISTRY = referencing.Registry().with_resources(
    [(schema["$id"], referencing.Resource.from_contents(schema, referencing.jsonschema.DRAFT202012)) for schema in SCHEMAS]
)


def facets_of(event):
    """Every facet of an event, wherever it is."""
    found = [*event["run"]["facets"].values(), *event["job"]["facets"].values()]
    for each in (*event["inputs"], *event["outputs"]):
        for kind in ("facets", "inputFacets", "outputFacets"):
            found += each.get(kind, {}).values()
    return found


def check(event):
    """Refuse what OpenLineage's schemas refuse, of the event and of each facet by the schema that it names."""
    for schema, held in [(event["schemaURL"], event), *((facet["_schemaURL"], facet) for facet in facets_of(event))]:
        assert schema.partition("#")[0] in {each["$id"] for each in SCHEMAS}, schema
        validator = jsonschema.Draft202012Validator({"$ref": schema}, registry=REGISTRY, format_checker=jsonschema.FormatChecker())
        validator.validate(held)


def lines(path):
    events = [json.loads(line) for line in path.read_text().splitlines()]
    for event in events:
        check(event)
    return events


@pytest.fixture
def server():
    """A server that takes events, or answers with another status, headers and a body that comes byte by byte; whoever asks for a page gets one."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.headers.get("Authorization"), json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(status[0])
            for header in status[1:]:
                self.send_header(*header)
            self.end_headers()
            for _ in range(drips[0]):
                self.wfile.write(b"x")
                time.sleep(0.1)

        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    got, status, drips = [], [201], [0]
    with HTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}", got, status, drips
        listening.shutdown()
        thread.join()


@pytest.mark.slow
def test_events_are_openlineages(example, tmp_path):
    """Two for each attempt, of one run of a job that is called the same for every date; a schema and each feature's attribution at the end."""
    file, out = tmp_path / "events.ndjson", tmp_path / "{date}"
    manifest = explain(example.model, example.data, out, date="2026-03-02", ids="flight", background=example.data, scheduler="serial", lineage=file)
    start, complete = lines(file)
    assert [start["eventType"], complete["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert complete["job"] == start["job"]
    assert (start["job"]["namespace"], start["job"]["name"]) == ("leafledger", str(out))
    data, model, background = complete["inputs"]
    assert [(each["namespace"], each["name"]) for each in (data, model)] == [("file", example.data), ("file", example.model)]
    assert data["inputFacets"]["inputStatistics"]["rowCount"] == manifest.n_rows
    assert {field["name"]: field.get("type") for field in data["facets"]["schema"]["fields"]} == {
        "distance": "number", "delay": "number", "carrier": "category", "month": "number", "flight": None
    }  # fmt: skip
    assert model["facets"]["version"]["datasetVersion"] == manifest.model_digest
    assert background["name"] == example.data
    parts, summaries = complete["outputs"]
    assert [each["name"] for each in (parts, summaries)] == [f"{tmp_path}/2026-03-02/{name}" for name in ("attributions", "summary")]
    assert parts["outputFacets"]["outputStatistics"]["rowCount"] == manifest.n_rows
    assert parts["outputFacets"]["outputStatistics"]["size"] == sum(entry["size"] for entry in manifest.parts)
    columns = parts["facets"]["columnLineage"]["fields"]
    for name in FEATURES:
        (source,) = columns[f"phi_{name}"]["inputFields"]
        assert (source["namespace"], source["name"], source["field"]) == ("file", example.data, name)
        assert source["transformations"][0]["type"] == "DIRECT"
    explain(example.model, example.data, out, date="2026-03-02", ids="flight", background=example.data, scheduler="serial", lineage=file)
    assert [event["eventType"] for event in lines(file)] == ["START", "COMPLETE"] * 2


@pytest.mark.slow
def test_a_run_that_is_kept_is_of_what_it_was_made_of(example, tmp_path):
    """Not of what was asked for in its place."""
    made = {"scheduler": "serial", "if_changed": "keep"}
    manifest = explain(example.model, example.data, tmp_path / "run", **made)
    model = tmp_path / Path(example.model).name
    shutil.copy(example.model, model)
    explain(model, f"{example.data}/month=2", tmp_path / "run", precision="float64", lineage=tmp_path / "events", **made)
    complete = lines(tmp_path / "events")[-1]
    assert [each["name"] for each in complete["inputs"]] == [example.data, example.model]
    assert complete["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == manifest.n_rows
    parts = complete["outputs"][0]["facets"]
    assert {field["name"]: field["type"] for field in parts["schema"]["fields"]}["phi_delay"] == "float"
    assert parts["columnLineage"]["fields"]["phi_delay"]["inputFields"][0]["name"] == example.data


def test_summaries_alone_have_no_rows(example, tmp_path):
    """Nor the parts beside them, which are empty."""
    explain(example.model, example.data, tmp_path / "run", global_only=True, scheduler="serial", lineage=tmp_path / "events")
    outputs = lines(tmp_path / "events")[-1]["outputs"]
    assert ["rowCount" in each["outputFacets"]["outputStatistics"] for each in outputs] == [False, False]


def test_losses_are_of_labels_and_weights(example, tmp_path):
    """All of the parts' columns, by the data set; each loss of its label too."""
    explain(
        example.model, example.data, tmp_path / "run", method="r2", label="delay", weight="flight", scheduler="serial", lineage=tmp_path / "events"
    )
    columns = lines(tmp_path / "events")[-1]["outputs"][0]["facets"]["columnLineage"]
    assert [each["field"] for each in columns["dataset"]] == [*FEATURES, "flight"]
    assert [each["field"] for each in columns["fields"]["loss_carrier"]["inputFields"]] == ["carrier", "delay"]


def test_a_run_in_the_place_of_another_has_its_name(example, tmp_path):
    """Outputs are called by the output's folder from the beginning on, wherever below it they lie."""
    for precision in ("float32", "float64"):
        made = {"precision": precision, "if_changed": "replace", "scheduler": "serial", "lineage": tmp_path / "events"}
        manifest = explain(example.model, example.data, tmp_path / "run", **made)
    assert manifest.place
    found = [[each["name"] for each in event["outputs"]] for event in lines(tmp_path / "events")]
    assert found == [[f"{tmp_path}/run/{name}" for name in ("attributions", "summary")]] * 4


def create_delta(rows, folder):
    import deltalake

    deltalake.write_deltalake(folder / "rows", rows)
    return str(folder / "rows"), ("file", f"{folder}/rows"), "0"


def create_iceberg(rows, folder):
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("nights")
    catalog.create_namespace("prod")
    table = catalog.create_table("prod.rows", schema=rows.schema)
    table.append(rows)
    return "iceberg:nights.prod.rows", ("iceberg", "nights.prod.rows"), table.metadata_location.rpartition("/")[2]


@pytest.mark.slow
def test_a_table_has_one_name_in_all_versions(example, tmp_path, kind):
    """Its version is said besides once it is known; columns are traced to that name too."""
    rows = pq.read_table(f"{example.data}/month=2", partitioning=None)
    rows = rows.append_column("month", pa.array([2] * rows.num_rows))
    create = create_delta if kind.table == "delta" else create_iceberg
    data, named, version = create(rows, tmp_path)
    explain(example.model, data, tmp_path / "run", scheduler="serial", lineage=tmp_path / "events")
    start, complete = lines(tmp_path / "events")
    assert [(each["inputs"][0]["namespace"], each["inputs"][0]["name"]) for each in (start, complete)] == [named] * 2
    assert complete["inputs"][0]["facets"]["version"]["datasetVersion"] == version
    source = complete["outputs"][0]["facets"]["columnLineage"]["fields"]["phi_delay"]["inputFields"][0]
    assert (source["namespace"], source["name"]) == named


def test_versions_are_taken_off_names():
    assert split_version("s3://bucket/rows@v12") == ("s3://bucket/rows", "12")
    assert split_version("/rows/metadata/v3.metadata.json") == ("/rows", "v3.metadata.json")
    for other in ("/rows", "/me@home/rows", "/rows@v1/x.parquet", "iceberg:nights.prod.rows", "/metadata/x.json"):
        assert split_version(other) == (other, None)


def test_a_run_that_fails_says_so(example, tmp_path):
    file = tmp_path / "events.ndjson"
    with pytest.raises(LeafledgerError) as raised:
        explain(example.model, tmp_path / "missing", tmp_path / "run", scheduler="serial", lineage=file)
    _, failed = lines(file)
    assert failed["eventType"] == "FAIL"
    assert failed["run"]["facets"]["errorMessage"]["message"] == str(raised.value)
    assert [each["name"] for each in failed["inputs"]] == [str(tmp_path / "missing"), example.model]


def test_a_server_gets_them_with_its_key(example, tmp_path, server, monkeypatch):
    """At the endpoint of OpenLineage, or the one that is named; without a key none is sent."""
    url, got, _, _ = server
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", lineage=url)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "canary\n")  # as a secret that is read from a file
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "nights")
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", lineage=f"{url}/own/place?tenant=a")
    assert [(path, key, event["eventType"], event["job"]["namespace"]) for path, key, event in got] == [
        ("/api/v1/lineage", None, "START", "leafledger"),
        ("/api/v1/lineage", None, "COMPLETE", "leafledger"),
        ("/own/place?tenant=a", "Bearer canary", "START", "nights"),
        ("/own/place?tenant=a", "Bearer canary", "COMPLETE", "nights"),
    ]
    for _, _, event in got:
        check(event)
        assert "canary" not in json.dumps(event)


def test_nothing_is_sent_unless_it_is_asked_for(example, tmp_path, server, monkeypatch):
    """Also where OpenLineage's own variables name a server."""
    url, got, _, _ = server
    monkeypatch.setenv("OPENLINEAGE_URL", url)
    explain(example.model, example.data, tmp_path / "run", scheduler="serial")
    assert got == []


@pytest.mark.slow
def test_a_server_that_refuses_costs_a_warning(example, tmp_path, server, caplog):
    """And one that is away."""
    url, _, status, _ = server
    status[0] = 400
    explain(example.model, example.data, tmp_path / "run", scheduler="serial", lineage=url)
    explain(example.model, example.data, tmp_path / "away", scheduler="serial", lineage="http://127.0.0.1:9")
    said = [entry.getMessage() for entry in caplog.records if entry.name == "leafledger"]
    assert [line.split(" of the run")[0] for line in said] == [
        *(f"{url}: event {state}" for state in ("START", "COMPLETE")),
        *(f"http://127.0.0.1:9: event {state}" for state in ("START", "COMPLETE")),
    ]
    assert all("\n" not in line for line in said)


@pytest.fixture
def send(example, tmp_path):
    """Send the two events of a run that is not made to a server, and give what was warned of, without the URL."""

    def call(url):
        attempt = Attempt()
        with emit_lineage(make_job(example.model, example.data, tmp_path / "run", Options(lineage=url)), attempt):
            pass
        return [said.removeprefix(f"{url}: event ").replace(" of the run's lineage was not sent: ", " ") for said in attempt.warned]

    return call


def test_a_key_that_no_header_takes_is_refused_and_not_shown(send, server, monkeypatch):
    """What would refuse the header quotes it, and warnings go to logs."""
    url, got, _, _ = server
    for key in ("cana\nry", "canary\x1b", "canäry"):
        monkeypatch.setenv("OPENLINEAGE_API_KEY", key)
        with pytest.raises(UsageError, match=r"^OPENLINEAGE_API_KEY in the environment has .*, expected printable ASCII$"):
            send(url)
    assert got == []


def test_a_warning_has_no_key(send, server, monkeypatch):
    """Whatever a server says."""
    url, _, status, _ = server
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "canary")
    status[:] = [302, ("Location", "/login/canary")]
    assert [("canary" in said, "/login/***" in said) for said in send(url)] == [(False, True)] * 2


def test_a_query_and_a_colon_are_kept(send, server):
    """Also without a path, and where what is before a colon could be taken for a scheme."""
    url, got, _, _ = server
    for path in ("?tenant=a", "/v1:send"):
        assert send(f"{url}{path}") == []
    assert [path for path, _, _ in got] == ["/api/v1/lineage?tenant=a"] * 2 + ["/v1:send"] * 2


def test_a_redirect_costs_a_warning(send, server):
    """The page behind it says that all is well, and takes no event."""
    url, got, status, _ = server
    status[:] = [302, ("Location", "/login")]
    assert send(url) == [f"{state} answered 302, to go to /login; expected no redirect" for state in ("START", "COMPLETE")]
    assert len(got) == 2


@pytest.mark.slow
def test_a_server_that_asks_for_patience_gets_three_tries(send, server):
    """And not what it asks for, which may be hours."""
    url, got, status, _ = server
    status[:] = [503, ("Retry-After", "30")]
    began = time.monotonic()
    assert [said.split()[0] for said in send(url)] == ["START", "COMPLETE"]
    assert time.monotonic() - began < 10
    assert len(got) == 6


def test_an_answer_that_never_ends_is_not_waited_for(send, server, monkeypatch):
    """No byte of it comes too late, so that no time-out of the client's ends it."""
    url, _, _, drips = server
    drips[0] = 12
    monkeypatch.setattr(lineage, "PATIENCE", 0.3)
    assert send(url) == [f"{state} no whole answer within 0.3 seconds" for state in ("START", "COMPLETE")]


def test_the_flow_run_is_the_parent(example, tmp_path):
    file = tmp_path / "events.ndjson"
    job = make_job(example.model, example.data, tmp_path / "run", Options(lineage=str(file)))
    flow = FlowRun("2026-03-02", "01943c5e-7b1a-7000-8000-000000000000", "nightly")
    with emit_lineage(job, Attempt(flow)):
        pass
    parent = lines(file)[0]["run"]["facets"]["parent"]
    assert (parent["run"]["runId"], parent["job"]["name"]) == (flow.id, "nightly")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("http://me:canary@host", r"http://\*\*\*@host: has credentials"),
        ("http://", "expected a file, or the URL of a server"),
        ("memory://events", "expected a file, or the URL of a server as http://host:5000"),
        ("ftp://host/events", "expected a file, or the URL of a server as http://host:5000"),
        ("/missing/events", "expected a file in a folder of this machine"),
        (f"/tmp/{'a' * 300}", "expected a file in a folder of this machine"),
        ("http://ho st:5000", "^lineage is 'http://ho st:5000', expected a file, or the URL of a server as http://host:5000$"),
    ],
)
def test_a_place_that_is_none_is_refused(example, tmp_path, where, message):
    with pytest.raises(UsageError, match=message):
        explain(example.model, example.data, tmp_path / "run", scheduler="serial", lineage=where)
    assert not (tmp_path / "run").exists()


def test_without_the_library_it_is_refused(example, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openlineage.client", None)
    with pytest.raises(UsageError, match=r"^lineage needs openlineage: pip install 'leafledger\[lineage\]'$"):
        explain(example.model, example.data, tmp_path / "run", scheduler="serial", lineage=tmp_path / "events")


def test_places_are_named_as_openlineage_names_them():
    assert name_dataset("s3://bucket/a/b") == ("s3://bucket", "a/b")
    assert name_dataset("/data/a") == ("file", "/data/a")
    assert name_dataset("gs://bucket") == ("gs://bucket", "/")
    assert name_dataset("iceberg:nights.prod.rows") == ("iceberg", "nights.prod.rows")
    for registered in ("models:/name/3", "models:/name@champion", "models:/name/latest"):
        assert name_dataset(registered) == ("mlflow", "models:/name")
    for other in ("models:/m-0123abcd", "runs:/0123abcd/model"):
        assert name_dataset(other) == ("mlflow", other)
