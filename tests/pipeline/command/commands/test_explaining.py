"""The command explain: a run for each day of a range, with a line for each and one for all."""

import json
import shutil
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from leafledger import check_run, explain
from leafledger.pipeline.command import cli
from leafledger.pipeline.errors import AdditivityBreach, ClusterLost
from leafledger.pipeline.runs import explain as runs_explain
from tests.pipeline.conftest import write_nights


def run(capsys, *arguments):
    """Exit code, standard output, standard error."""
    code = cli.main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.slow
def test_a_range_of_dates_is_a_run_for_each(example, tmp_path, capsys):
    """Those that are done are passed over; a day without data, or with data that do not fit, keeps no other from being explained."""
    for month, day in ((1, 1), (2, 2), (3, 4)):
        shutil.copytree(Path(example.data) / f"month={month}", tmp_path / "nights" / f"2026-03-0{day}" / f"month={month}")
    n_rows = [pq.read_table(tmp_path / "nights" / f"2026-03-0{day}", partitioning=None).num_rows for day in (1, 2, 4)]
    arguments = ["explain", example.model, str(tmp_path / "nights/{date-1d}"), "--out", str(tmp_path / "runs/{date}"), "--scheduler", "serial"]
    assert cli.main([*arguments, "--dates", "2026-03-02..2026-03-02", "--quiet"]) == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["2026-03-02"]
    capsys.readouterr()
    assert cli.main([*arguments, "--dates", "2026-03-02..2026-03-05"]) == 6
    said = capsys.readouterr()
    missing = f"{tmp_path}/nights/2026-03-03: cannot list: no such file or object"
    assert said.out.splitlines() == [
        f"2026-03-02 {tmp_path}/runs/2026-03-02: finished before ({n_rows[0]:,} rows in 1 part)",
        f"2026-03-03 {tmp_path}/runs/2026-03-03: explained ({n_rows[1]:,} rows in 1 part)",
        f"2026-03-04 {tmp_path}/runs/2026-03-04: failed, exit code 6: {missing}",
        f"2026-03-05 {tmp_path}/runs/2026-03-05: explained ({n_rows[2]:,} rows in 1 part)",
        "4 nights: 2 explained, 1 finished before, 1 failed",
    ]
    (line,) = [line for line in said.err.splitlines() if "cannot" in line]
    assert line == f"leafledger: {missing}"
    assert not (tmp_path / "runs" / "2026-03-04").exists()
    for day in ("2026-03-03", "2026-03-05"):
        assert check_run(tmp_path / "runs" / day).sound
    (tmp_path / "nights/2026-03-05").mkdir()
    pq.write_table(pa.table({"other": [1.0]}), tmp_path / "nights/2026-03-05/data.parquet")
    code, said, log = run(capsys, *arguments, "--dates", "2026-03-04..2026-03-06", "--json")
    assert code == 6
    late, done, refused = json.loads(said)["runs"]
    assert (late["error"]["type"], done["finished_before"], refused["error"]["exit_code"]) == ("NotThere", True, 8)
    assert [line.split(": ")[1] for line in log.splitlines()] == [late["error"]["message"].split(": ")[0], refused["error"]["message"].split(": ")[0]]
    assert cli.main([*arguments, "--dates", "2026-03-05..2026-03-06", "--quiet"]) == 8


@pytest.mark.slow
def test_a_damaged_night_is_its_own_failure(example, tmp_path, capsys):
    """In a range: the nights after it are explained, whatever is to become of runs that are there; one of another version can be replaced."""
    out = tmp_path / "runs"
    arguments = ["explain", example.model, example.data, "--out", f"{out}/{{date}}", "--scheduler", "serial", "--quiet"]
    assert cli.main([*arguments, "--dates", "2026-03-01..2026-03-02"]) == 0
    damaged, other = (out / f"2026-03-0{day}/manifest.json" for day in (1, 2))
    damaged.write_text("{")
    other.write_text(json.dumps({**json.loads(other.read_text()), "version": "0.0.1", "strange": 1}))
    arguments += ["--dates", "2026-03-01..2026-03-03"]
    for given in ([], ["--if-changed", "keep"]):
        code, _, log = run(capsys, *arguments, *given)
        (first, second) = log.splitlines()
        assert f"{damaged}: not a manifest: " in first
        assert "2026-03-02: holds another run, different in version (was '0.0.1', is " in second
        assert code == 1
        assert check_run(out / "2026-03-03").sound
        shutil.rmtree(out / "2026-03-03")
    code, said, log = run(capsys, *arguments, "--replace", "--json")
    assert (code, [each.get("error", {}).get("type") for each in json.loads(said)["runs"]]) == (1, ["InvalidRun", None, None])
    assert check_run(out / "2026-03-02").sound


@pytest.mark.slow
def test_a_night_whose_rows_do_not_go_with_an_option_is_its_own_failure(example, tmp_path, capsys, monkeypatch):
    """As more groups than a table is worth, or numbers that do not add up: the nights after it are explained."""
    monkeypatch.setattr("leafledger.kernels.slices.labels.MOST_VALUES", 40)  # ten groups of four features
    nights = tmp_path / "nights"
    for day, n_groups in ((1, 1000), (2, 1), (4, 1)):
        table = pq.read_table(Path(example.data) / "month=2", partitioning=None).slice(0, 100)
        (nights / f"2026-03-0{day}" / "month=2").mkdir(parents=True)
        groups = pa.array([i % n_groups for i in range(table.num_rows)], pa.int64())
        pq.write_table(table.append_column("shop", groups), nights / f"2026-03-0{day}" / "month=2" / "data.parquet")
    arguments = ["explain", example.model, f"{nights}/{{date}}", "--out", f"{tmp_path}/runs/{{date}}"]
    arguments += ["--scheduler", "serial", "--by", "shop", "--quiet"]
    code, _, log = run(capsys, *arguments, "--dates", "2026-03-01..2026-03-02")
    assert (code, log.count("\n")) == (2, 1)
    assert "'shop' make 100 groups" in log
    assert check_run(tmp_path / "runs/2026-03-02").sound
    code, _, log = run(capsys, *arguments, "--dates", "2026-03-01..2026-03-03")
    assert (code, log.count("\n")) == (6, 2)

    def breach(*_):
        raise AdditivityBreach("attributions do not add up")

    with monkeypatch.context() as patch:
        patch.setattr("leafledger.pipeline.runs.explain.map_run", breach)
        code, _, log = run(capsys, *arguments, "--dates", "2026-03-02..2026-03-04")
    assert (code, log.count("\n")) == (1, 2)
    assert not (tmp_path / "runs/2026-03-04/manifest.json").exists()


def test_what_is_wrong_with_all_nights_ends_a_range(example, tmp_path, capsys):
    """A mistake in the options, and a store that is away, are said once."""
    arguments = ["explain", example.model, example.data, "--out", str(tmp_path / "runs/{date}"), "--dates", "2026-03-02..2026-03-04", "--quiet"]
    code, _, log = run(capsys, *arguments, "--method", "shaply")
    assert (code, log.count("\n")) == (2, 1)
    code, _, log = run(capsys, *arguments, "--scheduler", "tcp://127.0.0.1:1", "--wait", "1")
    assert (code, log.count("\n")) == (9, 1)


@pytest.mark.slow
def test_a_range_says_what_of_its_nights_is_not_in_full(example, tmp_path, capsys):
    """What was rejected stands in the night's line, and a night that is kept is none that was explained; of one night there is all that is shown of
    one, and no line of totals."""
    nights = tmp_path / "nights"
    for day in (1, 2):
        shutil.copytree(example.data, nights / f"2026-03-0{day}")
    (nights / "2026-03-02" / "month=2" / "data.parquet").write_bytes(b"damaged")
    told = ("explain", example.model, nights / "{date}", "--out", tmp_path / "{date}", "--scheduler", "serial", "--if-changed", "keep")
    code, said, log = run(capsys, *told, "--dates", "2026-03-01..2026-03-02")
    (rejected,) = [line.removeprefix("leafledger: ") for line in log.splitlines() if line.startswith("leafledger: ")]
    assert rejected.startswith(f"rejected: {nights}/2026-03-02/month=2/data.parquet: not a Parquet file")
    first, second, total = said.splitlines()
    assert (code, total) == (3, "2 nights: 2 explained, 0 finished before, 0 failed; 1 not in full")
    assert first == f"2026-03-01 {tmp_path}/2026-03-01: explained (3,000 rows in 4 parts)"
    n_rows = check_run(tmp_path / "2026-03-02").n_rows
    assert second == f"2026-03-02 {tmp_path}/2026-03-02: explained ({n_rows:,} rows in 3 parts); {rejected}"
    code, said, _ = run(capsys, *told, "--method", "banzhaf", "--dates", "2026-03-01..2026-03-02")
    assert (code, said.splitlines()[-1]) == (3, "2 nights: 0 explained, 0 finished before, 0 failed, 2 kept as they are; 1 not in full")
    assert said.splitlines()[0] == f"2026-03-01 {tmp_path}/2026-03-01: kept as it is (3,000 rows in 4 parts)"
    code, said, _ = run(capsys, *told, "--dates", "2026-03-01..2026-03-01")
    digest = check_run(tmp_path / "2026-03-01").manifest
    assert (code, said) == (0, f"{tmp_path}/2026-03-01: finished before, nothing to do (3,000 rows in 4 parts)\nSHA-256:      {digest}\n")


@pytest.mark.parametrize(("end", "code"), [(ClusterLost("away"), 9), (signal.SIGTERM, 143)])
def test_a_range_that_ends_early_says_how_far_it_came(example, tmp_path, capsys, monkeypatch, end, code):
    """As where the store is away, or the machine goes down: what is left to do is counted."""
    explain(example.model, example.data, tmp_path / "2026-03-01", scheduler="serial")
    map_run = runs_explain.map_run

    def map_some(run, *given):
        if run.out.endswith("2026-03-03"):
            if isinstance(end, Exception):
                raise end
            signal.raise_signal(end)
        return map_run(run, *given)

    monkeypatch.setattr(runs_explain, "map_run", map_some)
    told = ("explain", example.model, example.data, "--out", tmp_path / "{date}", "--scheduler", "serial", "--dates", "2026-03-01..2026-03-05")
    found, said, _ = run(capsys, *told)
    assert (found, said.splitlines()) == (
        code,
        [
            f"2026-03-01 {tmp_path}/2026-03-01: finished before (3,000 rows in 4 parts)",
            f"2026-03-02 {tmp_path}/2026-03-02: explained (3,000 rows in 4 parts)",
            "5 nights: 1 explained, 1 finished before, 0 failed, 3 left to do",
        ],
    )


def test_what_is_said_of_columns_is_said_once_in_a_range(example, tmp_path, capsys):
    """Such as which number stands for missing values; not for each night again."""
    told = ("explain", example.model, example.data, "--out", tmp_path / "{date}", "--scheduler", "serial", "--missing", "-999")
    code, said, _ = run(capsys, *told, "--dates", "2026-03-01..2026-03-02")
    assert (code, said.splitlines()) == (
        0,
        [
            "missing values are -999, besides null and NaN",
            *(f"2026-03-0{day} {tmp_path}/2026-03-0{day}: explained (3,000 rows in 4 parts)" for day in (1, 2)),
            "2 nights: 2 explained, 0 finished before, 0 failed",
        ],
    )


@pytest.fixture
def nights(example, tmp_path):
    """What explains three nights, each compared with the one before; the last drifted."""
    write_nights(example.frame, tmp_path / "data")
    told = ("explain", example.model, tmp_path / "data/{date}", "--out", tmp_path / "runs/{date}", "--scheduler", "serial")
    return *told, "--latest", tmp_path / "runs/latest.json", "--against", tmp_path / "runs/latest.json"


@pytest.mark.slow
def test_a_night_is_compared_with_the_one_before(nights, tmp_path, capsys):
    """Below what a run shows, what changed; the exit code is drift's, also of the same command again, and in a log the alarms are warnings."""
    code, said, _ = run(capsys, *nights, "--date", "2026-01-01")
    nothing = f"compared with nothing: {nights[-1]} names no earlier night; leafledger drift compares with any run"
    assert (code, said.splitlines()[-2:]) == (0, ["└──────┴──────────┴────────────┴──────────┴───────┴───────┘", nothing])
    few = tmp_path / "few.toml"
    few.write_text("distance = 0.2\nshare = 0.5\n")
    code, said, _ = run(capsys, *nights, "--date", "2026-01-02", "--thresholds", tmp_path / "few.toml")
    assert (code, said.splitlines()[-1]) == (0, f"0 alarms against {tmp_path}/runs/2026-01-01")
    for again in (False, True):
        code, said, log = run(capsys, "--log-format", "text", *nights, "--date", "2026-01-03")
        found = json.loads((tmp_path / "runs/2026-01-03/after/drift.json").read_text())
        alarms = [f"drift: {alarm}" for alarm in found["alarms"]]
        n_lines = 1 + len(found["alarms"])
        assert len(alarms) >= 2
        assert (code, said.splitlines()[-n_lines:]) == (4, [*alarms, f"{len(alarms)} alarms against {tmp_path}/runs/2026-01-02"])
        assert [line.split(" ", 3)[3] for line in log.splitlines() if " WARNING " in line] == alarms
        assert ("finished before, nothing to do" in said) is again
    assert run(capsys, *nights, "--date", "2026-01-03", "--quiet")[0::2] == (4, "")
    code, said, _ = run(capsys, *nights, "--date", "2026-01-03", "--json")
    drift = json.loads(said)["drift"]
    assert (code, drift) == (4, {"reference": f"{tmp_path}/runs/2026-01-02", "alarms": found["alarms"], "differs": found["differs"]})
    assert json.loads((tmp_path / "runs/latest.json").read_text())["run"] == f"{tmp_path}/runs/2026-01-03"
    code, said, _ = run(capsys, *nights, "--date", "2026-01-03", "--values", "--replace")  # latest names this very night
    assert (code, said.splitlines()[-1]) == (0, nothing)


@pytest.mark.slow
def test_a_night_that_cannot_be_compared_is_not_in_full(nights, tmp_path, capsys):
    """It is published, and why it was not compared is said: exit code 3. What is asked for wrongly is said before anything is done."""
    before = [*nights[:-1], tmp_path / "runs/{date-1d}"]
    code, _, log = run(capsys, *before, "--date", "2026-01-02", "--quiet")
    missing = f"not compared: {tmp_path}/runs/2026-01-01: no manifest.json there: not a finished run"
    assert (code, log) == (3, f"leafledger: {missing}\n")
    code, said, _ = run(capsys, *before, "--date", "2026-01-02", "--json")
    assert (code, json.loads(said)["said"], json.loads(said)["drift"]) == (3, [missing], None)
    itself, thresholds = tmp_path / "runs/{date}", ["--thresholds", tmp_path / "no.toml"]
    for given, says, end in (
        (["--against", itself], f"{itself}: is the very run; expected another one, such as that of the night before", 2),
        (thresholds, "thresholds are of what is compared, but nothing is: against was not given", 2),
        ([*thresholds, *nights[-2:]], f"{tmp_path}/no.toml: cannot read: no such file or object", 6),
    ):
        code, _, log = run(capsys, *nights[:-2], *given, "--date", "2026-01-03", "--quiet")
        assert (code, log) == (end, f"leafledger: {says}\n")
        if end == 2:  # of all nights
            assert run(capsys, *nights[:-2], *given, "--dates", "2026-01-03..2026-01-04", "--quiet") == (2, "", log)
    assert not (tmp_path / "runs/2026-01-03").exists()


@pytest.mark.slow
def test_a_range_says_which_nights_drifted(nights, tmp_path, capsys):
    """In the night's line and in the last one; a night of which rows were rejected says so first, and the exit code is 3."""
    code, said, _ = run(capsys, *nights, "--dates", "2026-01-01..2026-01-03")
    alarms = json.loads((tmp_path / "runs/2026-01-03/after/drift.json").read_text())["alarms"]
    drifted = f"{len(alarms)} alarms against {tmp_path}/runs/2026-01-02: {alarms[0]} and {len(alarms) - 1} more"
    few = len(json.loads((tmp_path / "runs/2026-01-02/after/drift.json").read_text())["alarms"])
    assert (code, few) == (4, 0)
    assert said.splitlines() == [
        *(f"2026-01-0{day} {tmp_path}/runs/2026-01-0{day}: explained (1,000 rows in 1 part)" for day in (1, 2)),
        f"2026-01-03 {tmp_path}/runs/2026-01-03: explained (1,000 rows in 1 part); {drifted}",
        "3 nights: 3 explained, 0 finished before, 0 failed; 1 drifted",
    ]
    code, said, _ = run(capsys, *nights, "--dates", "2026-01-01..2026-01-03")  # as the next morning's: one that was told once is not told for a week
    assert (code, said.splitlines()[-1]) == (0, "3 nights: 0 explained, 3 finished before, 0 failed")
    (tmp_path / "data/2026-01-03/month=2").mkdir()
    (tmp_path / "data/2026-01-03/month=2/data.parquet").write_bytes(b"damaged")
    again = [*nights[:-1], tmp_path / "runs/{date-1d}"]
    code, said, log = run(capsys, *again, "--replace", "--dates", "2026-01-02..2026-01-03")
    (rejected,) = [line.removeprefix("leafledger: ") for line in log.splitlines() if "rejected: " in line]
    line = f"2026-01-03 {tmp_path}/runs/2026-01-03: explained (1,000 rows in 1 part); {rejected}; {drifted}"
    total = "2 nights: 1 explained, 1 finished before, 0 failed; 1 not in full, 1 drifted"
    assert (code, said.splitlines()[1:]) == (3, [line, total])
