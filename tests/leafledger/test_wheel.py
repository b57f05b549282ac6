"""What is built and installed: one name, and beside it whatever else is called kernels, pipeline or flows goes on as if it were not there."""

import json
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from tests.more import more

ROOT = Path(__file__).parents[2]
FOLDERS = ("kernels", "pipeline", "flows")
WAYS = ("wheel", "editable")
# What a script of hers says: which files its own names are, whether anything of ours was imported from elsewhere than ours, and what flow there is.
SCRIPT = """
import json, sys
{imports}
from prefect.flows import load_flow_from_entrypoint
flow = load_flow_from_entrypoint("leafledger.flows.explain.explain")
from leafledger.pipeline.command.cli import app
from leafledger.pipeline.models import load_ensemble
ours = sorted({{str(sys.modules[name].__file__) for name in sys.modules if name.split(".")[0] == "leafledger"}})
theirs = [module.__file__ for module in (kernels, pipeline, flows)]
print(json.dumps({{"theirs": theirs, "ours": ours, "flow": [flow.name, flow.fn.__module__, flows.THEIRS]}}))
"""


def build(target, source, folder):
    """What hatchling, with which pip builds too, makes of a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheel, and the one by which pip installs a checkout in place."""
    return {
        "wheel": build("wheel", ROOT, tmp_path_factory.mktemp("wheel")),
        "editable": build("wheel:editable", ROOT, tmp_path_factory.mktemp("editable")),
    }


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """The wheel of another distribution, which is called ``kernels`` like the one of Hugging Face."""
    path = tmp_path_factory.mktemp("theirs") / "kernels-1.0-py3-none-any.whl"
    files = {
        "kernels/__init__.py": "THEIRS = True",
        "kernels/methods.py": "THEIRS = True",
        "kernels-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: kernels\nVersion: 1.0\n",
        "kernels-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files["kernels-1.0.dist-info/RECORD"] = "".join(f"{name},,\n" for name in [*files, "kernels-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


class Environment:
    """An environment that finds all packages of this one, but Leafledger where it is installed itself alone."""

    def __init__(self, folder):
        venv.create(folder, symlinks=True)
        self.python = folder / "bin" / "python"
        (self.site,) = folder.glob("lib/python*/site-packages")
        (self.site / "others.pth").write_text(sysconfig.get_path("purelib"))  # whose own files .pth are not read, so not this checkout's

    def pip(self, *arguments):
        """Install or uninstall, without an index."""
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "--disable-pip-version-check", *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True)

    def install(self, wheel):
        """Install a wheel, and nothing that it needs."""
        self.pip("install", "--no-deps", "--no-index", "--no-compile", wheel)

    def run(self, folder, *arguments):
        """What a new Python prints, started in a folder of hers."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "DO_NOT_TRACK": "1"}
        done = subprocess.run([self.python, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def files(self):
        """What is installed, but what was compiled meanwhile."""
        return {path.relative_to(self.site).as_posix() for path in self.site.rglob("*") if path.is_file() and path.suffix != ".pyc"}


@pytest.fixture(scope="module", params=[WAYS[0], *more(*WAYS[1:])])
def installed(request, tmp_path_factory, wheels):
    """An environment with ours, in both ways."""
    environment = Environment(tmp_path_factory.mktemp(request.param) / "venv")
    environment.install(wheels[request.param])
    return environment


def names(wheel):
    """The files of a wheel with their checksums."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


@pytest.mark.slow
def test_a_wheel_has_one_name_and_every_file(wheels):
    """Whatever stands in the folders of the checkout, modules, templates, styles and the mark of types, and nothing beside ``leafledger``."""
    inside = {name for name in names(wheels["wheel"]) if ".dist-info/" not in name}
    folders = {"leafledger": ROOT / "leafledger"} | {f"leafledger/{name}": ROOT / name for name in FOLDERS}
    expected = {
        f"{inner}/{path.relative_to(folder).as_posix()}"
        for inner, folder in folders.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert inside == expected
    assert {"leafledger/py.typed", "leafledger/kernels/methods.py", "leafledger/flows/explain.py"} <= inside
    assert any(name.endswith(".html.jinja") for name in inside)


@pytest.mark.slow
def test_a_source_distribution_builds_the_same_wheel(tmp_path, wheels):
    """Byte by byte, though nothing in it is a link."""
    with tarfile.open(build("sdist", ROOT, tmp_path / "sdist")) as archive:
        assert all(member.isreg() for member in archive)
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.glob("leafledger-*")
    assert names(build("wheel", source, tmp_path / "wheel")) == names(wheels["wheel"])


@pytest.mark.slow
def test_nothing_else_is_found_by_name(tmp_path, installed):
    """Neither what stands in ``leafledger`` nor what stands beside it in a checkout."""
    asked = [*FOLDERS, "tests", "docs", "infra", "leafledger"]
    program = f"import importlib.util, json; print(json.dumps([name for name in {asked} if importlib.util.find_spec(name)]))"
    assert json.loads(installed.run(tmp_path, "-c", program)) == ["leafledger"]


@pytest.fixture
def hers(tmp_path):
    """A folder of hers: a module ``pipeline``, a module ``flows``, a package ``kernels``, with names of ours in it."""
    (tmp_path / "kernels").mkdir()
    for name in ("pipeline.py", "flows.py", "kernels/__init__.py", "kernels/methods.py"):
        (tmp_path / name).write_text("THEIRS = True")
    return tmp_path


@pytest.mark.parametrize("order", ["theirs first", *more("ours first")])
@pytest.mark.slow
def test_files_beside_a_script_change_nothing(hers, installed, order):
    """Hers are what she imports, before and after ours, and ours are ours; a deployment that stands on a server goes on, whose entrypoint is what
    `leafledger deploy` has written all along: Prefect finds the flow beside her ``flows``."""
    imports = ["import kernels, kernels.methods, pipeline, flows", "import leafledger.kernels, leafledger.pipeline, leafledger.flows"]
    (hers / "script.py").write_text(SCRIPT.format(imports="\n".join(imports if order == "theirs first" else imports[::-1])))
    said = json.loads(installed.run(hers, "script.py"))
    assert said["theirs"] == [str(hers / name) for name in ("kernels/__init__.py", "pipeline.py", "flows.py")]
    assert said["flow"] == ["explain", "leafledger.flows.explain", True]
    assert len(said["ours"]) > 100
    (home,) = {Path(path).parent for path in said["ours"] if path.endswith("leafledger/__init__.py")}
    assert all(Path(path).is_relative_to(home) for path in said["ours"])
    assert not home.is_relative_to(hers)


@pytest.mark.parametrize("way", [WAYS[0], *more(*WAYS[1:])])
@pytest.mark.parametrize("order", [("kernels", "leafledger"), *more(("leafledger", "kernels"))], ids="-then-".join)
@pytest.mark.slow
def test_another_distribution_called_kernels_stays_whole(tmp_path, wheels, theirs, way, order):
    """Installed before ours or after it, it is what ``kernels`` means; whichever is uninstalled takes its own files alone."""
    environment, given = Environment(tmp_path / "venv"), {"kernels": theirs, "leafledger": wheels[way]}
    seen = [environment.files()]
    for name in order:
        environment.install(given[name])
        seen.append(environment.files())
    empty, first, both = seen
    assert set(names(theirs)) <= both - empty
    program = "import kernels.methods, leafledger.kernels.methods as ours; print(kernels.methods.THEIRS, 'shapley' in ours.METHODS)"
    assert environment.run(tmp_path, "-c", program).split() == ["True", "True"]
    environment.pip("uninstall", "--yes", order[0])
    assert environment.files() == empty | (both - first)
