"""What is said of an environment: counts, versions, tests that failed, and where pytest stood still."""

import json
import sys
import time
from pathlib import Path

import pytest

from tests.supported import __main__ as supported
from tests.supported.__main__ import ENVIRONMENTS, describe, read_results, run_tests

RESULTS = """<testsuites><testsuite>
<testcase classname="tests.a" name="test_right"/>
<testcase classname="tests.a" name="test_left_out"><skipped message="none here"/></testcase>
<testcase classname="tests.a" name="test_wrong"><failure message="1 is 2"/></testcase>
<testcase classname="tests.a" name="test_right_till_its_end"/>
</testsuite></testsuites>"""
LATER = """<testsuites><testsuite><testcase classname="tests.b" name="test_late"><error message="none"/></testcase></testsuite></testsuites>"""
SAID = "tests/flows/test_explain.py::test_dates[a b] "


def said(*lines, then):
    """A command that writes lines as pytest does, the last one without an end, and does something then."""
    return sys.executable, "-c", f"import os, subprocess, sys, time\nprint({chr(10).join(lines)!r}, end='', flush=True)\n{then}"


def test_results_are_counted_and_those_that_failed_are_named(tmp_path):
    """Of every call of pytest that wrote any; what went wrong besides is one more that failed."""
    (tmp_path / "0.xml").write_text(RESULTS)
    (tmp_path / "1.xml").write_text(LATER)
    found = read_results(tmp_path, ["tests/c.py::test_last: stood still for 900 s"])
    named = ["tests.a::test_wrong", "tests.b::test_late", "tests/c.py::test_last: stood still for 900 s"]
    assert found == {"passed": 2, "skipped": 1, "failed": named}


@pytest.mark.parametrize("then", ["sys.exit(0)", "sys.exit(1)"])
def test_tests_that_all_ran_say_for_themselves_what_failed(then, tmp_path):
    assert run_tests(said(f"{SAID}PASSED [ 50%]", then=then), tmp_path / "log") is None


def test_what_stands_still_is_ended_and_its_last_test_is_named(tmp_path):
    """With all that it started, which would go on for ever."""
    left = "left = subprocess.Popen(['sleep', '1000']); open(sys.argv[1], 'w').write(str(left.pid)); time.sleep(1000)"
    command = said("tests/a.py::test_first PASSED [ 50%]", SAID, then=left)
    assert run_tests((*command, tmp_path / "left"), tmp_path / "log", still=2) == f"{SAID.strip()}: stood still for 2 s"
    assert ends(int((tmp_path / "left").read_text()))


def ends(process, seconds=10):
    """Whether a process that was killed has ended, be it that nobody has asked yet how, which takes a while on a busy machine."""
    for _ in range(10 * seconds):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


def test_what_is_slow_but_writes_is_waited_for(tmp_path):
    slow = "for i in range(12):\n    time.sleep(0.25)\n    print('.', flush=True)"
    assert run_tests(said(SAID, then=slow), tmp_path / "log", still=2) is None


def test_a_pytest_that_crashes_says_with_what(tmp_path, capfd):
    """And shows what it wrote; before any test is named, that is said."""
    assert run_tests(said(SAID, then="os.abort()"), tmp_path / "log") == f"{SAID.strip()}: pytest ended with -6"
    assert SAID in capfd.readouterr().out
    assert run_tests(said("ImportError", then="sys.exit(4)"), tmp_path / "log") == "before the first test: pytest ended with 4"


def test_an_environment_is_described_by_its_own_versions(tmp_path):
    """Those of the interpreter that runs this, as an environment of its own; of the packages only those that are told."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    import numpy

    found = describe(tmp_path, [])
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["versions"]["numpy"] == numpy.__version__
    assert set(found["versions"]) <= set(supported.TOLD)
    assert (found["passed"], found["failed"]) == (0, [])


def test_what_was_found_before_of_others_is_kept(tmp_path, monkeypatch, capsys):
    """In the order of environments; one that failed ends the program with its tests, a line each."""
    kept, found = {"newest": {"passed": 3}}, {"passed": 1, "skipped": 0, "failed": ["tests.a::test_wrong"]}
    (tmp_path / "supported.json").write_text(json.dumps(kept))
    monkeypatch.setattr(supported, "FILE", tmp_path / "supported.json")
    monkeypatch.setattr(supported, "try_out", lambda chosen, folder: found | {"python": chosen.python})
    with pytest.raises(SystemExit, match=r"^oldest: tests\.a::test_wrong$"):
        supported.main(tmp_path, ["oldest"])
    assert capsys.readouterr().out == "oldest: 1 passed, 0 skipped, 1 failed\n"
    written = json.loads((tmp_path / "supported.json").read_text())
    assert list(written) == ["oldest", "newest"] == [name for name in ENVIRONMENTS if name in written]
    assert written["oldest"]["python"] == "3.11"
    assert written["newest"] == kept["newest"]
