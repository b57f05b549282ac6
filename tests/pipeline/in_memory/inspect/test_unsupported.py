"""What is said not to be there for a model is what is refused when somebody asks for it, in the same words; all else works."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.ensemble import RandomForestRegressor

from leafledger import attribute, leaf_tables, load_ensemble, partial_dependence
from leafledger.kernels.methods import METHODS
from leafledger.pipeline.dataset.columns.players import number_players
from leafledger.pipeline.errors import LeafledgerError
from leafledger.pipeline.in_memory.inspect.unsupported import find_refusals

GIVEN = {"semivalue": lambda n: {"atoms": "0.5:1"}, "probabilistic": lambda n: {"sizes": (1.0 / n,) * n}}
NUMBERS = pd.DataFrame(np.random.default_rng(0).normal(size=(120, 3)), columns=list("abc"))
WORDS = NUMBERS.assign(b=np.random.default_rng(1).choice(list("pqrstu"), 120), c=np.random.default_rng(2).choice(list("xyz"), 120))
LABEL = (NUMBERS["a"] + (WORDS["b"] > "r") * (WORDS["c"] == "x")).rename("label")


def boosted(objective):
    return xgboost.XGBModel(n_estimators=4, max_depth=2, objective=objective, n_jobs=1).fit(NUMBERS, LABEL > 0)


def counting(n_trees):
    given = {"iterations": n_trees, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "model_size_reg": 0}
    return catboost.CatBoostRegressor(**given, max_ctr_complexity=2, random_seed=0).fit(WORDS, LABEL, cat_features=["b", "c"])


MODELS = {
    "regression": (boosted("reg:squarederror"), NUMBERS),
    "classifier": (boosted("binary:logistic"), NUMBERS),
    "poisson": (boosted("count:poisson"), NUMBERS),
    "classes": (lightgbm.LGBMClassifier(n_estimators=3, num_leaves=4, n_jobs=1, verbosity=-1).fit(NUMBERS, np.digitize(LABEL, [-0.5, 0.5])), NUMBERS),
    "forest": (RandomForestRegressor(3, max_depth=3, random_state=0).fit(NUMBERS, LABEL), NUMBERS),
    "statistics": (counting(4), WORDS),
    "combinations": (counting(30), WORDS),
}


def asked(model, rows, what):
    """What happens to whoever asks for it, with all that it needs."""
    kind, _, name = what.partition(" ")
    if kind == "method":
        n_players = len(NUMBERS.columns) + len(number_players(load_ensemble(model), ()).combinations)
        given = {"parameters": GIVEN[name](n_players)} if name in GIVEN else {}
        if name == "asymmetric" and isinstance(model, catboost.CatBoostRegressor):  # refused whatever the sequence
            given = {"parameters": {"sequence": tuple(rows.columns)}}
        return lambda: attribute(model, rows, name, **given)
    return {
        "interactions": lambda: attribute(model, rows, interactions=2),
        "background": lambda: attribute(model, rows, background=name),
        "compare": lambda: attribute(model, rows, "gap"),
        "effects": lambda: partial_dependence(model),
        "trees": lambda: load_ensemble(model, trees=1),
        "output": lambda: attribute(model, rows, output=name),
    }[kind]


ALL = [*(f"method {name}" for name in METHODS), "interactions", "background model", "compare", "effects", "trees", "output predicted"]


@pytest.mark.parametrize(("model", "rows"), MODELS.values(), ids=MODELS)
@pytest.mark.slow
def test_what_is_said_is_what_happens(model, rows):
    """One list of questions, asked for real."""
    said = {refusal.what: refusal.why for refusal in find_refusals(load_ensemble(model))}
    assert set(said) <= set(ALL)
    for what in ALL:
        try:
            asked(model, rows.head(5), what)()
        except LeafledgerError as error:
            got = str(error)
            assert what in said, got
            assert said[what] == got or said[what].startswith("needs a ") or what == "compare"
        else:
            assert what not in said
    for why in said.values():
        assert "\n" not in why


@pytest.mark.slow
def test_tables_of_leaves_are_there_where_the_model_is_its_own_background():
    """Both need symmetric trees with weights."""
    for model, _ in MODELS.values():
        refused = "background model" in {refusal.what for refusal in find_refusals(load_ensemble(model))}
        if refused:
            with pytest.raises(LeafledgerError, match="a leaf does not say"):
                leaf_tables(model)
        else:
            assert leaf_tables(model).num_rows
