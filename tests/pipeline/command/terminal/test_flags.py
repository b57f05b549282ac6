"""Flags of the command are the fields of Options: what is typed is what Python would be given, and the help says what Options says."""

import io
from dataclasses import fields
from typing import get_args

import pytest
from cyclopts import App, CoercionError, CycloptsError, Token
from rich.console import Console

from leafledger.kernels.methods import METHODS
from leafledger.pipeline.command import cli as app_
from leafledger.pipeline.command.terminal.flags import (
    BACKGROUND,
    CLUSTER,
    DEFAULTS,
    DOUBTFUL,
    GROUPS,
    INPUT,
    LABELS,
    METHOD,
    METRICS,
    MODEL,
    ROWS,
    Flags,
    list_methods,
)
from leafledger.pipeline.command.terminal.settings import option_names
from leafledger.pipeline.errors import UsageError
from leafledger.pipeline.runs.job.options import Options


def typed(*arguments):
    """The options that a command line gives."""
    app, found = App(result_action="return_value"), []

    @app.default
    def _(*, options: Flags = DEFAULTS):
        found.append(options)

    app(list(arguments), exit_on_error=False, print_error=False)
    return found[0]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ((), {}),
        (("--id", "flight", "--id", "name"), {"ids": ("flight", "name")}),
        (("--id", "flight", "name"), {"ids": ("flight", "name")}),
        (("--method", "beta", "--parameter", "alpha=4", "beta=1"), {"method": "beta", "parameters": {"alpha": "4", "beta": "1"}}),
        (("--parameter", "density=0:0,0.5:2", "--parameter", "x=a=b"), {"parameters": {"density": "0:0,0.5:2", "x": "a=b"}}),
        (("--precision", "float64", "--global-only", "--single-writer"), {"precision": "float64", "global_only": True, "single_writer": True}),
        (("--date", "2026-11-20", "--latest", "latest.json"), {"date": "2026-11-20", "latest": "latest.json"}),
        (("--interactions", "3", "--partition", "groups.json"), {"interactions": 3, "partition": "groups.json"}),
        (("--interactions", "all"), {"interactions": "all"}),
        (("--background", "rows", "--tables", "kept"), {"background": "rows", "tables": "kept"}),
        (
            ("--label", "y", "--weight", "w", "--by", "a", "b", "--missing-labels", "refuse"),
            {"label": "y", "weight": "w", "by": ("a", "b"), "missing_labels": "refuse"},
        ),
        (("--scheduler", "tls://x:1", "--workers", "2", "--plain-tcp"), {"scheduler": "tls://x:1", "workers": 2, "plain_tcp": True}),
        (("--max-rejected", "0"), {"max_rejected": 0}),
    ],
)
def test_what_is_typed_is_what_python_would_be_given(arguments, given):
    """Field by field, the defaults among them."""
    found, expected = typed(*arguments), Options(**given)
    assert {field.name: getattr(found, field.name) for field in fields(Options)} == {
        field.name: getattr(expected, field.name) for field in fields(Options)
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--interactions", "few"), r"^interactions is 'few', expected a number of at least 1"),
        (("--parameter", "p=0.3", "--parameter", "p=0.5"), r"^parameters has 'p' twice, expected once$"),
        (("--parameter", "p=0.3", "p=0.3"), r"^parameters has 'p' twice, expected once$"),
    ],
)
def test_a_wrong_value_is_refused_as_in_python(arguments, says):
    """In the words of Options."""
    with pytest.raises(UsageError, match=says):
        typed(*arguments)


@pytest.mark.parametrize("number", ["2.7", "0.5", "3.0", "0.05", "0x10", "1_0", "1e3", "+3", " 3", "３", "--", ""])
@pytest.mark.parametrize("flag", ["--max-rejected", "--workers", "--threads", "--top"])
def test_what_is_no_whole_number_is_refused(flag, number):
    """Nor rounded: 0.05 of the files is not none of them."""
    with pytest.raises(CycloptsError, match=rf"Invalid value for {flag}: unable to convert .* into int\.") as refused:
        typed(f"{flag}={number}")
    assert f'"{number}"' in str(refused.value)


@pytest.mark.parametrize("number", ["2.7", "3.0", "0x10", "1_0", "1e3", "+3", " 3", "３", "--", "", "0", "files"])
def test_rows_of_an_item_are_a_whole_number_or_a_word(number):
    """In the words of Options, as Python's."""
    assert (typed("--item-rows=file").item_rows, typed("--item-rows=30").item_rows, typed().item_rows) == ("file", 30, None)
    with pytest.raises(UsageError, match=r"^item_rows is .*, expected a number of at least 1, or 'file'$"):
        typed(f"--item-rows={number}")


@pytest.mark.parametrize("name", ["explain", "plan", "compare", "check", "show", "drift", "report", "effects", "certificates", "deploy"])
def test_no_flag_of_any_command_rounds(name):
    """Every option of a command that is a whole number is read as one."""
    whole = [argument for argument in app_.app[name].assemble_argument_collection() if int in (argument.hint, *get_args(argument.hint))]
    assert whole
    for argument in whole:
        with pytest.raises(CoercionError):
            argument.parameter.converter(int, (Token(keyword=argument.name, value="2.7"),))


def test_every_flag_is_in_the_help_with_its_sentence(capsys):
    """In the group that it stands in, what is given most often first; no flag has a negative twin."""
    app = App(console=Console(width=1000))

    @app.default
    def _(*, options: Flags = DEFAULTS):
        """Nothing."""

    app.help_print([])
    said = capsys.readouterr().out
    titles = [line.split(" ─")[0].removeprefix("╭─ ") for line in said.splitlines() if line.startswith("╭─")]
    assert titles[1:] == [
        *(group.name for group in (INPUT, METHOD)),
        "Methods",
        *(group.name for group in (MODEL, ROWS, BACKGROUND, LABELS, CLUSTER, DOUBTFUL, METRICS)),
    ]
    assert sum(map(len, GROUPS.values())) == len(fields(Options))
    for text in ("Columns of the data that are passed through to the attributions", "Which values rows get", "fills {date} in every path and URI"):
        assert text in said
    assert "--no-" not in said


def test_methods_are_listed_from_their_declarations():
    """Each with its meaning and its parameters, with their defaults; markup in them is text."""
    console = Console(width=1000, record=True, file=io.StringIO())
    console.print(list_methods())
    said = console.export_text()
    for method in METHODS.values():
        assert f"{method.name} " in said
        assert method.meaning in said
        for parameter in method.parameters:
            default = f" [default: {parameter.default}]" if parameter.default not in ((), "") else ""
            assert f"{parameter.name}: {parameter.meaning}{default}" in said


def test_who_takes_a_scheduler_takes_how_long_it_is_waited_for():
    """The line that says that none has a worker says so."""
    taken = {name: option_names(app_.app[name].assemble_argument_collection()) for name in app_.app if not name.startswith("-")}
    assert {name for name, options in taken.items() if "scheduler" in options} == {name for name, options in taken.items() if "wait" in options}
