"""What GitHub reads of the repository: workflows, forms and Dependabot's file, by their schemas and by a linter of workflows' security."""

import re

import pytest
import yaml

from tests.infra.files import ROOT, call

GITHUB = ROOT / ".github"
SCHEMAS = {
    "vendor.github-workflows": "workflows/*.yml",
    "custom.github-workflows-require-timeout": "workflows/*.yml",
    "vendor.dependabot": "dependabot.yml",
    "vendor.github-issue-config": "ISSUE_TEMPLATE/config.yml",
    "vendor.github-issue-forms": "ISSUE_TEMPLATE/w*.yml",
}


@pytest.mark.parametrize(("schema", "files"), SCHEMAS.items())
def test_files_are_of_their_schemas(schema, files):
    found = sorted(GITHUB.glob(files))
    assert found
    code, said = call("check-jsonschema", "--builtin-schema", schema, *found)
    assert code == 0, said


def test_workflows_pass_their_linter():
    """Actions by digest, no token that stays, no more permissions than a job needs, nothing of a stranger's in a shell."""
    code, said = call("zizmor", "--offline", "--no-progress", GITHUB)
    assert code == 0, said


def test_workflows_call_targets_that_there_are():
    """Every ``make`` of a workflow, and of the matrix of nightly checks."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = set()
    for path in sorted((GITHUB / "workflows").glob("*.yml")):
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            typed = [step.get("run", "") for step in job["steps"]]
            typed += [f"make {target}" for target in job.get("strategy", {}).get("matrix", {}).get("target", [])]
            for line in typed:
                for words in re.findall(r"\bmake ([^|\n\"]*)", line):
                    asked |= {word for word in words.split() if re.fullmatch("[a-z-]+", word)}
    assert {"test", "lint", "docs", "wheel", "faults", "fuzz", "bench"} <= asked
    assert asked <= targets, asked - targets


def test_forms_ask_for_options_that_there_are():
    """A form that names a command's option names one that the command has."""
    asked = re.findall(r"`leafledger ([a-z]+) (--[a-z-]+)", "".join(path.read_text() for path in (GITHUB / "ISSUE_TEMPLATE").glob("w*.yml")))
    assert asked == [("inspect", "--report")]
    assert "report: bool" in (ROOT / "pipeline" / "command" / "commands" / "models" / "inspecting.py").read_text()
