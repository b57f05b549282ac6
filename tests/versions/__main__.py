"""``python -m tests.versions ENVIRONMENTS [NAME ...]``: write models anew by every version of each library, or by those named, as xgboost-1.7.6.

Environments are made in the folder ENVIRONMENTS where they are not there yet; they take 15 GB, and all takes minutes. ``docs/versions.json`` says of
every file whether it is explained as its version says, or why it is refused.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.generated import VERSIONS as FILE
from tests.versions.environments import VERSIONS, Version, make_environment
from tests.versions.written import archive_path, find_refusal, pack, unpacked

WRITING = Path(__file__).parent / "writing"
UV = str(Path(sys.executable).with_name("uv"))


def write(version: Version, environments: Path) -> None:
    """Let a version write its models, and pack them."""
    python = make_environment(version, environments, UV)
    program = WRITING / f"of_{version.library.replace('scikit-learn', 'sklearn')}.py"
    with TemporaryDirectory() as folder:
        subprocess.run([python, program, folder], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        pack(Path(folder), archive_path(version.name))


def judge(version: Version) -> dict[str, str | None]:
    """Say of each of a version's cases why it is refused, or null."""
    with unpacked(version.name) as (folder, cases):
        return {case["case"]: find_refusal(version.name, folder, case) for case in cases}


def main(environments: Path, names: list[str]) -> None:
    """Write, and keep what came out of all."""
    chosen = [version for version in VERSIONS if not names or version.name in names]
    for version in chosen:
        write(version, environments)
        print(f"{version.name}: {archive_path(version.name).stat().st_size:,} bytes", flush=True)
    found = {version.name: judge(version) for version in VERSIONS}
    FILE.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{FILE} written, of {len(found)} versions")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), sys.argv[2:])
