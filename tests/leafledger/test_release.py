"""A release's packages have the same bytes whenever they are built, and hold what they should; its notes are the changelog's."""

import json
import re
import tarfile
import zipfile
from email import message_from_bytes

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
    assert {path.name for path in folder.iterdir()} == {wheel, source, release.NOTES}
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
    """And nothing is written then."""
    built = iter(({"a.whl": b"1"}, {"a.whl": b"2"}))
    monkeypatch.setattr(release, "_build", lambda folder, epoch: next(built))
    with pytest.raises(SystemExit, match="differ from one build to the next"):
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


def test_the_citation_is_of_this_version(tmp_path, monkeypatch):
    """Another one is refused."""
    for name in ("pyproject.toml", "CITATION.cff"):
        (tmp_path / name).write_text((release.ROOT / name).read_text().replace("\nversion: 0.", "\nversion: 9."))
    assert release.read_version()
    monkeypatch.setattr(release, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match=r"CITATION.cff is of version 9\.\S+, expected 0\."):
        release.read_version()


def test_pages_are_built_as_make_docs_builds_them():
    """Read the Docs has what `make docs` wrote."""
    found = yaml.safe_load((release.ROOT / ".readthedocs.yaml").read_text())
    assert found["build"]["commands"][0] == "make docs"
    assert "build/docs/html" in (release.ROOT / "Makefile").read_text()
    assert json.dumps(found["build"]["commands"]).count("build/docs/html/.") == 1
