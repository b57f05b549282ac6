"""Errors with one-line messages (what was got, what was expected, and where, never a credential) and exit codes.

Names that came with the data may hold line ends and control characters: here they are escaped, wherever a message goes from here.
"""

import re
from enum import IntEnum

from .display.text import printable

HIDDEN = "***"
PUBLIC = "leafledger"  # module that all errors are imported from
_URI = re.compile(r"[a-zA-Z][\w+.-]*://[^\s'\"<>]*[^\s'\"<>:,;.)]")
# A name and its password, which may have slashes, as keys of S3 do; not a port, an IPv6 address or {date:%Y}, behind which paths may have an "@".
_USER = re.compile(r"(?<=://)[^/@:\[{]*:(?!\d{0,5}([/?#]|$)).*@")
_SECRET = re.compile(
    r"(?<=[?&;])([\w.%-]*(?:signature|token|secret|passw|pwd|credential|auth|accesskey|access[_-]key|api[_-]?key|account[_-]?key)[\w.%-]*|sig|key)"
    r"=[^&;#]*",
    re.IGNORECASE,
)  # a parameter by whose value a store knows who asks, as in a presigned URL


class Exit(IntEnum):
    """How a command ended."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    PARTLY = 3
    DRIFT = 4
    NO_ROW = 5
    NOT_YET = 6
    CONFLICT = 7
    REFUSED = 8
    AWAY = 9
    UNFIT = 10
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    Exit.DONE: "done",
    Exit.FAILED: "failed: a published run is damaged, numbers do not add up, or this machine cannot go on; somebody has to look",
    Exit.USAGE: "usage: an argument cannot be used; nothing was written",
    Exit.PARTLY: "done, but some rows could not be read, as `rejected.json` says; or `--latest` was not moved; or MLflow took no link; "
    "or there was nothing that `--against` could compare with; "
    "or `check`, or `show --verify`, could not do all again; or `check` found that parts or documents of another run lie beside a sound one; or "
    "`prune` could not take a run out of its table; or `show` of a folder of runs could not search all of them; or `forget` left something that it "
    "names: a run that it could not search or change, or an object that holds the value still",
    Exit.DRIFT: "done, and the run has drifted from the one that it was compared with",
    Exit.NO_ROW: "`show` found no such row",
    Exit.NOT_YET: "not there (yet): the data, the model's file, or a finished run; try again when it has come",
    Exit.CONFLICT: "conflict: the output holds something else already; choose another one, or replace a run by --if-changed replace. Or a run is "
    "of a version of leafledger whose records this one does not read: use that version, or make the run again",
    Exit.REFUSED: "the data or the model were refused: damaged, of a kind that cannot be explained, or not made for each other",
    Exit.AWAY: "a store or a cluster is away, or refuses: try again; the same command goes on from there",
    Exit.UNFIT: "a cluster that does not fit: workers that do not start, have other packages or too little memory, or an expired certificate; "
    "mend it, and the same command goes on from there",
    Exit.INTERRUPTED: "interrupted; the same command goes on from there",
    Exit.TERMINATED: "terminated by `SIGTERM`; the same command goes on from there",
}


def redact(text: str) -> str:
    """Hide the credentials in URIs.

    Parameters
    ----------
    text : str
        A URI, or a message with URIs in it.

    Returns
    -------
    str
        The same where there are none.
    """
    return _URI.sub(lambda found: _SECRET.sub(rf"\1={HIDDEN}", _USER.sub(f"{HIDDEN}@", found.group())), text)


class LeafledgerError(Exception):
    """Base of every refusal; the command line prints its message and exits with ``exit_code``."""

    exit_code = Exit.FAILED

    def __init_subclass__(cls) -> None:
        """Name the errors of this module as they are public, in tracebacks and in pickles."""
        if cls.__module__ == __name__:
            cls.__module__ = PUBLIC

    def __init__(self, *said: object):
        super().__init__(*(printable(redact(each)) if isinstance(each, str) else each for each in said))


LeafledgerError.__module__ = PUBLIC


class UsageError(LeafledgerError):
    """An argument cannot be used: an unknown method, parameter, column or an output that is not a folder."""

    exit_code = Exit.USAGE


class NoSuchRow(UsageError):
    """A finished run has no row with the values asked for."""

    exit_code = Exit.NO_ROW


class UnlikeRuns(UsageError):
    """Two runs whose numbers mean different things, so that what changed from one to the other is no question."""


class InvalidModel(LeafledgerError):
    """The model file is damaged or is not a model."""

    exit_code = Exit.REFUSED


class UnsupportedModel(LeafledgerError):
    """The model is sound but cannot be represented as a tree ensemble on its features."""

    exit_code = Exit.REFUSED


class SchemaMismatch(LeafledgerError):
    """The data do not have the columns, or the column types, that the model was trained on."""

    exit_code = Exit.REFUSED


class InvalidData(LeafledgerError):
    """A data file cannot be read."""

    exit_code = Exit.REFUSED


class InvalidColumn(InvalidData):
    """Values of a column cannot be taken for what its type says; whoever knows their file says where."""


class InvalidLabel(InvalidData):
    """A label or weight that R² cannot be shared out with: it ends the run, for the others' shares would be those of other rows."""


class RunConflict(LeafledgerError):
    """The output already holds a run of other inputs or parameters."""

    exit_code = Exit.CONFLICT


class InvalidRun(LeafledgerError):
    """A published run does not match its manifest."""


class OtherVersion(InvalidRun):
    """A record of a run is in a format that this version does not read, since another version made it."""

    exit_code = Exit.CONFLICT


class NotFinished(InvalidRun):
    """There is no run, or none that is finished yet."""

    exit_code = Exit.NOT_YET


class NotRepeatable(LeafledgerError):
    """What a run did cannot be done again to compare it: its model, its data or its version of leafledger are not there any more."""


class AdditivityBreach(LeafledgerError):
    """Attributions of an additive method do not add up to margin minus base value, or those of any method are not finite."""


class PredictionMismatch(LeafledgerError):
    """A row's margin is not what the data say that the model predicted."""

    exit_code = Exit.REFUSED


class StorageError(LeafledgerError):
    """A file or object cannot be read or written."""

    exit_code = Exit.AWAY


class NotThere(StorageError):
    """There is no file or object to read, or no Parquet file in a folder of data."""

    exit_code = Exit.NOT_YET


class NotAFile(StorageError):
    """What should be read, or written over, is a folder, a pipe, a socket or a device."""

    exit_code = Exit.USAGE


class UnusablePlace(StorageError):
    """A bucket does not exist, or this user may not write into a folder of this machine."""

    exit_code = Exit.USAGE


class UnknownStore(StorageError):
    """A URI's scheme is unknown, or the package that serves it is not installed."""

    exit_code = Exit.USAGE


class ClusterLost(LeafledgerError):
    """No scheduler answers, or workers died; what was published stays, and a rerun goes on from there."""

    exit_code = Exit.AWAY


class WorkersDied(ClusterLost):
    """Every worker that a task was given to died."""


class UnfitCluster(LeafledgerError):
    """Workers do not start, have other packages than this process or too little memory for a task, or a certificate is not valid now."""

    exit_code = Exit.UNFIT
