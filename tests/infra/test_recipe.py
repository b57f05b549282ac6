"""Conda's recipe, read by the tool that builds with it."""

import pytest
from rattler_build import RattlerBuildError, Stage0Recipe

from tests.infra.files import INFRA

RECIPE = INFRA / "conda" / "recipe.yaml"


def test_the_recipe_is_one():
    """It is parsed, and rendered to one package for all systems."""
    (rendered,) = Stage0Recipe.from_file(RECIPE).render()
    found = rendered.recipe.to_dict()
    assert found["package"]["name"] == "leafledger"
    assert found["build"]["noarch"] == "python"
    assert found["source"][0]["url"].endswith(f"/leafledger-{found['package']['version']}.tar.gz")
    assert found["requirements"]["run"][0] == "python >=3.11"


@pytest.mark.parametrize(("right", "wrong"), [("noarch: python", "noarch: pythn"), ("Apache-2.0", "Apache-2"), ("entry_points", "entries")])
def test_a_wrong_recipe_is_refused(right, wrong):
    """So that the test above can fail."""
    with pytest.raises(RattlerBuildError):
        Stage0Recipe.from_yaml(RECIPE.read_text().replace(right, wrong))
