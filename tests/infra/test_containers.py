"""Images: their file by its linter, and what their entry point chooses."""

import hashlib
import json
import os
import re
import subprocess
import zipfile
from itertools import chain
from pathlib import Path

import pytest

from infra.licences import list_licences
from tests.infra.files import INFRA, call

CONTAINERS = INFRA / "containers"
V3 = "fpu avx2 bmi1 bmi2 f16c fma abm movbe"
V4 = f"{V3} avx512f avx512bw avx512cd avx512dq avx512vl"


def test_the_file_of_images_passes_its_linter():
    assert call("hadolint", CONTAINERS / "Dockerfile") == (0, "")


def test_scripts_of_images_pass_their_linter():
    assert call("shellcheck", *CONTAINERS.glob("*.sh")) == (0, "")


def enter(tmp_path, flags, levels=("x86-64-v3", "x86-64-v4"), **environment):
    """What a command finds in its environment after the entry point, and where kernels are."""
    for level in levels:
        (tmp_path / "kernels" / level / "trees_1").mkdir(parents=True, exist_ok=True)
        (tmp_path / "kernels" / level / "trees_1" / "kernel.nbi").write_text(level)
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t:\n" * 2)
    given = {"PATH": os.environ["PATH"], "KERNELS": str(tmp_path / "kernels"), "CPUINFO": str(tmp_path / "cpuinfo")} | environment
    done = subprocess.run([str(CONTAINERS / "entrypoint.sh"), "env"], env=given, capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in done.stdout.splitlines()), done.stderr


@pytest.mark.parametrize(
    ("flags", "levels", "chosen"),
    [
        (V4, ("x86-64-v3", "x86-64-v4"), "x86-64-v4"),
        (V3, ("x86-64-v3", "x86-64-v4"), "x86-64-v3"),
        (V4, ("x86-64-v3",), "x86-64-v3"),
        (V3, ("x86-64-v4",), None),
        (V4.replace("fma", "fma4"), ("x86-64-v3", "x86-64-v4"), None),
    ],
)
def test_the_entry_point_chooses_the_highest_level(tmp_path, flags, levels, chosen):
    """That the image has and the processor knows; where there is none, nothing is said to Numba."""
    found, said = enter(tmp_path, flags, levels, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert (found.get("NUMBA_CPU_NAME"), found.get("NUMBA_CPU_FEATURES"), said) == (chosen, None if chosen is None else "", "")
    assert (tmp_path / "cache").exists() == (chosen is not None)
    if chosen:
        kernel = tmp_path / "cache/trees_1/kernel.nbi"
        assert kernel.read_text() == chosen
        kernel.with_name("another.nbi").touch()  # what the image lacks can be kept


def test_a_level_can_be_said(tmp_path):
    """And a second start on the same folder changes nothing."""
    for _ in range(2):
        found, said = enter(tmp_path, V4, NUMBA_CPU_NAME="x86-64-v3", NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        assert (found["NUMBA_CPU_NAME"], said) == ("x86-64-v3", "")
        assert (tmp_path / "cache/trees_1/kernel.nbi").read_text() == "x86-64-v3"


def test_a_cache_that_cannot_be_written_costs_time_alone(tmp_path):
    (tmp_path / "file").touch()
    _, said = enter(tmp_path, V4, NUMBA_CACHE_DIR=str(tmp_path / "file/cache"))
    assert "every process compiles kernels anew" in said


def test_what_is_copied_into_images_is_there():
    """And the context leaves out all else."""
    text = (CONTAINERS / "Dockerfile").read_text()
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY") and "--from" not in line]
    for name in chain.from_iterable(copied):
        assert (INFRA.parent / name).exists(), name
    assert (CONTAINERS / "Dockerfile.dockerignore").read_text().startswith("*\n")


def test_the_bill_of_materials_is_one(tmp_path):
    """Made of this environment, as images make it of theirs: every package with its version, in CycloneDX's own schema."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    file = tmp_path / "sbom.cdx.json"
    code, said = call("cyclonedx-py", "environment", "--output-reproducible", "--no-validate", "--output-file", file)  # which is done here
    assert code == 0, said
    found = json.loads(file.read_text())
    version = SchemaVersion.from_version(found["specVersion"])
    assert JsonStrictValidator(version).validate_str(file.read_text()) is None
    pinned = dict(line.split(" ;")[0].split("==") for line in (INFRA / "constraints.txt").read_text().splitlines() if " ;" not in line)
    listed = {each["name"].lower().replace("_", "-"): each.get("version") for each in found["components"]}
    assert listed["numba"] == pinned["numba"]
    assert {"dask", "prefect", "numpy"} <= set(listed)
    assert Path(file).stat().st_size > 10_000


def pins(name):
    """Packages and versions, as a file of infra pins them; of some there are several, for different Pythons."""
    return set(re.findall(r"^([\w.-]+)==([^ ;\\\n]+)", (INFRA / name).read_text(), re.MULTILINE))


def test_images_have_hashes_of_all_that_they_install():
    """Of the pinned versions, and of every package that this environment has of this one with all its extras, and of what makes images."""
    hashed, pinned = pins("hashes.txt"), pins("constraints.txt")
    assert {*list_licences(frozenset(["all"])), "hatchling", "cyclonedx-bom", "prefect-kubernetes", "uv"} - {"leafledger"} <= {
        name for name, _ in hashed
    }
    assert hashed <= pinned
    requirements = re.split(r"\n(?=\w)", (INFRA / "hashes.txt").read_text())
    assert [text.partition("\n")[0] for text in requirements if "--hash=sha256:" not in text] == []
    installed = [line for line in (CONTAINERS / "Dockerfile").read_text().splitlines() if "pip install" in line]
    assert installed
    assert all("infra/hashes.txt" in line or "--require-hashes" in line for line in installed)


def test_a_file_of_another_hash_is_not_installed(tmp_path):
    """As images install: uv takes a constraint's hash for what must be."""
    wheel = tmp_path / "toy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as written:
        written.writestr("toy.py", "")
        written.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        written.writestr("toy-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        written.writestr("toy-1.0.dist-info/RECORD", "")
    for digest, expected in ((hashlib.sha256(wheel.read_bytes()).hexdigest(), 0), ("0" * 64, 1)):
        (tmp_path / "hashes.txt").write_text(f"toy==1.0 --hash=sha256:{digest}\n")
        where = ("--no-index", "--find-links", tmp_path, "--target", tmp_path / digest, "--no-cache")
        code, said = call("uv", "pip", "install", *where, "--constraint", tmp_path / "hashes.txt", "toy")
        assert code == expected, said
        assert expected == 0 or "Hash mismatch" in said, said
