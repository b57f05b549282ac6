"""``python -m tests.rehearsal RELEASE VENV``: a release is installed from an index of its own, and README's commands are typed there.

The index is a folder of the release's packages behind a web server. A bill of materials of what was installed is put beside the packages.
"""

import functools
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.release import BILL, ROOT, read_version
from tests.docs.blocks import COMMANDS, OUTPUT, PYTHON, agrees, read_blocks, read_commands
from tests.docs.places import make_folder

OURS = "leafledger "
INSIDE = "import importlib.metadata; print(importlib.metadata.distribution('leafledger').locate_file(''))"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and logs nothing."""

    def log_message(self, *said: object) -> None:
        """Say nothing."""


@contextmanager
def serve_index(release: Path) -> Iterator[str]:
    """The release's packages as an index by PEP 503: a folder a project, listed by the server; its address."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "leafledger").mkdir()
        for package in (*release.glob("*.whl"), *release.glob("*.tar.gz")):
            shutil.copy(package, Path(folder) / "leafledger")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            server.server_close()


def install(python: Path, *arguments: str) -> None:
    """Packages into an environment, by uv, or by pip where uv finds no packages."""
    tools = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--python", str(python)], [str(python), "-m", "pip", "install"]
    if all(subprocess.run([*tool, *arguments], check=False).returncode for tool in tools):
        raise SystemExit(f"cannot install {' '.join(arguments)}")


def check_installed(python: Path, wheel: Path) -> None:
    """Every file of the wheel lies in the environment, byte for byte: what was installed is this release."""
    told = subprocess.run([python, "-I", "-c", INSIDE], capture_output=True, text=True, check=True)
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("RECORD")]
        other = [name for name in names if (Path(told.stdout.strip()) / name).read_bytes() != archive.read(name)]
    assert not other, f"{other[:3]} are others than in {wheel.name}"
    print(f"{len(names)} files of {wheel.name} are there")


def type_page(page: Path, python: Path, folder: Path) -> int:
    """Type what a page says of the package itself; how many blocks and commands there were, each of which printed what the page says."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "DO_NOT_TRACK": "1"}
    typed, blocks = [], list(read_blocks(page))
    for block, following in zip(blocks, [*blocks[1:], None], strict=False):
        if block.language == COMMANDS:
            typed += [(["bash", "-c", each.typed], each.expected) for each in read_commands(block) if each.typed.startswith(OURS)]
        elif block.language == PYTHON:
            typed.append(([str(python), "-c", block.text], following.text if following and following.language == OUTPUT else ""))
    for command, expected in typed:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command[-1]}: exit code {done.returncode}, {done.stderr}"
        assert agrees(expected, done.stdout), f"{command[-1]}: printed\n{done.stdout}\nexpected\n{expected}"
        print(f"as {page.name} says: {command[-1].splitlines()[0]}")
    return len(typed)


def main() -> None:
    """Install, compare, type, and list what was installed."""
    release, python = Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute() / "bin" / "python"
    version = read_version()
    (wheel,) = release.glob("*.whl")
    with serve_index(release) as index:
        install(python, "--extra-index-url", index, "--constraint", str(ROOT / "infra" / "constraints.txt"), f"leafledger[all]=={version}")
        check_installed(python, wheel)
        install(python, "--extra-index-url", index, "--no-deps", "--force-reinstall", "--no-binary", "leafledger", f"leafledger=={version}")
        check_installed(python, wheel)
    with tempfile.TemporaryDirectory() as folder:
        n_typed = type_page(ROOT / "README.md", python, make_folder(Path(folder)))
        assert n_typed >= 2, f"README has {n_typed} commands of leafledger"
    listing = [
        str(Path(sys.executable).with_name("cyclonedx-py")),
        "environment",
        "--output-reproducible",
        "--output-file",
        str(release / BILL),
        str(python),
    ]
    subprocess.run(listing, check=True)


if __name__ == "__main__":
    main()
