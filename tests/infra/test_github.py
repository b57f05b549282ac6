"""What GitHub reads of the repository: workflows, forms and Dependabot's file, by their schemas and by linters of workflows and of their scripts."""

import re

import pytest
import yaml

from infra.release import BILL, NOTES, RECIPE
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


def read_jobs(name):
    """The jobs of a workflow."""
    return yaml.safe_load((GITHUB / "workflows" / f"{name}.yml").read_text())["jobs"]


def test_scripts_of_workflows_pass_their_linter(tmp_path):
    """As bash, which runs them and ends where a command fails."""
    for path in sorted((GITHUB / "workflows").glob("*.yml")):
        for name, job in read_jobs(path.stem).items():
            script = tmp_path / f"{path.stem}-{name}.sh"
            script.write_text("#!/bin/bash\nset -e\n" + "\n".join(step["run"] for step in job["steps"] if "run" in step))
    assert len(list(tmp_path.glob("*.sh"))) > 8
    assert call("shellcheck", *sorted(tmp_path.glob("*.sh"))) == (0, "")


def test_a_release_keeps_no_token_and_publishes_what_was_attested():
    """By trusted publishing, after packages and images are attested; only its last job may change the repository."""
    jobs = read_jobs("release")
    assert {name for name, job in jobs.items() if job["permissions"].get("id-token") == "write"} == {"attest", "images", "publish"}
    assert {name for name, job in jobs.items() if job["permissions"].get("contents") == "write"} == {"announce"}
    assert (jobs["publish"]["needs"], jobs["announce"]["needs"], jobs["publish"]["environment"]) == (["attest", "images"], "publish", "pypi")
    assert {name for name, job in jobs.items() if "environment" in job} == {"images", "publish"}  # a tag alone pushes nothing
    assert jobs["images"]["environment"] == "pypi"
    assert "secrets." not in (GITHUB / "workflows" / "release.yml").read_text()
    attested = [step["with"] for step in jobs["attest"]["steps"] if "attest@" in step["uses"]]
    assert [each["subject-path"] for each in attested] == ["packages/*"] * 2
    assert attested[1]["sbom-path"] == f"papers/{BILL}"


def test_a_release_takes_up_what_make_release_writes():
    """Every file of it, none twice."""
    taken = [step["with"]["path"].split() for step in read_jobs("release")["build"]["steps"] if "upload-artifact" in step.get("uses", "")]
    names = [path.removeprefix("build/release/") for paths in taken for path in paths]
    assert sorted(names) == sorted(["*.whl", "*.tar.gz", NOTES, RECIPE, BILL])


def test_images_of_a_release_are_of_one_base():
    """The script finds it in the file of images by the name that the file's argument has by default."""
    (script,) = [step["run"] for step in read_jobs("release")["images"]["steps"] if step.get("id") == "push"]
    (expression,) = re.findall(r"sed -n '([^']+)' (?:infra/containers/Dockerfile)", script)
    text = (ROOT / "infra" / "containers" / "Dockerfile").read_text()
    pattern = re.fullmatch(r"s/(.*)/\\1/p", expression)[1].replace(r"\(", "(").replace(r"\)", ")")
    assert re.findall(pattern, text, re.MULTILINE)[0].startswith("docker.io/library/python:3.")
    assert re.findall(r"^ARG BASE=(.+)$", text, re.MULTILINE) == ["python"]
    assert re.findall(r"^FROM \$\{BASE\} AS (.+)$", text, re.MULTILINE) == ["source", "runtime"]
