"""OpenLineage events of a run's inputs and outputs, sent only if requested."""

import os
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from ...arguments.endpoints import KEY, can_lie, is_server
from ...errors import HIDDEN, UsageError, redact
from ...extras import needing
from ...stores import storage
from ...stores.uris import CATALOG, require_local, split_root
from ...tables.pyiceberg_table import METADATA
from ..job.job import Job
from ..plan.existing_run import read_existing_run
from ..plan.planned_run import Run
from ..records.folder import PARTS, SUMMARY
from ..records.plan import Plan
from .attempt import Attempt
from .column_lineage import list_fields, trace_columns

NAMESPACE = "OPENLINEAGE_NAMESPACE"  # variable common to all OpenLineage clients
REGISTRY = ("models:", "runs:")  # of MLflow
_REGISTERED = re.compile(r"(models:/[^/@]+)[/@][^/]+")  # a model's name, then its version, stage or alias
_VERSION = re.compile(r"(.+)@v(\d{1,18})")  # version of a Delta table
WRITTEN = "a file in a folder of this machine, or the URL of a server"
ENDPOINT = "/api/v1/lineage"  # default path on a server
SECONDS = 5.0  # timeout of a request
RETRIES = 2
PATIENCE = (RETRIES + 1) * SECONDS + 2  # total timeout with retries


def name_dataset(uri: str) -> tuple[str, str]:
    """Name a URI as an OpenLineage data set."""
    if uri.startswith(REGISTRY):
        registered = _REGISTERED.fullmatch(uri)
        return "mlflow", uri if registered is None else registered[1]
    if uri.startswith(CATALOG):
        return "iceberg", uri.removeprefix(CATALOG)
    root, name = split_root(uri)
    return root or "file", name or "/"


def split_version(uri: str) -> tuple[str, str | None]:
    """Split the version from a table's name, since all versions are one data set."""
    numbered, described = _VERSION.fullmatch(uri), METADATA.search(uri)
    if numbered is not None:
        return numbered[1], numbered[2]
    return (uri, None) if described is None else (uri[: described.start()], uri.rpartition("/")[2])


def plan_of_run(run: Run) -> Plan:
    """Return the plan behind an output: for a kept run, its own plan."""
    standing = read_existing_run(run.out) if run.kept else None
    return run.plan if standing is None else standing.plan


class _Events:
    """The events of one attempt, made from the job and the attempt."""

    def __init__(self, job: Job, attempt: Attempt):
        from openlineage.client.uuid import generate_new_uuid

        self.job, self.attempt, self.id = job, attempt, str(generate_new_uuid())
        self.said: dict[str, Any] = {"producer": f"pkg:pypi/leafledger@{version('leafledger')}"}

    def make(self, state: str, error: str | None = None) -> Any:
        from openlineage.client import event_v2 as events
        from openlineage.client import facet_v2 as facets

        engine = facets.processing_engine_run.ProcessingEngineRunFacet(version("leafledger"), "leafledger", **self.said)
        run: dict[str, Any] = {"processing_engine": engine}
        if error is not None:
            run["errorMessage"] = facets.error_message_run.ErrorMessageRunFacet(error, "PYTHON", **self.said)
        if self.attempt.flow is not None:
            flow = self.attempt.flow
            parent = facets.parent_run.Run(flow.id), facets.parent_run.Job("prefect", flow.deployment or "explain")
            run["parent"] = facets.parent_run.ParentRunFacet(*parent, **self.said)
        kind = facets.job_type_job.JobTypeJobFacet("BATCH", "LEAFLEDGER", "JOB", **self.said)
        return events.RunEvent(
            eventType=events.RunState(state),
            eventTime=datetime.now(UTC).isoformat(),
            run=events.Run(self.id, run),
            job=events.Job(os.environ.get(NAMESPACE, "leafledger"), self.job.name, {"jobType": kind}),
            inputs=self._inputs(self.attempt.plan),
            outputs=self._outputs(self.attempt.plan),
            **self.said,
        )

    def _name_data(self, plan: Plan | None) -> tuple[str, str]:
        """Name the data set as requested, or for a kept run as planned."""
        return name_dataset(split_version(self.job.data if plan is None or not self.attempt.kept else plan.data)[0])

    def _version(self, of: str) -> dict[str, Any]:
        from openlineage.client.facet_v2 import dataset_version_dataset

        return {"version": dataset_version_dataset.DatasetVersionDatasetFacet(of, **self.said)}

    def _inputs(self, plan: Plan | None) -> list[Any]:
        from openlineage.client import facet_v2 as facets
        from openlineage.client.event_v2 import InputDataset

        if plan is None:
            return [InputDataset(*self._name_data(None)), InputDataset(*name_dataset(self.job.model))]
        fields = [facets.schema_dataset.SchemaDatasetFacetFields(name, kind) for name, kind in list_fields(plan)]
        read = facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rowCount=plan.n_rows, fileCount=len(plan.files), **self.said)
        schema = facets.schema_dataset.SchemaDatasetFacet(fields, **self.said)
        version_of = split_version(plan.data)[1]
        said = {"schema": schema} | ({} if version_of is None else self._version(version_of))
        found = [InputDataset(*self._name_data(plan), inputFacets={"inputStatistics": read}, facets=said)]
        digests = {plan.model: plan.model_digest}
        digests |= {} if plan.background_digest is None else {split_version(str(plan.background))[0]: plan.background_digest}
        for uri, digest in digests.items():
            found.append(InputDataset(*name_dataset(uri), facets=self._version(digest)))
        return found

    def _outputs(self, plan: Plan | None) -> list[Any]:
        from openlineage.client import facet_v2 as facets
        from openlineage.client.event_v2 import OutputDataset

        manifest, found = self.attempt.manifest, []
        for folder, entries in ((PARTS, manifest and manifest.parts), (SUMMARY, manifest and manifest.summaries)):
            said: dict[str, Any] = {}
            written: dict[str, Any] = {}
            if manifest is not None:
                rows = manifest.n_rows if folder == PARTS and plan is not None and not plan.global_only else None
                counts: dict[str, Any] = {"rowCount": rows, "size": sum(entry["size"] for entry in entries or ()), "fileCount": len(entries or ())}
                written["outputStatistics"] = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(**counts, **self.said)
                said |= self._version(manifest.sha256)
            if plan is not None and folder == PARTS and not plan.global_only:
                said |= self._columns(plan)
            found.append(OutputDataset(*name_dataset(storage.join(self.job.out, folder)), outputFacets=written, facets=said))
        return found

    def _columns(self, plan: Plan) -> dict[str, Any]:
        from openlineage.client import facet_v2 as facets

        lineage, where = facets.column_lineage_dataset, self._name_data(plan)
        emit_lineage = trace_columns(plan)

        def inputs(names: tuple[str, ...], kind: str, subtype: str) -> list[Any]:
            return [lineage.InputField(*where, name, [lineage.Transformation(kind, subtype)]) for name in names]

        fields = {column: lineage.Fields(inputs(each.features, "DIRECT", each.how)) for column, each in emit_lineage.items()}
        labels = () if plan.labels is None else plan.labels.numbers
        everything = inputs(tuple(dict.fromkeys((*(feature.name for feature in plan.features), *labels))), "INDIRECT", "CONDITIONAL")
        names = [facets.schema_dataset.SchemaDatasetFacetFields(column, each.kind) for column, each in emit_lineage.items()]
        return {
            "schema": facets.schema_dataset.SchemaDatasetFacet(names, **self.said),
            "columnLineage": lineage.ColumnLineageDatasetFacet(fields, everything, **self.said),
        }


def _read_key() -> str:
    """Return the server's API key, or an empty text; errors about headers would quote it."""
    key = os.environ.get(KEY, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"{KEY} in the environment has characters that no key has, expected printable ASCII")
    return key


def _refuse_redirect(response: Any, **_: Any) -> None:
    """Refuse a redirect: its target, such as a login page, would not take events, but report success."""
    if 300 <= response.status_code < 400:
        response.close()
        raise ValueError(f"answered {response.status_code}, to go to {response.headers.get('Location', 'another place')}; expected no redirect")


def _emit(transport: Any, event: Any) -> None:
    """Send an event within the total timeout, since an answer that comes byte by byte never ends."""
    failed: list[Exception] = []

    def emit() -> None:
        try:
            transport.emit(event)
        except Exception as error:
            failed.append(error)

    thread = Thread(target=emit, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        raise TimeoutError(f"no whole answer within {PATIENCE:g} seconds")
    if failed:
        raise failed[0]


def _open(where: str, key: str) -> Any:
    """Return a transport to a server or file. The client's own would add facts nobody asked for, such as source code locations."""
    from openlineage.client.transport.file import FileConfig, FileTransport
    from openlineage.client.transport.http import HttpConfig, HttpTransport

    if not is_server(where):
        path = require_local("lineage", where, WRITTEN)
        if not can_lie(path) or path.is_dir():
            raise UsageError(f"lineage is {where!r:.80}, expected {WRITTEN}")
        return FileTransport(FileConfig(str(path), append=True))
    found = urlsplit(where)
    given: dict[str, Any] = {"url": f"{found.scheme}://{found.netloc}", "timeout": SECONDS}
    given["retry"] = {**dict.fromkeys(("total", "read", "connect"), RETRIES), "respect_retry_after_header": False}
    if found.path.strip("/"):
        given["endpoint"] = f"/{found.path.lstrip('/')}"
    if found.query:
        given["endpoint"] = f"{given.get('endpoint', ENDPOINT)}?{found.query}"
    if key:
        given["auth"] = {"type": "api_key", "apiKey": key}
    try:
        transport = HttpTransport(HttpConfig.from_dict(given))
    except ValueError as error:
        raise UsageError(f"lineage is {where!r:.80}, expected a file, or the URL of a server as http://host:5000") from error
    transport.session.hooks["response"].append(_refuse_redirect)
    return transport


@contextmanager
def emit_lineage(job: Job, attempt: Attempt) -> Iterator[None]:
    """Send an event at the start and at the end of an attempt, also after a failure; do nothing if not requested.

    Parameters
    ----------
    attempt : Attempt
        What cannot be sent is said in its ``warned``.

    Raises
    ------
    UsageError
        The library is not installed, or it is no place that events can be sent to.
    """
    where = job.options.lineage
    if where is None:
        yield
        return
    with needing("lineage", "openlineage"):
        import openlineage.client  # noqa: F401 - whether it is there
    key = _read_key() if is_server(where) else ""
    transport, events = _open(where, key), _Events(job, attempt)

    def send(state: str, error: str | None = None) -> None:
        try:
            _emit(transport, events.make(state, error))
        except Exception as failed:  # failures of the server must not fail the run
            said = str(failed).replace(key, HIDDEN) if key else str(failed)
            attempt.warned.append(f"{where}: event {state} of the run's lineage was not sent: {' '.join(redact(said).split())}")

    with closing(transport):
        send("START")
        try:
            yield
        except BaseException as error:
            send("FAIL", redact(" ".join(str(error).split())) or type(error).__name__)
            raise
        send("COMPLETE")
