"""Prefect artifacts of a run: progress, summary tables, links to outputs, and changes."""

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date as Date
from functools import lru_cache
from typing import Any, cast
from urllib.parse import quote
from uuid import UUID

import pyarrow as pa
from prefect import runtime
from prefect.artifacts import (
    create_link_artifact,
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.logging import get_run_logger

from leafledger.pipeline.dataset.files.listing import WorkItem
from leafledger.pipeline.display.text import as_markdown, count, printable
from leafledger.pipeline.progress import Work
from leafledger.pipeline.report.report import WrittenReport
from leafledger.pipeline.runs.records.derived import DriftVerdict
from leafledger.pipeline.runs.records.folder import MANIFEST, PARTS, REJECTED, REPLACEMENTS, SUMMARY
from leafledger.pipeline.runs.records.manifest import Manifest
from leafledger.pipeline.runs.records.part import Part
from leafledger.pipeline.stores import storage

PROGRESS, OUTPUTS, PAGE, CHANGES = "progress", "outputs", "report", "drift"
UNKEYED = re.compile(r"[^a-z0-9]+")  # characters not allowed in a key
TOLD_APART = 8  # digits that make keys distinct
WHOLE = "/:%=+@,;"  # characters not escaped in a link's URI
TOP = 10  # features or pairs shown per output
UPDATE_SECONDS = 1.0  # minimal time between requests to the Prefect server


@contextmanager
def _showing(what: str) -> Iterator[None]:
    """Log errors of the server: a run must not fail for its display."""
    try:
        yield
    except Exception as error:  # failures of the server or of the way to it
        get_run_logger().warning("%s not shown: %s", what, error)


def _dashed(name: str) -> str:
    return UNKEYED.sub("-", name.lower()).strip("-")


@lru_cache(maxsize=1)
def _name_deployment(flow_run: str | None) -> str:  # noqa: ARG001 - the key of what is kept
    """Ask the server what the deployment of this flow run is called, once."""
    return runtime.deployment.name or ""


def key_of(what: str) -> str:
    """Return the key of an artifact, which versions share within one deployment."""
    name = _name_deployment(runtime.flow_run.id)
    called = _dashed(name)
    told = "" if called == name else hashlib.sha256(name.encode()).hexdigest()[:TOLD_APART]
    return "-".join(filter(None, ("leafledger", called, told, _dashed(what))))


def show_progress(work: Work) -> Callable[[Part | WorkItem], None]:
    """Show a stage as a progress artifact: the percentage of rows done."""
    total, description = work.n_rows, f"{as_markdown(work.said)}: {as_markdown(work.run)}"
    artifact: UUID | None = None
    with _showing("progress"):
        artifact = cast(UUID, create_progress_artifact(0.0 if total else 100.0, key=key_of(PROGRESS), description=description))
    done, shown = 0, time.monotonic()

    def on_done(piece: Part | WorkItem) -> None:
        nonlocal done, shown
        done += piece.n_rows
        now = time.monotonic()
        if artifact is None or (done < total and now - shown < UPDATE_SECONDS):
            return
        shown = now
        with _showing("progress"):
            update_progress_artifact(artifact, 100.0 * done / total)

    return on_done


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: printable(str(value)) if isinstance(value, str | Date) else value for name, value in row.items()}


def _choose_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first TOP rows, by rank where they have one, and behind them the scores of a method, whose rank is 0."""
    ranked = sorted((row for row in rows if row.get("rank") != 0), key=lambda row: row.get("rank", 0))
    return [*ranked[:TOP], *(row for row in rows if row.get("rank") == 0)]


def show_summaries(out: str, summaries: dict[str, pa.Table]) -> None:
    """Make a table artifact of each summary: the first TOP rows of every output, by rank if ranked."""
    for name, summary in summaries.items():
        with _showing(name):
            rows = [*map(_plain, summary.to_pylist())]
            outputs = dict.fromkeys(row.get("output") for row in rows)
            top = [row for output in outputs for row in _choose_first([row for row in rows if row.get("output") == output])]
            create_table_artifact(top, key=key_of(name), description=f"{name}: the first {TOP} per output of {as_markdown(out)}")


def _link(uri: str) -> str:
    """Return a link for browsers if the scheme is known."""
    local = storage.local_path(uri)
    return quote(uri, safe=WHOLE) if local is None else local.as_uri()


def show_outputs(out: str, manifest: Manifest) -> None:
    """Make a link artifact to the run's folder."""
    below = f"{manifest.place}/" if manifest.place.startswith(REPLACEMENTS) else ""  # an earlier version's
    left_out = f"; {count(len(manifest.rejected), 'piece')} of the data rejected, see {below}{REJECTED}" if manifest.rejected else ""
    with _showing("outputs"):
        create_link_artifact(
            link=_link(out),
            link_text=as_markdown(out),
            key=key_of(OUTPUTS),
            description=f"{manifest.counted}: {below}{PARTS}/, {below}{SUMMARY}/, {MANIFEST}{left_out}; SHA-256 of {MANIFEST} {manifest.sha256}",
        )


def show_page(page: WrittenReport) -> None:
    """Make a link artifact to the page about a run."""
    with _showing("report"):
        create_link_artifact(link=_link(page.uri), link_text=as_markdown(page.uri), key=key_of(PAGE), description=f"report, {page.size:,} bytes")


def show_changes(changes: DriftVerdict) -> None:
    """Make a Markdown artifact of the changes since another run: differences of plans, and crossed thresholds."""
    crossed = [f"* {as_markdown(said)}" for said in changes.alarms] or ["No threshold is crossed."]
    differs = ["", "Besides the rows:", "", *(f"* {as_markdown(said)}" for said in changes.differs)] if changes.differs else []
    with _showing("drift"):
        head = f"{as_markdown(changes.run)} against {as_markdown(changes.reference)}"
        create_markdown_artifact("\n".join([f"**{head}**", "", *crossed, *differs]), key=key_of(CHANGES), description="drift")
