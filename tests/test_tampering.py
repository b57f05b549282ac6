"""Whatever is changed in a manifest, a plan or a footer is refused in one line; ``make fuzz`` tries every change."""

import pytest

from tests import tampering

CHANGES = 25  # of each file of each run


@pytest.mark.parametrize("kind", tampering.KINDS)
def test_changed_manifests_and_plans_are_refused(kind):
    """Seeded; also where the plan's digest is made again, and where parts are."""
    assert tampering.try_changes(kind, CHANGES) == []


def test_an_unchanged_run_is_sound(tmp_path):
    """As it is, and written anew by who changes it: what is refused is refused for its change."""
    run = tampering.make_run(tmp_path, "interactions")
    for name, seal in tampering.TRIED:
        held = tampering.Change("nothing", "", tampering._read(run / name))
        assert tampering.try_change(run, name, held, seal, deep=True) == "nothing: sound"


def test_every_kind_of_change_is_made():
    """Values of all types, more, less, and others of the same type, at every depth."""
    found = [change.where for change in tampering.list_changes({"a": [1, {"b": "xy"}]})]
    for expected in ("['a'] = null", "['a'][0] = 2", "['a'][0] = [1]", "['a'][1]['b'] = \"yx\"", "del ['a'][1]['b']", "del ['a']", "one more"):
        assert expected in found
