"""The command that compiles ahead: what it says, where it goes on, and what it refuses."""

import json
import os

import pytest

from leafledger.kernels import compiled as compiling
from leafledger.pipeline.command import cli
from leafledger.pipeline.command.commands import warming
from leafledger.pipeline.effects import warmup as effects
from leafledger.pipeline.methods import warmup as pieces


@pytest.fixture
def two(monkeypatch):
    """Two pieces, none of which compiles."""
    done = []
    monkeypatch.setattr(pieces, "list_pieces", lambda names: [("one", lambda: done.append(1)), ("two", lambda: done.append(2))])
    monkeypatch.setattr(effects, "warm_effects", lambda: None)
    monkeypatch.setattr(compiling, "find_folder", lambda: "/kernels")
    monkeypatch.delenv("NUMBA_CPU_NAME", raising=False)
    return done


def test_pieces_are_counted_on_standard_error(two, capsys):
    """And what was compiled, for what, and where it is, on standard output; or as a document."""
    assert cli.main(["warm"]) == 0
    said = capsys.readouterr()
    assert said.err.splitlines() == ["1 of 3: one: were there", "2 of 3: two: were there", "3 of 3: effects: were there"]
    assert said.out == f"0 functions compiled for {compiling.name_cpu()} in 0 s, kept in /kernels\n"
    assert cli.main(["warm", "--json", "--quiet", "--methods", "shapley"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (said.err, found["folder"], found["compiled"], found["methods"], two) == ("", "/kernels", 0, ["shapley"], [1, 2, 1, 2])


def test_where_nothing_can_be_kept_it_goes_on(two, capsys, monkeypatch):
    """A warning, and nothing is done: it would be lost."""
    monkeypatch.setattr(compiling, "find_folder", lambda: None)
    assert cli.main(["warm"]) == 0
    said = capsys.readouterr()
    assert (said.out, two) == ("", [])
    assert said.err == "leafledger: nothing is compiled: no folder for compiled kernels can be written; set NUMBA_CACHE_DIR\n"
    assert cli.main(["warm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] is None


def test_a_level_is_warmed_in_a_process_of_its_own(two, capsys, monkeypatch):
    """Whose environment is the one that later processes need; what it says and its exit code are passed on."""
    given = []

    class Done:
        stdout, returncode = "said\n", 3

    def run(told, env, **_):
        given.append((told[-3:], env["NUMBA_CPU_NAME"], env["NUMBA_CPU_FEATURES"]))
        return Done

    monkeypatch.setattr(warming.subprocess, "run", run)
    monkeypatch.setattr(compiling, "find_lacking", lambda level: ())
    assert cli.main(["warm", "--cpu", "x86-64-v3", "--quiet", "--json"]) == 3
    assert (capsys.readouterr().out, given, two) == ("said\n", [(["--cpu=x86-64-v3", "--quiet", "--json"], "x86-64-v3", "")], [])


def test_a_process_of_the_level_does_the_work(two, monkeypatch):
    monkeypatch.setitem(os.environ, "NUMBA_CPU_NAME", "x86-64-v3")
    monkeypatch.setitem(os.environ, "NUMBA_CPU_FEATURES", "")
    assert cli.main(["warm", "--cpu", "x86-64-v3", "--quiet"]) == 0
    assert two == [1, 2]


def test_a_processor_of_another_level_is_refused(two, capsys, monkeypatch):
    """Before it stumbles over an instruction that it does not know."""
    monkeypatch.setattr(compiling, "find_lacking", lambda level: ("avx512f", "avx512bw"))
    assert cli.main(["warm", "--cpu", "x86-64-v4"]) == 2
    said = "leafledger: --cpu is x86-64-v4, this machine's processor lacks avx512f, avx512bw; compile on one that has it\n"
    assert capsys.readouterr().err == said


def test_an_unknown_method_is_one_line(capsys):
    assert cli.main(["warm", "--methods", "banzaf"]) == 2
    assert capsys.readouterr().err.startswith("leafledger: unknown method 'banzaf', expected one of shapley, ")
