"""Update of the pointer to the latest run, with refusal of small runs."""

from ...errors import InvalidData
from ...stores.uris import normalise
from ..job.options import Options
from ..records.current_run import is_current
from ..records.latest import Latest, move_latest, read_latest
from ..records.manifest import Manifest


def refuse_small(options: Options, run: str, manifest: Manifest) -> None:
    """Refuse that a run of too few rows replaces the one in the folder that ``latest`` names.

    Parameters
    ----------
    run : str
        URI of its folder.
    manifest : Manifest
        Of the run, which is not there yet.

    Raises
    ------
    InvalidData
        Fewer rows are explained than are required.
    """
    why = why_latest_stays(options, manifest)
    named = None if why is None else read_latest(str(options.latest))
    if named is not None and normalise(named.run) == run:
        raise InvalidData(f"{why}; it names {run}, where the run of before stays")


def name_latest(options: Options, run: str, manifest: Manifest, kept: bool = False) -> Latest | None:
    """Point ``latest`` to a run, unless it names a later date or too few rows were explained.

    If it names the run's folder already, its entry is refreshed, whatever the number of rows. A run that was replaced meanwhile is not named. A kept
    run stays under its own date.

    Parameters
    ----------
    run : str
        URI of its folder.
    manifest : Manifest
        Of the run, which is finished.
    kept : bool
        It is another run than was asked for, and may be of another date.

    Returns
    -------
    Latest or None
        What ``latest`` names then; None where it was not asked for, or names nothing.
    """
    if options.latest is None or options.date is None:
        return None
    few = manifest.share < options.latest_requires
    if few or kept:
        named = read_latest(options.latest)
        mine_before = named if named is not None and normalise(named.run) == run else None
        if few if mine_before is None else mine_before.manifest == manifest.sha256:
            return named
    mine = Latest(options.date.isoformat(), run, manifest.sha256, manifest.n_rows, manifest.share)
    return move_latest(options.latest, mine, options.single_writer, lambda: is_current(run, manifest))


def why_latest_stays(options: Options, manifest: Manifest, named: Latest | None = None) -> str | None:
    """Return why a finished run is not named as the latest, or should not be.

    Parameters
    ----------
    named : Latest, optional
        What ``latest`` names.

    Returns
    -------
    str or None
        None where it is taken, or ``latest`` was not asked for.
    """
    requires = options.latest_requires
    if options.latest is None or manifest.share >= requires:
        return None
    how = "not moved," if named is None or named.manifest != manifest.sha256 else "names this run, of which"
    return f"{options.latest}: {how} {manifest.share:.2%} of the rows are explained ({manifest.n_rows:,}), expected at least {requires:.2%}"
