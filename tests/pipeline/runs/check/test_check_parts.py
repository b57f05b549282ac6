"""Parts checked by several workers: what is found is what one process finds, and so is what is found first."""

import shutil

import pytest

from leafledger import check_run, explain
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.errors import LeafledgerError, UsageError
from leafledger.pipeline.runs.check import check
from tests.pipeline.conftest import write_small

N_PARTS = 20


@pytest.fixture(scope="module")
def run(example, tmp_path_factory):
    """A run of parts enough for three tasks of eight at most."""
    folder = tmp_path_factory.mktemp("parts")
    explain(example.model, write_small(example.frame, folder / "data"), folder / "run", ids=["flight"], scheduler="serial", item_rows="file")
    return folder / "run"


def checked(run, **arguments):
    """What is found, or said."""
    try:
        return check_run(run, **arguments)
    except LeafledgerError as error:
        return type(error), str(error)


@pytest.fixture
def together(monkeypatch):
    """Eight parts to a task, which are otherwise checked one by one where they are so few."""
    monkeypatch.setattr(check, "choose_level", lambda _: 1)


@pytest.mark.slow
def test_workers_find_what_one_process_finds(run, together, two_workers):
    """Sound, deep, and with all rows; every part is shown as it is done, and what was put beside the run is removed."""
    before, done = sorted(run.parent.rglob("*")), []

    def watch(work):
        done.append(work)
        return lambda item: done.append(item.part)

    for asked in ({}, {"deep": True}, {"all_rows": True}):
        assert check_run(run, **asked, scheduler=two_workers, progress=watch) == check_run(run, **asked)
        assert (done[0].doing, done[0].n_items) == ("checking", N_PARTS)
        assert sorted(done[1:]) == list(range(N_PARTS))
        done.clear()
    assert sorted(run.parent.rglob("*")) == before


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.slow
def test_what_is_wrong_first_is_said_first(run, tmp_path, together, deep, two_workers):
    """However tasks end: the first of parts that are missing, of another size, and of other bytes, with the words and the kind of one process."""
    for first, others in ((3, (5, 9, 17)), (11, (12, 13, 19)), (19, ())):
        broken = tmp_path / f"{first}"
        shutil.copytree(run, broken)
        paths = [broken / "attributions" / f"part-{part:05d}.parquet" for part in (first, *others)]
        for k, path in enumerate(paths[1:]):
            path.unlink() if k == 0 else path.write_bytes(b"PAR1")
        data = bytearray(paths[0].read_bytes())
        data[-6 if not deep else 8] ^= 1
        paths[0].write_bytes(data)
        found = checked(broken, deep=deep)
        assert str(paths[0]) in found[1]
        assert checked(broken, deep=deep, scheduler=two_workers) == found


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_places_and_words_of_the_command(run, capsys):
    """It says where it works and shows parts where it has workers; a scheduler without TLS elsewhere is refused."""
    assert main(["check", str(run), "--workers", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{run}: sound, ")
    assert "checking on a local cluster of 1 worker" in captured.err
    assert f"{N_PARTS} of {N_PARTS} parts" in captured.err
    assert main(["check", str(run)]) == 0
    assert capsys.readouterr().err == ""
    with pytest.raises(UsageError, match="tls://"):
        check_run(run, scheduler="tcp://10.0.0.1:8786")
