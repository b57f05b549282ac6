"""Errors travel: from a worker to the client with their words, and to the shell as an exit code."""

import inspect
import pickle
import traceback

import pytest

import leafledger
from leafledger.pipeline import errors
from leafledger.pipeline.command import cli
from leafledger.pipeline.stores.uris import normalise

ERRORS = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, Exception)]
CODES = {
    **dict.fromkeys(("UsageError", "UnlikeRuns", "UnknownStore", "UnusablePlace", "NotAFile"), 2),
    "NoSuchRow": 5,
    **dict.fromkeys(("NotThere", "NotFinished"), 6),
    "OtherVersion": 7,
    "RunConflict": 7,
    **dict.fromkeys(("InvalidModel", "UnsupportedModel", "SchemaMismatch", "InvalidData", "InvalidColumn", "InvalidLabel", "PredictionMismatch"), 8),
    **dict.fromkeys(("StorageError", "ClusterLost", "WorkersDied"), 9),
    "UnfitCluster": 10,
}  # of all others 1
SIGNED = "https://host/f.parquet?versionId=3&X-Amz-Signature=s3cret&X-Amz-Security-Token=s3cret"


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_crosses_processes_as_it_is(error):
    """Its type and its line, as Dask pickles what a task raises."""
    raised = pickle.loads(pickle.dumps(error("data.parquet: got this, expected that")))
    assert type(raised) is error
    assert str(raised) == "data.parquet: got this, expected that"
    assert isinstance(raised, errors.LeafledgerError)


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_public_and_named_so(error):
    """Whoever calls leafledger can except it, below one root, and its traceback says by which name."""
    assert getattr(leafledger, error.__name__) is error
    assert error.__name__ in leafledger.__all__
    assert issubclass(error, leafledger.LeafledgerError)
    assert traceback.format_exception_only(error("got this, expected that")) == [f"leafledger.{error.__name__}: got this, expected that\n"]


def test_an_error_of_others_keeps_its_module():
    """Whoever derives an error of their own from one of these is named by their own module."""

    class Mine(leafledger.UsageError):
        pass

    assert Mine.__module__ == __name__


@pytest.mark.parametrize("error", ERRORS)
def test_the_command_ends_in_the_error_s_line_and_code(error, capsys):
    """By what whoever waits for it can do: other arguments, later, other data, or look."""

    def fail(*_, **__):
        raise error("what was got, what was expected")

    assert cli.main([], command=fail) == CODES.get(error.__name__, 1)
    assert capsys.readouterr() == ("", "leafledger: what was got, what was expected\n")


def test_who_handles_a_kind_handles_what_is_one():
    """A column that cannot be converted is data that cannot be read, and rejected with it; lost workers are a lost cluster."""
    assert {error.__name__ for error in ERRORS if issubclass(error, errors.InvalidData)} == {"InvalidData", "InvalidColumn", "InvalidLabel"}
    assert {error.__name__ for error in ERRORS if issubclass(error, errors.ClusterLost)} == {"ClusterLost", "WorkersDied"}


@pytest.mark.parametrize("error", ERRORS)
def test_no_error_repeats_a_credential(error):
    """Wherever in its words a URI stands, also in those of a library."""
    said = str(error(f"{SIGNED}: cannot read: 403, url='{SIGNED}#x', sftp://me:s3cret@host/a, (https://h/?sig=s3cret). Kept: a@b:c, s3://b/a?x=1"))
    hidden = "https://host/f.parquet?versionId=3&X-Amz-Signature=***&X-Amz-Security-Token=***"
    assert said == f"{hidden}: cannot read: 403, url='{hidden}#x', sftp://***@host/a, (https://h/?sig=***). Kept: a@b:c, s3://b/a?x=1"
    assert str(pickle.loads(pickle.dumps(error(said)))) == said


@pytest.mark.parametrize(
    "uri", ["s3://AKIAX:ab/cd@bucket/data", "s3://AKIAX:12ab/c@d/e@bucket/data", "sftp://me:1234@host/a", "sftp://:s3cret@host/a"]
)
def test_a_password_may_have_slashes(uri):
    """It is refused where a place is written down, and hidden in messages, as any other."""
    start, host = uri.partition("//")[0], uri.rpartition("@")[2]
    assert errors.redact(uri) == f"{start}//***@{host}"
    with pytest.raises(errors.UsageError, match=r"//\*\*\*@.*: has credentials"):
        normalise(uri)


@pytest.mark.parametrize(
    "uri",
    ["https://host:8080/a@b", "https://host:/a@b", "http://[::1]:8080/a@b", "s3://nights-{date:%Y}/a@b", "s3://bucket/a:b@c", "tcp://host:8786"],
)
def test_what_is_no_password_stays(uri):
    """A port, an address, a date that is filled in; what stands in a path."""
    assert errors.redact(uri) == uri


def test_every_code_says_what_it_means():
    """And is that of one thing: numbers that a scheduler was told once stay."""
    assert set(errors.MEANINGS) == set(errors.Exit)
    assert {code.name: int(code) for code in errors.Exit} == {
        "DONE": 0,
        "FAILED": 1,
        "USAGE": 2,
        "PARTLY": 3,
        "DRIFT": 4,
        "NO_ROW": 5,
        "NOT_YET": 6,
        "CONFLICT": 7,
        "REFUSED": 8,
        "AWAY": 9,
        "UNFIT": 10,
        "INTERRUPTED": 130,
        "TERMINATED": 143,
    }
    assert "parts or documents of another run lie beside" in errors.MEANINGS[errors.Exit.PARTLY]  # which `check` ends with, of a sound run
