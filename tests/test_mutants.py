"""Changes of the code are what they say, and whoever survives does so since no test fails."""

import ast

import pytest

from tests import mutants
from tests.lines_run import First, Recorder

SMALL = '''"""Words stay."""

if TYPE_CHECKING:
    import this
else:
    this = None
if TYPE_CHECKING:
    import antigravity


@jit
def compiled(x: int = 1) -> int:
    return x + 2


def larger(x: int, y: int = 3) -> bool:
    """Words stay."""
    if x < 0:
        raise ValueError(f"{x} is less than {0}")
    print(x, zip([x], [y], strict=True))
    return not x <= y and max(x, y) > 7
'''


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A package of one module and its tests, in the place of ours."""
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    for name in ("pipeline", "leafledger", "tests/pipeline"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("pipeline", "leafledger"):
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "leafledger" / "pipeline").symlink_to("../pipeline")
    (tmp_path / "tests" / "conftest.py").write_text('import hypothesis\nhypothesis.settings.register_profile("mutants")\n')
    path = tmp_path / "pipeline" / "small.py"
    path.write_text(SMALL)
    return path


def test_every_change_is_of_one_node_of_code_that_runs_uncompiled(small):
    """Conditions, comparisons, operators, calls, values and numbers; neither words, annotations, defaults and messages nor what is compiled."""
    found = mutants.mutants_of(small)
    assert [str(mutant).partition(": ")[2] for mutant in found] == [
        "if TYPE_CHECKING: -> if not TYPE_CHECKING:",
        "if x < 0: -> if not x < 0:",
        "x < 0 -> x <= 0",
        "0 -> 1 at 7 of if x < 0:",
        "print(x, zip([x], [y], strict=True)) -> pass",
        "return not x <= y and max(x, y) > 7 -> return None",
        "not x <= y and max(x, y) > 7 -> not x <= y or max(x, y) > 7",
        "not x <= y -> x <= y",
        "x <= y -> x < y",
        "max(x, y) > 7 -> max(x, y) >= 7",
        "max(x, y) -> min(x, y)",
        "7 -> 8 at 34 of return not x <= y and max(x, y) > 7",
    ]
    plain = ast.unparse(ast.parse(SMALL))
    for mutant in found:
        lines = [pair for pair in zip(plain.splitlines(), mutant.source.splitlines(), strict=True) if pair[0] != pair[1]]
        assert len(lines) == 1


def test_a_module_s_tests_are_those_that_are_called_like_it(small):
    """With a word more, too, unless a module is called so."""
    for name in ("small_things.py", "smaller.py"):
        (small.parent / name).touch()
    for name in ("test_small.py", "test_small_faults.py", "test_small_things.py", "test_small_things_faults.py", "test_smaller.py"):
        (small.parents[1] / "tests/pipeline" / name).touch()
    assert mutants.tests_of(small) == ["tests/pipeline/test_small.py", "tests/pipeline/test_small_faults.py"]
    assert mutants.tests_of(small.parent / "small_things.py") == ["tests/pipeline/test_small_things.py", "tests/pipeline/test_small_things_faults.py"]


@pytest.mark.slow
def test_a_change_survives_where_no_test_fails(small, tmp_path):
    """The tests of its module alone are asked; what hangs is noticed too; and the module is as it was afterwards."""
    (tmp_path / "tests/pipeline/test_small.py").write_text("def test_it():\n    from leafledger.pipeline.small import x\n    assert x == 1\n")
    small.write_text("x, y = 1, 2\nwhile y < 0:\n    pass\n")
    survived = {}
    for mutant in mutants.mutants_of(small):
        change = str(mutant).partition(": ")[2]
        survived[change] = mutants.survives(mutant, tmp_path, seconds=5 if "while not" in change else 120)  # the one that hangs, and slow machines
    assert survived == {
        "1 -> 2 at 7 of x, y = 1, 2": False,
        "2 -> 3 at 10 of x, y = 1, 2": True,
        "while y < 0: -> while not y < 0:": False,
        "y < 0 -> y <= 0": True,
        "0 -> 1 at 10 of while y < 0:": True,
    }
    assert small.read_text().startswith("x, y = 1, 2")


SPEAKING = """import pathlib, threading, time
import pytest
from leafledger.pipeline.small import even

@pytest.fixture(autouse=True)
def say(request):
    with (pathlib.Path(__file__).parents[1] / "order").open("a") as order:
        order.write(request.node.name + " ")

def test_others():
    pass

def test_slow():
    time.sleep(0.3)
    thread = threading.Thread(target=even, args=(1,))
    thread.start()
    thread.join()

def test_odd():
    assert not even(3)

def test_often():
    assert all(even(2 * i) for i in range(1000))
"""


@pytest.mark.slow
def test_tests_that_run_a_line_come_first(small, tmp_path):
    """The fastest first, also where a thread runs it; of the others too, since what they start may run it."""
    small.write_text("def even(x):\n    if x % 2:\n        return False\n    return True\n")
    (tmp_path / "tests/pipeline/test_small.py").write_text(SPEAKING)
    order, record = tmp_path / "tests" / "order", tmp_path / "record.json"
    assert mutants.passes(small, tmp_path, 120, Recorder(tmp_path / "leafledger/pipeline/small.py", record))
    assert order.read_text().split() == ["test_others", "test_slow", "test_odd", "test_often"]
    found = {name.partition("::")[2]: lines for name, (_, lines) in mutants.json.loads(record.read_text()).items()}
    assert found == {"test_others": [], "test_slow": [2, 3], "test_odd": [2, 3], "test_often": [2, 4]}
    (odd,) = [mutant for mutant in mutants.mutants_of(small) if "False -> True" in str(mutant)]
    assert odd.lines == range(3, 4)
    order.unlink()
    assert mutants.passes(small, tmp_path, 120, First(record, odd.lines))
    asked = order.read_text().split()
    assert asked[:2] == ["test_odd", "test_slow"]
    assert sorted(asked[2:]) == ["test_often", "test_others"]  # in the order of moments, which no two runs share


@pytest.mark.slow
def test_tests_that_fail_anyway_notice_nothing(small, monkeypatch, capsys):
    """They would seem to notice every change; other modules are tried without it."""
    monkeypatch.setattr(mutants, "COPIED", ("pipeline", "leafledger", "tests"))
    (small.parents[1] / "none.json").write_text("{}")
    monkeypatch.setattr(mutants, "EQUIVALENT", small.parents[1] / "none.json")
    test = small.parents[1] / "tests/pipeline/test_small.py"
    for body, code in (("assert True", 1), ("assert False", 2)):
        test.write_text(f"def test_it():\n    {body}\n")
        monkeypatch.setattr(mutants.sys, "argv", ["mutants", "--mutants", "1", "--jobs", "1"])
        assert mutants.main() == code
    said = capsys.readouterr().out
    assert "tests/pipeline/test_small.py fails, or takes more than 240 s, as the code is: not changed\n0 of 0 mutants survive\n" in said


@pytest.mark.slow
def test_what_is_known_to_be_equivalent_is_there_and_not_drawn(monkeypatch, tmp_path):
    """Every reason is of a change that can be made; without it the change is drawn; and the draw is the same each time."""
    known = mutants.json.loads(mutants.EQUIVALENT.read_text())
    for name, reason in known.items():
        path = name.partition(":")[0]
        assert name in {str(mutant) for mutant in mutants.mutants_of(mutants.ROOT / path)}
        assert len(reason.split()) > 3
    only = ("runs/records/input_digests.py",)
    some = [str(mutant) for mutant in mutants.draw(10**9, 0, only)]
    (tmp_path / "one.json").write_text(mutants.json.dumps({some[0]: "it stands for all that are known"}))
    monkeypatch.setattr(mutants, "EQUIVALENT", tmp_path / "one.json")
    assert {str(mutant) for mutant in mutants.draw(10**9, 0, only)} == {*some[1:]}
    assert [str(mutant) for mutant in mutants.draw(5, 7, only)] == [str(mutant) for mutant in mutants.draw(5, 7, only)]
