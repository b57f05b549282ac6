"""Errors travel: from a worker to the client with their words, and to the shell as an exit code."""

import inspect
import pickle

import pytest

from pipeline import errors
from pipeline.command import cli

ERRORS = [found for _, found in inspect.getmembers(errors, inspect.isclass)]
SIGNED = "https://host/f.parquet?versionId=3&X-Amz-Signature=s3cret&X-Amz-Security-Token=s3cret"


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_crosses_processes_as_it_is(error):
    """Its type and its line, as Dask pickles what a task raises."""
    raised = pickle.loads(pickle.dumps(error("data.parquet: got this, expected that")))
    assert type(raised) is error
    assert str(raised) == "data.parquet: got this, expected that"
    assert isinstance(raised, errors.LeafledgerError)


@pytest.mark.parametrize("error", ERRORS)
def test_the_command_ends_in_the_error_s_line_and_code(error, capsys):
    """2 for what the caller can put right by other arguments, 4 for a row that is not there, 1 for everything else."""

    def fail(*_, **__):
        raise error("what was got, what was expected")

    assert cli.main([], command=fail) == {errors.UsageError: 2, errors.NoSuchRow: 5}.get(error, 1)
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
