"""``python -m infra.release FOLDER``: the packages of a release, built twice to the same bytes, with their notes; nothing is uploaded."""

import argparse
import os
import re
import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
NOTES = "NOTES.md"


def read_version() -> str:
    """Read the version, of which pyproject.toml is the one place, and refuse a citation of another."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    if cited is None or cited[1] != version:
        raise SystemExit(f"CITATION.cff is of version {cited and cited[1]}, expected {version}, as pyproject.toml has it")
    return str(version)


def cut_notes(changes: str, version: str) -> str:
    """Cut what the changelog says of a version."""
    found = re.search(rf"^## {re.escape(version)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)", changes, re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        raise SystemExit(f"CHANGELOG.md says nothing of {version}, expected a section '## {version}'")
    return found[1].strip() + "\n"


def _build(folder: Path, epoch: str) -> dict[str, bytes]:
    """Build both packages, every date in them that of the commit."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, env=os.environ | {"SOURCE_DATE_EPOCH": epoch}, stdout=subprocess.DEVNULL, check=True)  # noqa: S603 - this interpreter
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def release(folder: Path, epoch: str) -> dict[str, str]:
    """Write packages and notes into a folder, and return the packages' SHA-256; what is built twice with different bytes is refused."""
    notes = cut_notes((ROOT / "CHANGELOG.md").read_text("utf-8"), read_version())
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        built = _build(Path(first), epoch)
        if built != _build(Path(second), epoch):
            raise SystemExit("packages of the same sources differ from one build to the next")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NOTES).write_bytes(notes.encode())
    for name, content in built.items():
        (folder / name).write_bytes(content)
    return {name: sha256(content).hexdigest() for name, content in built.items()}


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
