"""The night that cron begins: the script that the page shows, run by a shell, with what it tells whom."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from datetime import date, timedelta

import pytest

from tests.infra.files import INFRA, ROOT, find
from tests.pipeline.conftest import make_frame, train, write_nights

SCRIPT, TABLE = INFRA / "cron/night.sh", INFRA / "cron/crontab"
PAGE = ROOT / "docs/nights.md"
MAIL = """#!/bin/sh
printf '%s\\n' "$3" "$2" > "$STATE/subject" && cat > "$STATE/mail"
"""

pytestmark = pytest.mark.skipif(find("flock") is None, reason="util-linux is not installed")


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def state(tmp_path):
    """A folder with a program that sends mail, first in the path."""
    (tmp_path / "bin").mkdir()
    write_program(tmp_path / "bin/mail", MAIL)
    return tmp_path


def night(state, program, **given):
    """Exit code of the script, and the mail's subject and lines; it says nothing itself, or cron would mail that too."""
    (state / "mail").unlink(missing_ok=True)
    where = os.environ | {"PATH": f"{state}/bin:{os.environ['PATH']}", "STATE": str(state), "LEAFLEDGER": str(program), "PAUSE": "0"} | given
    done = subprocess.run([str(SCRIPT)], capture_output=True, text=True, env=where, cwd=state, timeout=300, check=False)
    assert (done.stdout, done.stderr) == ("", "")
    if not (state / "mail").exists():
        return done.returncode, None, None
    whom, subject = (state / "subject").read_text().splitlines()
    assert whom == given.get("MAILTO", "root")
    return done.returncode, subject, (state / "mail").read_text().splitlines()


def test_the_page_shows_what_is_run():
    shown = re.findall(r"```\{literalinclude\} \.\./(infra/cron/\S+)", PAGE.read_text())
    assert [ROOT / name for name in shown] == [SCRIPT, TABLE]


def test_the_table_is_one_of_cron():
    """Of /etc/cron.d, whose lines name a user; what follows a % would be the program's input."""
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    settings, jobs = ([line for line in lines if bool(re.match(r"[A-Z]+=", line)) is is_setting] for is_setting in (True, False))
    assert {line.partition("=")[0] for line in settings} == {"MAILTO", "PATH"}
    assert [line.split() for line in jobs] == [["0", "3", "*", "*", "*", "leafledger", "/opt/leafledger/bin/night.sh"]]
    assert all("%" not in line for line in lines)


@pytest.mark.parametrize(
    ("code", "subject", "tries"),
    [
        (1, "leafledger: failed (exit code 1)", 1),
        (2, "leafledger: failed (exit code 2)", 1),
        (3, "leafledger: not in full (exit code 3)", 1),
        (4, "leafledger: drifted (exit code 4)", 1),
        (6, "leafledger: data have not come (exit code 6)", 3),
        (7, "leafledger: conflict with a run that is there (exit code 7)", 1),
        (8, "leafledger: data or model refused (exit code 8)", 1),
        (9, "leafledger: store or cluster away (exit code 9)", 3),
        (143, "leafledger: failed (exit code 143)", 1),
    ],
)
def test_every_exit_code_is_told(state, code, subject, tries):
    """Once, to whom the table names; tried again is what may pass alone."""
    text = f'#!/bin/sh\necho "$@" >> "$STATE/told"\necho a line\necho progress >&2\necho "leafledger: an error" >&2\nexit {code}\n'
    found = night(state, write_program(state / "program", text), TRIES="3", MAILTO="operators@example.com")
    assert found == (code, subject, ["a line", "leafledger: an error"])
    first = date.today() - timedelta(days=7)
    assert (state / "told").read_text().splitlines() == [f"explain --config /etc/leafledger/nights.toml --dates {first}..yesterday"] * tries


def test_data_that_were_refused_are_told_beside_those_that_have_not_come(state):
    """Both in one range: the code is the one that is tried again, and the subject names both."""
    text = '#!/bin/sh\necho "2026-11-01 r: failed, exit code 8: damaged"\necho "2026-11-02 r: failed, exit code 6: not there"\nexit 6\n'
    code, subject, lines = night(state, write_program(state / "program", text), TRIES="1")
    assert (code, subject, len(lines)) == (6, "leafledger: data have not come, and others are refused (exit code 6)", 2)


def test_what_passes_is_not_told(state):
    """Data that come between two tries; and a good night."""
    text = '#!/bin/sh\n[ -e "$STATE/came" ] && exit 0\ntouch "$STATE/came"\nexit 6\n'
    assert night(state, write_program(state / "program", text)) == (0, None, None)


@pytest.mark.parametrize(
    ("second", "code", "subject"), [(0, 4, "leafledger: drifted (exit code 4)"), (6, 6, "leafledger: data have not come (exit code 6)")]
)
def test_drift_is_told_whichever_try_found_it(state, second, code, subject):
    """The next try passes over a night that drifted, and its own lines do not say so; a good night of the first try is not told again."""
    lines = ["2026-11-02 runs/2026-11-02: explained (9 rows in 1 part); 1 alarm against runs/2026-11-01: margin: mean 2, was 1"]
    good, then = "2026-11-01 runs/2026-11-01: explained (9 rows in 1 part)", "2026-11-02 runs/2026-11-02: finished before (9 rows in 1 part)"
    text = f'#!/bin/sh\n[ -e "$STATE/came" ] && echo "{then}" && exit {second}\ntouch "$STATE/came"\necho "{good}"\necho "{lines[0]}"\nexit 6\n'
    assert night(state, write_program(state / "program", text), TRIES="2") == (code, subject, [*lines, then])


def test_two_do_not_work_at_once(state):
    """The second tells that the first is at work, and leaves it alone."""
    program = write_program(state / "program", '#!/bin/sh\ntouch "$STATE/begun"\n')
    with (state / "night.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = ["The night before is still at work; this one was not begun. It is made up for by the next."]
        assert night(state, program) == (75, "leafledger: still at work", said)
        assert not (state / "begun").exists()
    assert night(state, program) == (0, None, None)
    assert (state / "begun").exists()


def test_the_lock_lasts_as_long_as_the_work(state):
    """Also where the script alone is killed, and what it started works on; killed too, it keeps nobody from going on."""
    program = write_program(state / "program", '#!/bin/sh\necho $$ > "$STATE/worker" && mv "$STATE/worker" "$STATE/begun"\nexec sleep 300\n')
    where = os.environ | {"STATE": str(state), "LEAFLEDGER": str(program), "PATH": f"{state}/bin:{os.environ['PATH']}"}
    with subprocess.Popen([str(SCRIPT)], env=where, cwd=state) as script:
        until = time.monotonic() + 60
        while not (state / "begun").exists() and time.monotonic() < until:
            time.sleep(0.05)
        worker = int((state / "begun").read_text())
        try:
            script.kill()
            script.wait()
            assert night(state, "/bin/true")[:2] == (75, "leafledger: still at work")
        finally:
            os.kill(worker, signal.SIGKILL)
    with (state / "night.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits until it has gone
    assert night(state, "/bin/true") == (0, None, None)


KILLED = """
import os, signal, sys
from leafledger.pipeline.command.cli import main
from leafledger.pipeline.runs import explain

explain.publish_run = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
sys.exit(main())
"""


@pytest.fixture
def bucket(monkeypatch):
    """Buckets of flights, models and runs, and an environment that leads there."""
    import s3fs

    from tests.moto_store import run_moto

    with run_moto() as url:
        given = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "cron", "AWS_SECRET_ACCESS_KEY": "cron", "AWS_DEFAULT_REGION": "us-east-1"}
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        found = s3fs.S3FileSystem()
        # No other test has these names: moto servers of a process share their buckets.
        for name in ("cron-flights", "cron-models", "cron-explained"):
            found.mkdir(name)
        yield found
        s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.slow
def test_a_week_by_cron(state, bucket):
    """With leafledger itself, from and to a bucket: a night that is killed, one whose data are late, one that drifted, a new model; and good
    mornings, on which nobody is told of anything again."""
    frame, days = make_frame(), [date.today() - timedelta(days=ago) for ago in range(7, 0, -1)]
    write_nights(frame, state / "written")

    def bring(day, which):
        bucket.put_file(str(state / f"written/2026-01-0{which}/month=1/data.parquet"), f"cron-flights/{day}/month=1/data.parquet")

    def bring_model(**parameters):
        train(frame, **parameters).save_model(state / "model.txt")
        bucket.put_file(str(state / "model.txt"), "cron-models/model.txt")

    def say(day, what, detail=" (1,000 rows in 1 part)"):
        return f"{day} s3://cron-explained/{day}: {what}{detail}"

    bring_model()
    for day in days[:6]:
        bring(day, 1)
    (state / "nights.toml").write_text(
        '[explain]\nmodel = "s3://cron-models/model.txt"\ndata = "s3://cron-flights/{date}"\nout = "s3://cron-explained/{date}"\nlatest = "s3://cron-explained/latest.json"\n'
        'against = "s3://cron-explained/latest.json"\nscheduler = "serial"\nif-changed = "keep"\nquiet = true\n'
    )
    (state / "killed.py").write_text(KILLED)
    program, killed = (
        write_program(state / name, f'#!/bin/sh\nexec {sys.executable} {what} "$@"\n')
        for name, what in (("program", "-m leafledger"), ("killed", state / "killed.py"))
    )
    where = {"NIGHTS": str(state / "nights.toml"), "TRIES": "1", "PYTHONPATH": str(ROOT)}
    assert night(state, killed, **where) == (137, "leafledger: failed (exit code 137)", [])
    assert not bucket.exists(f"cron-explained/{days[0]}/manifest.json")

    late = f"s3://cron-flights/{days[6]}: cannot list: no such file or object"
    code, subject, lines = night(state, program, **where)
    assert (code, subject) == (6, "leafledger: data have not come (exit code 6)")
    explained, before = ([say(day, what) for day in days[:6]] for what in ("explained", "finished before"))
    failed = [say(days[6], "failed", f", exit code 6: {late}")]
    assert lines == [*explained, *failed, "7 nights: 6 explained, 0 finished before, 1 failed", f"leafledger: {late}"]

    bring(days[6], 3)
    code, subject, lines = night(state, program, **where)
    assert (code, subject) == (4, "leafledger: drifted (exit code 4)")
    assert lines[:6] + lines[7:] == [*before, "7 nights: 1 explained, 6 finished before, 0 failed; 1 drifted"]
    assert re.fullmatch(rf"{re.escape(say(days[6], 'explained'))}; \d alarms against s3://cron-explained/{days[5]}: \S.* and \d more", lines[6])
    assert night(state, program, **where) == (0, None, None)

    bring_model(num_leaves=4)
    assert night(state, program, **where) == (0, None, None)
    (state / "nights.toml").write_text((state / "nights.toml").read_text().replace('if-changed = "keep"\n', ""))
    code, subject, lines = night(state, program, **where)
    assert (code, subject, lines[7]) == (
        7,
        "leafledger: conflict with a run that is there (exit code 7)",
        "7 nights: 0 explained, 0 finished before, 7 failed",
    )
