"""Files of every version of each library are explained as the version that wrote them says, or refused with a line that says why."""

import json
import re

import pytest

from docs import generated
from leafledger.pipeline.models import list_loaders
from tests.more import more
from tests.versions.__main__ import judge
from tests.versions.environments import VERSIONS
from tests.versions.written import HERE, NAMES, archive_path, find_refusal, unpacked

MOST_BYTES = 2_000_000
GIVEN = "given"
PLAIN = {  # what every version's file of a case is refused for, by library and case, and which versions
    ("xgboost", "save_config"): (r"parameters of training alone, as save_config writes them", r".*"),
    ("xgboost", "save_model to .model"): (r"XGBoost's own binary format, which versions before 2\.1 write", r"1\..*|2\.0.*"),
    ("xgboost", "several targets, vector leaves"): (r"covers \(sum_hessian\), which XGBoost stores since 3\.2", r"2\..*|3\.[01]\..*"),
    ("xgboost", "Booster, stopped early"): (r"XGBoost 1\.[0-3] does not say how many trees an iteration has", r"1\.[0-3]\..*"),
    ("xgboost", "Booster, stopped early, 3 trees at a time"): (r"XGBoost 1\.[0-3] does not say how many trees", r"1\.[0-3]\..*"),
    ("lightgbm", "linear_tree"): (r"tree 0: has linear models in its leaves", r".*"),
    ("scikit-learn", "AdaBoostClassifier, SAMME.R"): (r"'SAMME\.R', the default until 1\.5", r".*"),
}


def often():
    """Of each library the first version, the last one, and every second between."""
    of_each = [[version for version in VERSIONS if version.library == library] for library in NAMES]
    return [version for some in of_each for version in dict.fromkeys((*some[::2], some[-1]))]


@pytest.mark.parametrize("version", [*often(), *more(*(version for version in VERSIONS if version not in often()))], ids=lambda version: version.name)
def test_files_are_explained_as_their_writer_says_or_refused(version):
    """Margins, contributions and probabilities, where the library has them; what is refused is what is listed, for the reason that is listed."""
    found = judge(version)
    assert sum(refusal is None for refusal in found.values()) >= 10
    for case, refusal in found.items():
        words, versions = PLAIN.get((version.library, case), ("", "-"))
        if re.fullmatch(versions, version.version):
            assert re.search(words, refusal or "explained"), case
            assert "\n" not in refusal
        else:
            assert refusal is None, case
    assert json.loads(generated.VERSIONS.read_text())[version.name] == found


def test_other_people_s_files_of_old_versions_are_explained_as_their_writers_say():
    """AdaBoost and histograms of scikit-learn 1.2.2, LightGBM 2.2.3, estimators of XGBoost 1.5.2 and 1.7.6; written by others than these programs."""
    with unpacked(GIVEN) as (folder, cases):
        assert len(cases) == 5
        for case in cases:
            assert find_refusal(f"{case['library']}-{GIVEN}", folder, case) is None, case["case"]


def test_the_archives_are_small_and_of_these_versions():
    """Of every library that models are read of, and all of them in the table."""
    assert {path.name for path in HERE.iterdir()} == {archive_path(name).name for name in (GIVEN, *(version.name for version in VERSIONS))}
    assert sum(path.stat().st_size for path in HERE.iterdir()) < MOST_BYTES
    assert {version.library for version in VERSIONS} == set(NAMES) == {loader.library for loader in list_loaders()} - {"neutral"}
    table = generated.versions()
    assert all(f"| {NAMES[version.library]} " in table for version in VERSIONS)
    assert all(version.version in table for version in (VERSIONS[0], VERSIONS[-1]))
