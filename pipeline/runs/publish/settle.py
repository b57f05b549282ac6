"""What is left to do once a run has taken a place without being explained: its table, and what is left of runs before it."""

from collections.abc import Callable

from ..records.manifest import Manifest
from .kept_run import remove_older
from .replacement import finish_replacement
from .table_commit import commit_again, record_table


def settle(run: str, manifest: Manifest, tell: Callable[[], None] = lambda: None) -> None:
    """Commit a run that took a place to its table, and remove what is left of the run before; nothing where that is done.

    Parameters
    ----------
    manifest : Manifest
        That is there.
    tell : callable
        Tells others of it, before the last trace goes by which an attempt that was interrupted is known: what is kept of older runs.

    Raises
    ------
    UsageError, SchemaMismatch
        The table does not take the parts as they are, or does not let go of those that it held.
    """
    commit_again(run, manifest)
    finish_replacement(run, manifest)
    record_table(run, manifest)
    tell()
    remove_older(run, manifest)
