"""What can go wrong, each in one line that says what was got, what was expected, and where, and never a credential."""

import re

HIDDEN = "***"
_URI = re.compile(r"[a-zA-Z][\w+.-]*://[^\s'\"<>]*[^\s'\"<>:,;.)]")
_USER = re.compile(r"(?<=://)[^/@:]*:[^/]*@")  # a name and its password
_SECRET = re.compile(
    r"(?<=[?&;])([\w.%-]*(?:signature|token|secret|passw|pwd|credential|auth|accesskey|access[_-]key|api[_-]?key|account[_-]?key)[\w.%-]*|sig|key)"
    r"=[^&;#]*",
    re.IGNORECASE,
)  # a parameter by whose value a store knows who asks, as in a presigned URL


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

    exit_code = 1

    def __init__(self, *said: object):
        super().__init__(*(redact(each) if isinstance(each, str) else each for each in said))


class UsageError(LeafledgerError):
    """An argument cannot be used: an unknown method, parameter, column or an output that is not a folder."""

    exit_code = 2


class NoSuchRow(UsageError):
    """A finished run has no row with the values asked for."""

    exit_code = 5


class InvalidModel(LeafledgerError):
    """The model file is damaged or is not a model."""


class UnsupportedModel(LeafledgerError):
    """The model is sound but cannot be represented as a tree ensemble on its features."""


class SchemaMismatch(LeafledgerError):
    """The data do not have the columns, or the column types, that the model was trained on."""


class InvalidData(LeafledgerError):
    """A data file cannot be read."""


class InvalidColumn(InvalidData):
    """Values of a column cannot be taken for what its type says; whoever knows their file says where."""


class InvalidLabel(InvalidData):
    """A label or weight that R² cannot be shared out with: it ends the run, for the others' shares would be those of other rows."""


class RunConflict(LeafledgerError):
    """The output already holds a run of other inputs or parameters."""


class InvalidRun(LeafledgerError):
    """A published run does not match its manifest."""


class NotRepeatable(LeafledgerError):
    """What a run did cannot be done again to compare it: its model, its data or its version of leafledger are not there any more."""


class AdditivityBreach(LeafledgerError):
    """Attributions of an additive method do not add up to margin minus base value."""


class PredictionMismatch(LeafledgerError):
    """A row's margin is not what the data say that the model predicted."""


class StorageError(LeafledgerError):
    """A file or object cannot be read or written."""


class ClusterLost(LeafledgerError):
    """No scheduler answers, or workers died; what was published stays, and a rerun goes on from there."""


class WorkersDied(ClusterLost):
    """Every worker that a task was given to died."""
