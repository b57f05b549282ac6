"""A release's packages have the same bytes whenever they are built, and hold what they should; its notes are the changelog's."""

import json
import re
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from hashlib import sha256

import pytest
import yaml

from infra import release


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """What a rehearsal writes, and the digests it says."""
    folder = tmp_path_factory.mktemp("release")
    return folder, release.release(folder, "1700000000")


@pytest.mark.slow
def test_packages_hold_the_package_and_nothing_else(released):
    """By name, in both; no test, no page, nothing compiled; dates are those of the commit alone, and the version is one."""
    folder, digests = released
    version = release.read_version()
    wheel, source = f"leafledger-{version}-py3-none-any.whl", f"leafledger-{version}.tar.gz"
    assert set(digests) == {wheel, source}
    assert {path.name for path in folder.iterdir()} == {wheel, source, release.NOTES, release.RECIPE}
    with zipfile.ZipFile(folder / wheel) as archive:
        names = archive.namelist()
        assert {name.split("/")[0] for name in names} == {"leafledger", f"leafledger-{version}.dist-info"}
        metadata = message_from_bytes(archive.read(f"leafledger-{version}.dist-info/METADATA"))
        assert {entry.date_time[:3] for entry in archive.infolist()} == {(2023, 11, 14)}
    assert (metadata["Name"], metadata["Version"], metadata["License-Expression"]) == ("leafledger", version, "Apache-2.0")
    assert [name for name in names if name.endswith((".pyc", ".nbi", ".nbc"))] == []
    with tarfile.open(folder / source) as archive:
        inside = {name.partition("/")[2].partition("/")[0] for name in archive.getnames()}
    assert inside == {"leafledger", "CHANGELOG.md", "CITATION.cff", "LICENSE", "README.md", "PKG-INFO", "pyproject.toml", ".gitignore"}


@pytest.mark.slow
def test_builds_that_differ_are_refused(monkeypatch, tmp_path):
    """And nothing is written then: here the checkout's packages are of one date, and the source package's of another."""
    build, dates = release._build, iter(("1700000000", "1600000000"))
    monkeypatch.setattr(release, "_build", lambda sources, folder, epoch: build(sources, folder, next(dates)))
    with pytest.raises(SystemExit, match="built of the source package differ from those of the checkout"):
        release.release(tmp_path / "out", "0")
    assert not (tmp_path / "out").exists()


def test_notes_are_one_version_s(tmp_path):
    """Of its section alone; a version that the changelog does not name, or says nothing of, is refused."""
    changes = "# Changes\n\n## 0.3.0 (not released)\n\n* New.\n\n### Fixed\n\n* Old.\n\n## 0.2.0\n\n* Older.\n\n## 0.1.0\n\n"
    assert release.cut_notes(changes, "0.3.0") == "* New.\n\n### Fixed\n\n* Old.\n"
    assert release.cut_notes(changes, "0.2.0") == "* Older.\n"
    for version in ("0.1.0", "0.3", "1.0.0"):
        with pytest.raises(SystemExit, match=rf"says nothing of {re.escape(version)}"):
            release.cut_notes(changes, version)


@pytest.mark.parametrize("name", release.VERSIONED)
def test_files_are_of_this_version(tmp_path, monkeypatch, name):
    """The citation, conda's recipe, tags of images; another one, or none, is refused."""
    for each in ("pyproject.toml", *release.VERSIONED):
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).write_text((release.ROOT / each).read_text())
    monkeypatch.setattr(release, "ROOT", tmp_path)
    version = release.read_version()
    (tmp_path / name).write_text((tmp_path / name).read_text().replace(version, "9.9"))
    with pytest.raises(SystemExit, match=rf"^{re.escape(name)} is of version 9\.9, expected {re.escape(version)}, as pyproject.toml has it$"):
        release.read_version()
    (tmp_path / name).write_text("")
    with pytest.raises(SystemExit, match=r"is of version none"):
        release.read_version()


CONDA = {"dask": "dask-core"}  # names of conda-forge, where they are others: its dask brings distributed, pandas and plots


def test_the_recipe_is_in_step_with_the_project():
    """Name, Python, what it needs and the command, as pyproject.toml has them."""
    project = tomllib.loads((release.ROOT / "pyproject.toml").read_text())["project"]
    recipe = yaml.safe_load((release.ROOT / "infra" / "conda" / release.RECIPE).read_text())
    assert recipe["package"]["name"] == project["name"]
    assert f">={recipe['context']['python_min']}" == project["requires-python"]
    needed = dict(re.fullmatch(r"([a-z0-9-]+)(.*)", line).groups() for line in project["dependencies"])
    assert recipe["requirements"]["run"] == ["python >=${{ python_min }}", *(f"{CONDA.get(name, name)} {bound}" for name, bound in needed.items())]
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {target}" for name, target in project["scripts"].items()]
    assert (recipe["about"]["summary"], recipe["about"]["license"]) == (project["description"], project["license"])
    built = tomllib.loads((release.ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert recipe["requirements"]["host"] == ["python ${{ python_min }}.*", "pip", *built]


@pytest.mark.slow
def test_the_recipe_of_a_release_is_of_its_source_package(released):
    """By the digest of what was built; a recipe without a place for it is refused."""
    folder, digests = released
    recipe = yaml.safe_load((folder / release.RECIPE).read_text())
    (source,) = folder.glob("*.tar.gz")
    assert recipe["source"]["sha256"] == sha256(source.read_bytes()).hexdigest() == digests[source.name]
    assert recipe["source"]["url"].replace("${{ version }}", recipe["context"]["version"]).endswith(f"/{source.name}")
    with pytest.raises(SystemExit, match=r"has 0 digests of zeros, expected one"):
        release.fill_recipe((folder / release.RECIPE).read_text(), "1" * 64)


def test_pages_are_built_as_make_docs_builds_them():
    """Read the Docs has what `make docs` wrote."""
    found = yaml.safe_load((release.ROOT / ".readthedocs.yaml").read_text())
    assert found["build"]["commands"][0] == "make docs"
    assert "build/docs/html" in (release.ROOT / "Makefile").read_text()
    assert json.dumps(found["build"]["commands"]).count("build/docs/html/.") == 1
