"""What a night is compared with is read with its arguments, and a comparison that cannot be made takes nothing from the night."""

from datetime import date

import pytest

from leafledger import explain
from leafledger.pipeline.drift.against import Comparison, ask_comparison, find_against, read_asked
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.progress import no_progress
from leafledger.pipeline.runs.job.job import make_job
from leafledger.pipeline.runs.job.options import Options
from leafledger.pipeline.runs.records.derived import Compared
from leafledger.pipeline.runs.records.manifest import read_manifest


def make(example, folder, day=2, **options):
    return make_job(example.model, example.data, folder / "{date}", Options(date=date(2026, 1, day), **options))


def test_dates_are_filled_in(example, tmp_path):
    """Into what it is compared with, and into the file of thresholds; numbers and an object of them are as they are."""
    job = make(example, tmp_path)
    assert find_against(tmp_path / "{date-1d}", job) == f"{tmp_path}/2026-01-01"
    (tmp_path / "02.toml").write_text("psi = 0.5")
    for given in (tmp_path / "{date:%d}.toml", str(tmp_path / "{date:%d}.toml"), {"psi": 0.5}):
        assert read_asked(job, given)["psi"] == 0.5
    assert "psi" not in read_asked(job, None)


def test_what_cannot_be_asked_for_is_refused(example, tmp_path):
    """The very run, by any spelling; and thresholds of nothing."""
    job = make(example, tmp_path)
    for same in (tmp_path / "{date}", tmp_path / "x/../2026-01-02/"):
        with pytest.raises(UsageError, match=r"is the very run; expected another one, such as that of the night before$"):
            ask_comparison(job, same, None)
    with pytest.raises(UsageError, match=r"^thresholds are of what is compared, but nothing is: against was not given$"):
        ask_comparison(job, None, {"psi": 0.5})
    assert ask_comparison(job, None, None) is None


def test_a_comparison_says_what_came_of_it(example, tmp_path):
    """A verdict; or why there is none, as where the other run is not there or of another method; or neither, for the first night."""
    explain(example.model, example.data, tmp_path / "2026-01-02", scheduler="serial")
    job, manifest = make(example, tmp_path, latest=tmp_path / "latest.json"), read_manifest(f"{tmp_path}/2026-01-02")
    assert Comparison(job, tmp_path / "latest.json", None)(manifest, no_progress) == Compared()
    found = Comparison(job, tmp_path / "other.json", None)(manifest, no_progress)
    expected = "not there; expected a finished run, or an object that names the latest one"
    assert found == Compared(None, f"not compared: {tmp_path}/other.json: {expected}")
    explain(example.model, example.data, tmp_path / "2026-01-01", scheduler="serial", method="banzhaf")
    found = Comparison(job, tmp_path / "{date-1d}", None)(manifest, no_progress)
    assert found.verdict is None
    assert found.undone.startswith(f"not compared: {tmp_path}/2026-01-02: method is shapley, ")
    explain(example.model, example.data, tmp_path / "same", scheduler="serial")
    verdict = Comparison(job, tmp_path / "same", None)(manifest, no_progress).verdict
    assert (verdict.run, verdict.reference, verdict.alarms) == (f"{tmp_path}/2026-01-02", f"{tmp_path}/same", ())


@pytest.mark.slow
def test_a_night_of_a_range_is_compared_once(example, tmp_path):
    """One that was made anew is another one, and is compared again."""
    explain(example.model, example.data, tmp_path / "same", scheduler="serial")
    for method in ("shapley", "banzhaf"):
        explain(example.model, example.data, tmp_path / "2026-01-02", scheduler="serial", method=method, if_changed="replace")
        explain(example.model, example.data, tmp_path / "same", scheduler="serial", method=method, if_changed="replace")
        job, manifest = make(example, tmp_path, method=method), read_manifest(f"{tmp_path}/2026-01-02")
        once = Comparison(job, tmp_path / "same", None, once=True)
        assert once(manifest, no_progress).verdict is not None
        assert once(manifest, no_progress) == Compared()
        assert Comparison(job, tmp_path / "same", None)(manifest, no_progress).verdict is not None
