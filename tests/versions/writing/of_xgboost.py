"""Write models by the XGBoost that is installed, 1.0 to 3.4, and what it says of some rows."""

import inspect
import json
import warnings

import numpy as np
import xgboost
from record import BINARY, CATEGORIES, CLASSES, FRAME, N_ROWS, NUMBERS, POSITIVE, SEVERAL, TARGET, Record

warnings.simplefilter("ignore")
VERSION = tuple(map(int, xgboost.__version__.split(".")[:2]))
SMALL = {"max_depth": 2, "n_jobs": 1, "learning_rate": 0.5, "random_state": 1}
NATIVE = {"max_depth": 2, "nthread": 1, "eta": 0.5, "seed": 1}
ROUNDS, HELD_OUT = 3, 80
record = Record(9)


def matrix(rows, target=None, missing=np.nan):
    """Make a DMatrix."""
    more = {"enable_categorical": True} if "category" in set(map(str, rows.dtypes)) else {}
    return xgboost.DMatrix(rows, target, missing=missing, nthread=1, **more)


def said(case, file, model, rows, missing=np.nan, **asked):
    """Record an estimator's or Booster's margins and contributions, of some of its rounds."""
    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    rows = rows.head(N_ROWS)
    data = matrix(rows, missing=missing)
    used = {name: value for name, value in asked.items() if name in inspect.signature(booster.predict).parameters}
    margin = booster.predict(data, output_margin=True, **used)
    try:
        contributions = booster.predict(data, pred_contribs=True, **used)
    except xgboost.core.XGBoostError:
        contributions = None
    more = {"probability": model.predict_proba(rows)} if hasattr(model, "predict_proba") else {}
    if not isinstance(model, xgboost.Booster):
        by_estimator = model.predict(rows, output_margin=True)
        assert np.allclose(np.ravel(by_estimator), np.ravel(margin), atol=1e-6), case
    model.save_model(record.path(file))
    record.add(case, file, rows, margin, contributions, **more)


def fit_stopped(model, rows, target):
    """Fit an estimator with early stopping, by its constructor since 1.6 and by ``fit`` before."""
    early = {"early_stopping_rounds": 2}
    if VERSION >= (1, 6):
        model.set_params(**early)
        early = {}
    return model.fit(rows[:HELD_OUT], target[:HELD_OUT], eval_set=[(rows[HELD_OUT:], target[HELD_OUT:])], verbose=False, **early)


def used_rounds(model, per_round):
    """Name the rounds up to the best one, as ``Booster.predict`` takes them: ``iteration_range`` since 1.4."""
    booster = model if isinstance(model, xgboost.Booster) else model.get_booster()
    best = int(booster.attr("best_iteration")) + 1
    return {"iteration_range": (0, best)} if VERSION >= (1, 4) else {"ntree_limit": best * per_round}


def write_estimators():
    """Write estimators: missing values as a number, classes, rounds that were stopped early."""
    model = xgboost.XGBRegressor(n_estimators=ROUNDS, **SMALL).fit(NUMBERS, TARGET)
    said("regression", "regression.json", model, NUMBERS)
    if VERSION >= (1, 6):
        said("regression, UBJ", "regression.ubj", model, NUMBERS)
    coded = NUMBERS.fillna(-999.0)
    model = xgboost.XGBRegressor(n_estimators=ROUNDS, missing=-999.0, **SMALL).fit(coded, TARGET)
    said("missing=-999", "missing.json", model, coded, missing=-999.0)
    model = xgboost.XGBClassifier(n_estimators=ROUNDS, **SMALL).fit(NUMBERS, BINARY)
    said("two classes", "two_classes.json", model, NUMBERS)
    model = xgboost.XGBClassifier(n_estimators=ROUNDS, **SMALL).fit(NUMBERS, CLASSES)
    said("three classes", "three_classes.json", model, NUMBERS)
    model = xgboost.XGBRFRegressor(n_estimators=4, max_depth=2, n_jobs=1, random_state=1).fit(NUMBERS, TARGET)
    said("random forest", "random_forest.json", model, NUMBERS)
    for several in (1, 3):
        for labels, classes in ((BINARY, "two"), (CLASSES, "three")):
            model = xgboost.XGBClassifier(n_estimators=20, num_parallel_tree=several, colsample_bynode=0.6, **{**SMALL, "learning_rate": 1.0})
            fit_stopped(model, NUMBERS, labels)
            case = f"stopped early, {classes} classes" + ", 3 trees at a time" * (several > 1)
            said(case, f"stopped_{classes}_{several}.json", model, NUMBERS, **used_rounds(model, several))


def write_boosters():
    """Write Boosters: dropout, objectives, several targets, covers after a refresh."""
    dart = {**NATIVE, "booster": "dart", "rate_drop": 0.5, "one_drop": 1}
    model = xgboost.train(dart, matrix(NUMBERS, TARGET), ROUNDS)
    # Without the number of trees, versions before 1.4 would drop trees in predictions.
    said("dart", "dart.json", model, NUMBERS, ntree_limit=ROUNDS)
    for objective in ("count:poisson", "reg:gamma", "survival:cox", "binary:logitraw"):
        target = BINARY if objective.startswith("binary") else POSITIVE
        model = xgboost.train({**NATIVE, "objective": objective}, matrix(NUMBERS, target), ROUNDS)
        said(f"objective {objective}", objective.partition(":")[2] + ".json", model, NUMBERS)
    model = xgboost.train({**NATIVE, "gamma": 2.0, "max_depth": 4, "tree_method": "exact"}, matrix(NUMBERS, TARGET), ROUNDS)
    said("pruned", "pruned.json", model, NUMBERS)
    held_out = [(matrix(NUMBERS[HELD_OUT:], BINARY[HELD_OUT:]), "held")]
    for several in (1, 3):
        given = {**NATIVE, "eta": 1.0, "objective": "binary:logistic", "num_parallel_tree": several, "colsample_bynode": 0.6}
        stopped = xgboost.train(given, matrix(NUMBERS[:HELD_OUT], BINARY[:HELD_OUT]), 20, evals=held_out, early_stopping_rounds=2, verbose_eval=False)
        case = "Booster, stopped early" + ", 3 trees at a time" * (several > 1)
        said(case, f"booster_stopped_{several}.json", stopped, NUMBERS, **used_rounds(stopped, several))
    if VERSION >= (1, 4):  # before, contributions of trees with a cover of 0 end the process
        write_refreshed(model)
    if VERSION >= (1, 6):
        model = xgboost.XGBRegressor(n_estimators=ROUNDS, tree_method="hist", **SMALL).fit(NUMBERS, SEVERAL)
        said("several targets", "several.json", model, NUMBERS)
    if VERSION >= (2, 0):
        vector = {**SMALL, "tree_method": "hist", "multi_strategy": "multi_output_tree"}
        model = xgboost.XGBRegressor(n_estimators=ROUNDS, **vector).fit(NUMBERS, SEVERAL)
        said("several targets, vector leaves", "vector.json", model, NUMBERS)


def write_refreshed(model):
    """Write trees whose covers were counted anew on few rows, so that some nodes have none."""
    refresh = {"process_type": "update", "updater": "refresh", "refresh_leaf": 1}
    model = xgboost.train({**NATIVE, **refresh}, matrix(NUMBERS.head(6), TARGET[:6]), ROUNDS, xgb_model=model)
    said("refreshed on few rows", "refreshed.json", model, NUMBERS)


def write_categories():
    """Write splits on categories, which the CPU has since 1.6, in sets since 1.7."""
    rows = FRAME.assign(city=FRAME["city"].astype(CATEGORIES))
    given = {**SMALL, "tree_method": "hist", "enable_categorical": True, "max_depth": 3}
    model = xgboost.XGBRegressor(n_estimators=ROUNDS, **given).fit(rows, TARGET)
    said("categories", "categories.json", model, rows)
    if VERSION >= (1, 7):
        model = xgboost.XGBRegressor(n_estimators=ROUNDS, max_cat_to_onehot=1, **given).fit(rows, TARGET)
        said("categories in sets", "sets.json", model, rows)


def write_others():
    """Write what is no model of trees in JSON: the old binary format, the default of files not called .json until 2.1, and the configuration."""
    model = xgboost.train(NATIVE, matrix(NUMBERS, TARGET), ROUNDS)
    model.save_model(record.path("binary.model"))
    record.add_file("save_model to .model", "binary.model")
    with open(record.path("config.json"), "w") as file:
        file.write(json.dumps(json.loads(model.save_config())))
    record.add_file("save_config", "config.json")


write_estimators()
write_boosters()
if VERSION >= (1, 6):
    write_categories()
write_others()
record.close()
