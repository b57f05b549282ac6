"""Damaged and forged LightGBM models: each is refused in one line, none ends in another exception or a smaller model."""

import functools
import re

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

from leafledger.pipeline.errors import InvalidModel, UnsupportedModel
from leafledger.pipeline.models.lightgbm.loader import LOADER
from tests import naive


@functools.cache
def text(categories=False):
    """A small model, with three numeric columns or with one of them a pandas category."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame(rng.normal(size=(200, 3)), columns=["Column_0", "Column_1", "Column_2"])
    target = data.Column_0 + data.Column_1**2 - data.Column_2
    if categories:
        data["Column_1"] = pd.Categorical(np.where(data.Column_1 > 0, "up", np.where(data.Column_1 < -1, "down", "level")))
    parameters = {"objective": "regression", "num_threads": 1, "verbosity": -1, "num_leaves": 6, "min_data_in_leaf": 3}
    rows = data if categories else data.to_numpy()
    return lgb.train(parameters | {"min_data_per_group": 3}, lgb.Dataset(rows, target), 6).model_to_string()


def parse(model):
    return LOADER.parse(model.encode(), "model.txt")[:3]


def resized(model):
    """The model with ``tree_sizes`` made to fit its trees again after an edit."""
    head, trees = model.split("\n\n", 1)
    blocks = re.findall(r"Tree=.*?\n\n\n", trees.partition("end of trees")[0], re.S)
    sizes = " ".join(str(len(block.encode())) for block in blocks)
    return re.sub(r"tree_sizes=.*", f"tree_sizes={sizes}", head) + "\n\n" + trees


def edited(pattern, replacement, model=None):
    changed, n_changes = re.subn(pattern, replacement, text() if model is None else model, count=1, flags=re.M)
    assert n_changes == 1
    return resized(changed)


def test_zero_counts_are_kept():
    """Where a file counts no rows, covers are zero and children share equally."""
    model = re.sub(r"^(leaf|internal)_count=.*", lambda m: re.sub(r"\d+", "0", m[0]), text(), flags=re.M)
    ensemble, _, _ = parse(resized(model))
    assert (ensemble.cover == 0).all()
    value = naive.coalition_value(ensemble, np.zeros(3), (), 0)
    assert np.isfinite(float(value))


@pytest.mark.slow
def test_unknown_versions_and_giant_category_codes_are_refused():
    """Versions other than 3 and 4, and sets that would fill memory, are refused before anything is allocated."""
    with pytest.raises(UnsupportedModel, match="version is 'v9'"):
        parse(edited("^version=v4", "version=v9"))
    words = " ".join(["0"] * 1_000_000 + ["1"])
    tree = f"num_leaves=81\nnum_cat=1\ncat_boundaries=0 1000001\ncat_threshold={words}\nleaf_value={'0 ' * 81}\n"
    tree += f"split_feature={'0 ' * 80}\nthreshold={'0 ' * 80}\ndecision_type={'1 ' * 80}\nleaf_count={'0 ' * 81}\n"
    tree += f"internal_count={'0 ' * 80}\nleft_child={' '.join(map(str, range(-1, -81, -1)))}\n"
    tree += f"right_child={' '.join(map(str, range(1, 80)))} -81"
    with pytest.raises(UnsupportedModel, match="feature 'Column_0' has category codes up to 32000000: 80000080 words"):
        parse(resized(re.sub(r"^Tree=0.*(?=\n\n\nend of trees)", f"Tree=0\n{tree}", text(), flags=re.S | re.M)))


TRUNCATED = "cut off|expected a whole tree|trees of|starts with|expected 'pandas_categorical:'|is missing"


def test_every_truncation_is_refused():
    """A file cut anywhere before the end of its parameters is refused: inside a tree, at a tree's end, and after the last tree."""
    model = text(categories=True)
    boundaries = [match.start() for match in re.finditer(r"Tree=|end of trees|feature_importances|parameters:", model)]
    complete = model.index("end of parameters\n") + len("end of parameters\n")
    listed = model.index("\npandas_categorical:") + len("\npandas_categorical:")
    for cut in {*range(0, complete, 37), *boundaries, complete - 1, *range(complete + 2, model.rindex("]") + 1)}:
        with pytest.raises(InvalidModel, match=TRUNCATED):
            parse(model[:cut])
    assert listed > complete


def test_dropped_trees_are_refused():
    """LightGBM loads a file whose tree list was shortened as a smaller model; here sizes and trees must agree."""
    model = text()
    for shortened in (
        re.sub(r"Tree=5.*?end of trees", "end of trees", model, flags=re.S),
        re.sub(r"^tree_sizes=(\d+) .*", r"tree_sizes=\1", model, flags=re.M),
    ):
        with pytest.raises(InvalidModel):
            parse(shortened)
    with pytest.raises(InvalidModel, match=r"6 trees of .* expected a multiple of 4"):
        parse(edited("^num_tree_per_iteration=1", "num_tree_per_iteration=4"))


DAMAGE = [
    (r"^tree$", "tre3", "expected a LightGBM text model"),
    (r"^num_leaves=6", "num_leaves=7", r"tree 0: 'leaf_value' has 6 numbers, expected 7"),
    (r"^num_leaves=6", "num_leaves=99999999999999999999", "tree 0: 'num_leaves' is .*, expected numbers"),
    (r"^num_leaves=6", "num_leaves=-1", "tree 0: 'num_leaves' is -1, expected 1"),
    (r"^leaf_value=\S+", "leaf_value=nan", "leaf value is"),
    (r"^leaf_value=\S+", "leaf_value=1_0", "tree 0: 'leaf_value' is .*, expected numbers"),
    (r"^threshold=\S+", "threshold=-inf", "threshold is -inf"),
    (r"^threshold=\S+", "threshold=nan", "threshold is nan"),
    (r"^leaf_count=\S+", "leaf_count=-5", "cover is -5"),
    (r"^leaf_count=\S+", "leaf_count=5000", "its children's add up to"),
    (r"^left_child=\S+", "left_child=0", "has 2 parents"),
    (r"^right_child=\S+", "right_child=5", "tree 0: position 0: child is 5, expected -6..4"),
    (r"^right_child=\S+", "right_child=-9", "tree 0: position 0: child is -9, expected -6..4"),
    (r"^split_feature=\S+", "split_feature=3", "tree 0: position 0: feature is 3, expected 0..2"),
    (r"^decision_type=\S+", "decision_type=12", "tree 0: position 0: decision type is 12, expected 0..11"),
    (r"^decision_type=\S+", "decision_type=1", "tree 0: category set .* is asked for"),
    (r"^num_cat=0", "num_cat=1", "tree 0: 'cat_boundaries' is missing"),
    (r"^num_cat=0", "num_cat=1\ncat_boundaries=0 3\ncat_threshold=1", "do not divide the 1 words"),
    (r"^num_cat=0", "num_cat=1\ncat_boundaries=0 1\ncat_threshold=4294967296", "category set word is 4294967296"),
    (r"^is_linear=0", "is_linear=2", "'is_linear' is 2"),
    (r"^num_leaves=6", "num_leaves=6\nnum_leaves=6", "b'num_leaves' is given twice"),
    (r"^shrinkage=1", "shrinkage", "got the line b'shrinkage', expected key=value"),
    (r"^Tree=0", "Tree=1", "tree 0: starts with b'Tree=1'"),
    (r"^max_feature_idx=2", "max_feature_idx=3", "'feature_names' has 3 names, expected 4"),
    (r"^feature_names=\S+", "feature_names=Column_1", "feature 'Column_1' is named twice"),
    (r"^feature_infos=\S+ ", "feature_infos=", "'feature_infos' has 2 entries, expected 3"),
    (r"^feature_infos=\S+", "feature_infos=0:x", "'feature_infos' is .*, expected numbers"),
    (r"^feature_infos=\S+", "feature_infos=0:99999999999", "category code of feature 0 is 99999999999"),
    (r"^num_tree_per_iteration=1", "num_tree_per_iteration=999999999", "'num_tree_per_iteration' is 999999999"),
    (r"^end of trees", "end of twigs", "the file is cut off"),
    (r"^pandas_categorical:null", "pandas_categorical:" + "[" * 100_000, "expected 'pandas_categorical:'"),
    (r"^pandas_categorical:null", 'pandas_categorical:[["a", "a"]]', "expected distinct texts and numbers"),
    (r"^pandas_categorical:null", "pandas_categorical:[[NaN]]", "expected distinct texts and numbers"),
    (r"^pandas_categorical:null", "pandas_categorical:[[[1]]]", "expected distinct texts and numbers"),
    (r"^pandas_categorical:null", "pandas_categorical:[1]", "and lists of categories"),
]


@pytest.mark.parametrize(("pattern", "replacement", "message"), DAMAGE, ids=[damage[2] for damage in DAMAGE])
def test_damaged_models_are_refused_in_one_line(pattern, replacement, message):
    """Each kind of damage is named, with what was got and expected and where."""
    with pytest.raises(InvalidModel, match=message) as refusal:
        parse(edited(pattern, replacement))
    assert str(refusal.value).startswith("model.txt: ")
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300


def test_random_damage_ends_in_a_model_or_a_refusal():
    """Flipped, doubled, cut and moved bytes never escape as another exception."""
    originals = [text().encode(), text(categories=True).encode()]
    rng = np.random.default_rng(7)
    refusals = []
    for _ in range(600):
        data = bytearray(originals[rng.integers(2)])
        trees_end = data.index(b"end of trees")
        for _ in range(rng.integers(1, 4)):
            at, length = int(rng.integers(trees_end)), int(rng.integers(1, 30))
            kind = rng.integers(4)
            if kind == 0:
                data[at] = int(rng.integers(256))
            elif kind == 1:
                data[at : at + length] = data[at : at + length] * 2
            elif kind == 2:
                data[at] = ord("0123456789-=. \n"[rng.integers(15)])
            else:
                del data[at : at + length]
        try:
            LOADER.parse(bytes(data), "model.txt")
        except (InvalidModel, UnsupportedModel) as refusal:
            refusals.append(str(refusal))
    assert len(refusals) > 100
    assert not any("\n" in refusal for refusal in refusals)
