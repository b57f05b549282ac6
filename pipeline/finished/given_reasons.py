"""Reasons that leave the building: a row of codes and texts for each customer, as CSV, and letters by a template."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..arguments.readers import read_place
from ..display.nearest import did_you_mean
from ..errors import NoSuchRow, RunConflict, UsageError
from ..stores import commit, storage
from ..stores.uris import normalise
from .finished_run import FinishedRun, read_run

if TYPE_CHECKING:
    from jinja2 import Template

LETTERS = Path(__file__).parent / "letters"
OWN = {"text": "letter.txt.jinja", "html": "letter.html.jinja"}  # templates that come along
MARKUP = (".html", ".htm")  # endings of templates whose values are escaped
FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")  # beginnings of texts that a spreadsheet would run
NAME = 150  # characters of a letter's file


@dataclass(frozen=True, slots=True)
class Given:
    """What one row is told: nothing of it but ids, codes and texts."""

    ids: Mapping[str, Any]
    reasons: tuple[Mapping[str, str], ...]  # by rank, each with its code, which may be empty, and its text


@dataclass(frozen=True, slots=True)
class WrittenReasons:
    """What was written.

    Attributes
    ----------
    n_rows : int
        Rows of the run that were taken.
    n_without : int
        Those that have no reason.
    csv : str or None
        URI of the table.
    letters : str or None
        URI of the folder of letters.
    """

    n_rows: int
    n_without: int
    csv: str | None
    letters: str | None


def _find_column(run: FinishedRun, output: str | None) -> str:
    """Find the column of an output's reasons."""
    outputs, columns = run.plan.written_outputs, run.plan.reason_columns
    if run.plan.reasons is None or run.plan.global_only:
        raise UsageError(f"{run.uri}: has no reasons; explain --reasons FILE writes them")
    if output is None and len(outputs) > 1:
        raise UsageError(f"{run.uri}: has reasons of {len(outputs)} outputs; choose one of {', '.join(outputs)}"[:300])
    if output is not None and output not in outputs:
        raise UsageError(f"output is {output!r:.80}, expected one of {', '.join(outputs)}{did_you_mean(output, outputs)}")
    return columns[(0 if output is None else outputs.index(output)) * len(columns) // len(outputs)]


def read_given(run: FinishedRun, where: Mapping[str, Any] | None = None, output: str | None = None) -> Iterator[Given]:
    """Read what each row is told, in the order of the data."""
    column = _find_column(run, output)
    columns = [*run.plan.ids, column]
    batches = run.attributions(columns, where).to_batches() if where else run.dataset().to_batches(columns=columns) if run.manifest.parts else ()
    for batch in batches:
        for row in batch.to_pylist():
            told = sorted(row.pop(column), key=lambda reason: reason["rank"])
            yield Given(row, tuple({"code": each["code"] or "", "text": each["text"]} for each in told))


def _guard(value: Any) -> Any:
    """Keep a spreadsheet from taking a text for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value


def _write_csv(path: Path, rows: Sequence[Given], ids: Sequence[str], most: int) -> None:
    """Write a row for each, in UTF-8 with the mark by which spreadsheets know it."""
    heads = [f"reason {rank} {what}" for rank in range(1, most + 1) for what in ("code", "text")]
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow([*map(_guard, ids), *heads])
        for row in rows:
            told = [reason[what] for reason in row.reasons for what in ("code", "text")]
            told += [""] * (len(heads) - len(told))
            writer.writerow([*("" if row.ids[name] is None else _guard(row.ids[name]) for name in ids), *map(_guard, told)])


def read_template(given: str | PathLike) -> tuple["Template", str]:
    """Read a template of letters, "text" or "html" for one that comes along; return it with the ending of the letters' files."""
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    place = read_place("template", given)
    text = (LETTERS / OWN[place]).read_text("utf-8") if place in OWN else storage.read(normalise(place)).decode(errors="replace")
    name = OWN.get(place, place).removesuffix(".jinja").removesuffix(".j2")
    markup = name.endswith(MARKUP)
    environment = SandboxedEnvironment(autoescape=markup, undefined=StrictUndefined, keep_trailing_newline=True)
    try:
        return environment.from_string(text), ".html" if markup else ".txt"
    except TemplateError as error:
        raise UsageError(f"{place}: no template: {' '.join(str(error).split())}") from error


def _write_letter(template: "Template", given: str, row: Given) -> str:
    from jinja2 import TemplateError

    try:
        return template.render(ids=row.ids, reasons=row.reasons)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, MemoryError) as error:
        raise UsageError(
            f"{given}: cannot be filled in: {' '.join(str(error).split())}; a template has ids and reasons, each with code and text"
        ) from error


def name_letter(row: Given, ending: str) -> str:
    """Name a letter's file by the row's ids."""
    named = ",".join(f"{quote(name, safe=' ')}={quote(str(value), safe=' ')}" for name, value in row.ids.items())
    if not named or len(named) > NAME:
        raise UsageError(f"a letter would be called {named[:80]!r}, expected ids of 1 to {NAME} characters; explain --id names columns of the data")
    return f"{named}{ending}"


def write_reasons(
    run: str | PathLike,
    *,
    csv: str | PathLike | None = None,
    letters: str | PathLike | None = None,
    template: str | PathLike = "text",
    where: Mapping[str, Any] | None = None,
    output: str | None = None,
) -> WrittenReasons:
    """Write the reasons of a finished run for those whom they are given to: ids, codes and texts, and nothing else of a row.

    Parameters
    ----------
    run : str or path
        Of the run's folder, which was explained with ``reasons``.
    csv : str or path, optional
        Of a table to write: a row for each row of the run, with its ids, and code and text of each reason. Texts that begin like a formula get an
        apostrophe in front.
    letters : str or path, optional
        Of a folder: a letter for each row, named by its ids, which have to tell rows apart.
    template : str or path
        Jinja template of letters, of ``ids`` and ``reasons``, each with ``code`` and ``text``; one that ends in .html or .html.jinja is HTML, and
        values are escaped in it. "text" and "html" come along.
    where : mapping of str to Any, optional
        From columns to the value that rows have there; by default all rows are taken.
    output : str, optional
        Of a model of several outputs, the one whose reasons are given.

    Returns
    -------
    WrittenReasons

    Raises
    ------
    UsageError
        The run has no reasons, nothing is to be written, a template cannot be filled in, or ids do not tell letters apart.
    NoSuchRow
        No row has the values that are asked for.
    RunConflict
        There is another file where one is to be written.
    StorageError
        The store does not answer, or cannot be written.
    """
    if csv is None and letters is None:
        raise UsageError("nothing is to be written; give csv, a file, or letters, a folder")
    finished = read_run(run)
    rows = list(read_given(finished, where, output))
    if where and not rows:
        raise NoSuchRow(f"{finished.uri}: has no row with {', '.join(f'{name} = {value}' for name, value in where.items())}"[:300])
    table, folder = (None if place is None else normalise(read_place(name, place)) for name, place in (("csv", csv), ("letters", letters)))
    with storage.scratch() as local:
        if folder is not None:
            made, ending = read_template(template)
            named = {name_letter(row, ending): row for row in rows}
            if len(named) < len(rows):
                raise UsageError(f"{finished.uri}: {len(rows) - len(named):,} rows have the ids of others; letters need ids that tell rows apart")
            for name, row in named.items():
                (local / "letter").write_text(_write_letter(made, str(template), row), encoding="utf-8")
                _create(storage.join(folder, name), local / "letter")
        if table is not None:
            reasons = finished.plan.reasons
            _write_csv(local / "table", rows, finished.plan.ids, 0 if reasons is None else reasons.most)
            _create(table, local / "table")
    return WrittenReasons(len(rows), sum(not row.reasons for row in rows), table, folder)


def _create(uri: str, local: Path) -> None:
    try:
        commit.create_once(uri, local)
    except RunConflict as error:
        raise RunConflict(f"{uri}: there is another file; remove it, or choose another place") from error
