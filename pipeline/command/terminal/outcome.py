"""How a run of ``explain`` ended: its exit code, its document, and its line among those of several nights."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date as Date
from typing import Any, Literal

from ...display.text import count
from ...errors import Exit
from .documents import error_document
from .terminal import complain, is_logged, log, named

How = Literal["explained", "finished before", "kept as it is", "failed"]
SEVERAL: dict[str, str] = {"kept as it is": "kept as they are"}
ALWAYS: tuple[How, ...] = ("explained", "finished before", "failed")  # counted even where there are none


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    run: str
    how: How
    code: Exit
    document: dict[str, Any]
    detail: str  # rows and parts, or the error
    said: tuple[str, ...] = ()  # why not all was done that was asked for, of a run that did not fail
    drift: str = ""  # how many alarms, against which run, and the first; empty without any
    notes: tuple[str, ...] = ()  # what else the command says of it

    def line(self, date: Date) -> str:
        """Say it in one line of a range of nights.

        Parameters
        ----------
        date : date
            That was filled in.

        Returns
        -------
        str
            Such as ``2026-11-02 runs/2026-11-02: explained (40,000 rows in 1 part)``.
        """
        detail = f", exit code {int(self.code)}: {self.detail}" if self.how == "failed" else f" ({self.detail})"
        return "; ".join(filter(None, (f"{date} {self.run}: {self.how}{detail}", _first(self.said), self.drift)))


def _first(lines: Sequence[str]) -> str:
    """Say the first of several lines, and how many more there are."""
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return f"{lines[0]}{more}" if lines else ""


def tell_failure(run: str, error: Any) -> Outcome:
    """Report the error that kept a night from being explained.

    Parameters
    ----------
    run : str
        URI of the folder that the run would have had.
    error : LeafledgerError

    Returns
    -------
    Outcome
    """
    with named(run):
        complain(str(error), "error")
    return Outcome(run, "failed", error.exit_code, error_document(type(error).__name__, error.exit_code, str(error)), str(error))


def tell(run: str, done: Any, stays: str | None, notes: Sequence[str]) -> Outcome:
    """Report rejections, and why ``latest`` or MLflow was not updated.

    Parameters
    ----------
    run : str
        URI of its folder.
    done : RunResult
    stays : str or None
        Why ``latest`` was not moved.
    notes : sequence of str

    Returns
    -------
    Outcome
    """
    from ...runs.formats.numbers import NUMBER

    manifest, how = done.manifest, "finished before" if done.already_finished else "finished"
    if done.kept:
        how = f"kept as it is, what is asked for differs in {done.kept}"
    said = (*(f"rejected: {entry.reason}" for entry in manifest.rejected), *filter(None, (stays, done.unlogged, done.compared.undone)))
    verdict = done.compared.verdict
    alarms = () if verdict is None else verdict.alarms
    drift = "" if verdict is None or not alarms else f"{count(len(alarms), 'alarm')} against {verdict.reference}: {_first(alarms)}"
    with named(run):
        for line in said:
            complain(line)
        if is_logged():
            for line in alarms:
                complain(f"drift: {line}")
            log(f"{how}: {manifest.counted}, SHA-256 {manifest.sha256}")
    document = {
        "run": run,
        "finished_before": done.already_finished,
        "version": manifest.version,
        "place": manifest.place,
        "kept": done.kept,
        "n_rows": manifest.n_rows,
        "n_parts": len(manifest.parts),
        "share": manifest.share,
        "residual": manifest.residual,
        "manifest": manifest.sha256,
        "inputs": None if done.inputs is None else done.inputs.sha256,
        "rejected": [asdict(entry) for entry in manifest.rejected],
        "latest": None if done.latest is None else {name: value for name, value in asdict(done.latest).items() if name != NUMBER},
        "advisories": [*map(str, done.advisories)],
        "drift": None if verdict is None else {"reference": verdict.reference, "alarms": [*verdict.alarms], "differs": [*verdict.differs]},
        "said": [*said],
    }
    short: How = "kept as it is" if done.kept else "finished before" if done.already_finished else "explained"
    code = Exit.PARTLY if manifest.rejected else Exit.DRIFT if drift else Exit.PARTLY if said else Exit.DONE
    return Outcome(run, short, code, document, manifest.counted, said, drift, tuple(notes))


def say_totals(n_nights: int, done: Sequence[Outcome]) -> str:
    """Say in one line how many nights of a range ended how.

    Parameters
    ----------
    n_nights : int
        Of the range.
    done : sequence of Outcome
        Of the nights that ended: fewer where the command ends before all are tried.

    Returns
    -------
    str
        Such as ``7 nights: 6 explained, 1 finished before, 0 failed``.
    """
    numbers = dict.fromkeys(ALWAYS, 0)
    for each in done:
        numbers[each.how] = numbers.get(each.how, 0) + 1
    said = [f"{number} {SEVERAL.get(how, how) if number > 1 else how}" for how, number in numbers.items()]
    if len(done) < n_nights:
        said.append(f"{n_nights - len(done)} left to do")
    more = {"not in full": sum(bool(each.said) for each in done), "drifted": sum(bool(each.drift) for each in done)}
    short = ", ".join(f"{number} {what}" for what, number in more.items() if number)
    return f"{count(n_nights, 'night')}: {', '.join(said)}" + (f"; {short}" if short else "")


def end_nights(done: Sequence[Outcome]) -> Exit:
    """Return the exit code of a range of nights. Data refused for one night comes last, since a 6 is retried; what is not in full, before drift.

    Parameters
    ----------
    done : sequence of Outcome
        Of every night.

    Returns
    -------
    Exit
    """
    failed, codes = [each.code for each in done if each.how == "failed"], {each.code for each in done}
    if failed:
        return min(failed, key=lambda code: (code == Exit.USAGE, code))
    return next((code for code in (Exit.PARTLY, Exit.DRIFT) if code in codes), Exit.DONE)
