"""``python -m infra.release FOLDER``: a release's packages, built twice to the same bytes, its notes and its recipe; nothing is uploaded."""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
NOTES, RECIPE = "NOTES.md", "recipe.yaml"
BILL = "sbom.cdx.json"  # what is installed with the packages, listed where they were
VERSIONED = {  # files that say a version, and where
    "CITATION.cff": r"^version: (.+)$",
    f"infra/conda/{RECIPE}": r'^  version: "(.+)"$',
    **dict.fromkeys(
        ("infra/compose.yaml", "infra/kubernetes/base/dask.yaml", "infra/kubernetes/base/prefect-worker.yaml"), r"^ +image: leafledger[a-z-]*:(.+)$"
    ),
}
UNKNOWN = "0" * 64  # digest in the recipe, of a package that is not built yet


def read_version() -> str:
    """Read the version, of which pyproject.toml is the one place, and refuse files that say another."""
    version = str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"])
    for name, pattern in VERSIONED.items():
        said = {*re.findall(pattern, (ROOT / name).read_text("utf-8"), re.MULTILINE)}
        if said != {version}:
            raise SystemExit(f"{name} is of version {', '.join(sorted(said)) or 'none'}, expected {version}, as pyproject.toml has it")
    return version


def cut_notes(changes: str, version: str) -> str:
    """Cut what the changelog says of a version."""
    found = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise SystemExit(f"CHANGELOG.md says nothing of {version}, expected a section '## {version}'")
    return found[1].strip() + "\n"


def fill_recipe(recipe: str, digest: str) -> str:
    """Write the source package's SHA-256 into conda's recipe."""
    if recipe.count(UNKNOWN) != 1:
        raise SystemExit(f"{RECIPE} has {recipe.count(UNKNOWN)} digests of zeros, expected one, for the source package")
    return recipe.replace(UNKNOWN, digest)


def _build(sources: Path, folder: Path, epoch: str) -> dict[str, bytes]:
    """Build both packages, every date in them that of the commit."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=sources, env=os.environ | {"SOURCE_DATE_EPOCH": epoch}, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - this interpreter
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def release(folder: Path, epoch: str) -> dict[str, str]:
    """Write packages, notes and recipe into a folder, and return the packages' SHA-256.

    They are built of the checkout, and again of the source package; where that gives other bytes, nothing is written.
    """
    version = read_version()
    notes, source = cut_notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version), f"leafledger-{version}"
    with TemporaryDirectory() as first, TemporaryDirectory() as second, TemporaryDirectory() as unpacked:
        built = _build(ROOT, Path(first), epoch)
        with tarfile.open(Path(first) / f"{source}.tar.gz") as archive:
            archive.extractall(unpacked, filter="data")
        if built != _build(Path(unpacked) / source, Path(second), epoch):
            raise SystemExit("packages that are built of the source package differ from those of the checkout")
    digests = {name: sha256(content).hexdigest() for name, content in built.items()}
    recipe = fill_recipe((ROOT / "infra" / "conda" / RECIPE).read_text("utf-8"), digests[f"{source}.tar.gz"])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (built | {NOTES: notes.encode(), RECIPE: recipe.encode()}).items():
        (folder / name).write_bytes(content)
    return digests


def main() -> None:
    """Print the packages' digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    dated = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S607 - the developer's
    for name, digest in release(folder, dated.stdout.strip()).items():
        print(f"{digest}  {name}")


if __name__ == "__main__":
    main()
