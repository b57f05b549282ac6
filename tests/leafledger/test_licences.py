"""What is installed by default, with all extras, is under licences that let others ship it; exceptions are named, and there."""

from importlib.metadata import distribution

import pytest

from infra import licences


@pytest.mark.slow
def test_nothing_is_installed_under_a_licence_that_is_refused():
    """Nor under one that nobody states; what is looked at are the core, every extra, and what those bring in turn."""
    found = licences.list_licences(frozenset(["all"]))
    assert {"numba", "numpy", "pyarrow", "xgboost", "lightgbm", "catboost", "prefect", "llvmlite", "botocore"} <= set(found)
    assert licences.refused(found) == {}
    assert {*licences.list_licences(frozenset())} < {*licences.list_licences(frozenset(["s3"]))} < set(found)


@pytest.mark.slow
def test_exceptions_are_needed():
    """One that nothing brings any more, or that states a licence by now, goes."""
    found = {name: said for name, said in licences.list_licences(frozenset(["all"])).items() if name in licences.EXCEPTIONS}
    assert set(found) == set(licences.EXCEPTIONS) - ({"nvidia-nccl-cu12"} - set(found))  # for Linux alone
    assert all(not said or licences.REFUSED.search(said) for said in found.values()), found
    assert "MIT License" in "".join(path.read_text() for path in distribution("skops").files or () if path.name == "LICENSE")


@pytest.mark.parametrize(
    "said",
    [
        *("", "GPL-3.0-or-later", "GNU General Public License v2 (GPLv2)", "AGPL-3.0-only", "GNU Affero General Public License v3", "Proprietary"),
        *("CC-BY-NC-4.0", "SSPL-1.0", "BUSL-1.1", "Elastic-2.0", "LicenseRef-NVIDIA-SOFTWARE-LICENSE", "Free for non-commercial use"),
    ],
)
def test_some_are_refused(said):
    assert licences.refused({"some": said}) == {"some": said}


@pytest.mark.parametrize(
    "said",
    [
        "MIT",
        "Apache-2.0 OR BSD-2-Clause",
        "LGPL-3.0-only",
        "GNU Lesser GPL",
        "GNU Lesser General Public License v3 (LGPLv3)",
        "Mozilla Public License 2.0 (MPL 2.0)",
    ],
)
def test_others_are_not(said):
    assert licences.refused({"some": said}) == {}
