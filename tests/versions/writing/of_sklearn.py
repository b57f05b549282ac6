"""Write estimators by the scikit-learn that is installed, 1.1 to 1.9, by its skops, and what it says of some rows."""

import warnings

import numpy as np
import sklearn
import skops.io
from record import BINARY, CLASSES, CODES, FRAME, N_ROWS, NUMBERS, POSITIVE, SEVERAL, TARGET, Record
from sklearn import ensemble, model_selection, tree

warnings.simplefilter("ignore")
VERSION = tuple(map(int, sklearn.__version__.split(".")[:2]))
SEED = {"random_state": 0}
STUMPS = tree.DecisionTreeClassifier(max_depth=1)
VOTES = {"algorithm": "SAMME"} if VERSION < (1, 8) else {}  # the only one since 1.8
FILLED = NUMBERS.fillna(-1.0)
PREDICT, PROBABILITY, DECISION = "predict", "predict_proba", "decision_function"
record = Record(17)


def said(case, file, model, rows, target, predict, **given):
    """Fit, and record what the estimator says, also of a category that it never saw."""
    model.fit(rows, target, **given)
    rows = rows.head(N_ROWS).copy()
    if rows.columns.isin(["city"]).any() and rows["city"].dtype.kind == "f":
        rows.loc[1, "city"] = 7.0
    margin = np.asarray(getattr(model, predict)(rows)).reshape(len(rows), -1)
    more = {"probability": model.predict_proba(rows)} if hasattr(model, PROBABILITY) and predict == DECISION and not given else {}
    skops.io.dump(model, record.path(file + ".skops"))
    record.add(case, file + ".skops", rows, margin, **more)


def write_trees():
    """Write trees, forests, bagged trees."""
    said("DecisionTreeRegressor", "tree", tree.DecisionTreeRegressor(max_depth=3, **SEED), FILLED, TARGET, PREDICT)
    said("DecisionTreeClassifier", "tree_classes", tree.DecisionTreeClassifier(max_depth=3, **SEED), FILLED, CLASSES, PROBABILITY)
    said("RandomForestRegressor", "forest", ensemble.RandomForestRegressor(2, max_depth=2, **SEED), FILLED, SEVERAL, PREDICT)
    balanced = ensemble.RandomForestClassifier(2, max_depth=2, class_weight="balanced", **SEED)
    said("RandomForestClassifier", "forest_classes", balanced, FILLED, CLASSES, PROBABILITY)
    said("ExtraTreesRegressor", "extra", ensemble.ExtraTreesRegressor(2, max_depth=2, **SEED), FILLED, TARGET, PREDICT)
    bagged = ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=2), n_estimators=2, max_features=0.7, **SEED)
    said("BaggingClassifier", "bagging", bagged, FILLED, CLASSES, PROBABILITY)
    search = model_selection.GridSearchCV(tree.DecisionTreeRegressor(**SEED), {"max_depth": [1, 2]}, cv=2)
    said("GridSearchCV", "search", search, FILLED, TARGET, PREDICT)
    if VERSION >= (1, 3):
        said("DecisionTreeRegressor, missing values", "tree_missing", tree.DecisionTreeRegressor(max_depth=3, **SEED), NUMBERS, TARGET, PREDICT)
    if VERSION >= (1, 4):
        forest = ensemble.RandomForestClassifier(2, max_depth=2, **SEED)
        said("RandomForestClassifier, missing values", "forest_missing", forest, NUMBERS, CLASSES, PROBABILITY)
    if VERSION >= (1, 6):
        said("ExtraTreesRegressor, missing values", "extra_missing", ensemble.ExtraTreesRegressor(2, max_depth=2, **SEED), NUMBERS, TARGET, PREDICT)
    isolation = ensemble.IsolationForest(n_estimators=3, max_samples=16, **SEED).fit(FILLED.to_numpy())
    rows = FILLED.head(N_ROWS)
    skops.io.dump(isolation, record.path("isolation.skops"))
    record.add("IsolationForest", "isolation.skops", rows, np.log2(-isolation.score_samples(rows.to_numpy())))


def write_boosting():
    """Write gradient boosting and AdaBoost."""
    small = {"n_estimators": 2, "max_depth": 2, **SEED}
    said("GradientBoostingRegressor", "boosting", ensemble.GradientBoostingRegressor(**small), FILLED, TARGET, PREDICT)
    said("GradientBoostingClassifier, two classes", "boosting_two", ensemble.GradientBoostingClassifier(**small), FILLED, BINARY, DECISION)
    said("GradientBoostingClassifier, three classes", "boosting_three", ensemble.GradientBoostingClassifier(**small), FILLED, CLASSES, DECISION)
    zero = ensemble.GradientBoostingClassifier(init="zero", **small)
    said("GradientBoostingClassifier, three classes, init='zero'", "boosting_zero", zero, FILLED, CLASSES, DECISION)
    exponential = ensemble.GradientBoostingClassifier(loss="exponential", **small)
    said("GradientBoostingClassifier, loss='exponential'", "boosting_exponential", exponential, FILLED, BINARY, DECISION)
    light = np.where(BINARY == 1, 1e-9, 1.0)
    faint = ensemble.GradientBoostingClassifier(**small)
    said("GradientBoostingClassifier, a class of hardly any weight", "boosting_faint", faint, FILLED, BINARY, DECISION, sample_weight=light)
    if VERSION < (1, 3):
        deviance = ensemble.GradientBoostingClassifier(loss="deviance", **small)
        said("GradientBoostingClassifier, loss='deviance'", "boosting_deviance", deviance, FILLED, BINARY, DECISION)
    for labels, classes in ((BINARY, "two"), (CLASSES, "three")):
        model = ensemble.AdaBoostClassifier(STUMPS, n_estimators=3, **VOTES, **SEED)
        said(f"AdaBoostClassifier, SAMME, {classes} classes", "adaboost_" + classes, model, FILLED, labels, DECISION)
    if VERSION < (1, 6):
        real = ensemble.AdaBoostClassifier(STUMPS, n_estimators=2, algorithm="SAMME.R", **SEED).fit(FILLED, CLASSES)
        skops.io.dump(real, record.path("adaboost_real.skops"))
        record.add_file("AdaBoostClassifier, SAMME.R", "adaboost_real.skops")


def write_histogram_boosting():
    """Write gradient boosting by histograms: missing values, categories by their number and by their type."""
    small = {"max_iter": 2, "max_leaf_nodes": 4, **SEED}
    said("HistGradientBoostingRegressor", "histogram", ensemble.HistGradientBoostingRegressor(**small), NUMBERS, TARGET, PREDICT)
    poisson = ensemble.HistGradientBoostingRegressor(loss="poisson", **small).fit(NUMBERS, POSITIVE)
    skops.io.dump(poisson, record.path("histogram_poisson.skops"))
    margin = np.log(poisson.predict(NUMBERS.head(N_ROWS)))
    record.add("HistGradientBoostingRegressor, loss='poisson'", "histogram_poisson.skops", NUMBERS, margin)
    said("HistGradientBoostingClassifier, two classes", "histogram_two", ensemble.HistGradientBoostingClassifier(**small), NUMBERS, BINARY, DECISION)
    three = ensemble.HistGradientBoostingClassifier(**small)
    said("HistGradientBoostingClassifier, three classes", "histogram_three", three, NUMBERS, CLASSES, DECISION)
    rows = FRAME.assign(city=CODES.where(CODES != 2)).loc[:, ["city", "c", "b"]]
    by_number = ensemble.HistGradientBoostingRegressor(categorical_features=[0], **small)
    said("HistGradientBoostingRegressor, categorical_features=[0]", "histogram_codes", by_number, rows, TARGET, PREDICT)
    behind = ensemble.HistGradientBoostingRegressor(categorical_features=[1, 3], **small)
    rows = NUMBERS.assign(b=CODES % 3, city=CODES.where(CODES != 2))
    said("HistGradientBoostingRegressor, categorical_features=[1, 3]", "histogram_behind", behind, rows, TARGET, PREDICT)
    if VERSION >= (1, 4):
        rows = FRAME.assign(city=FRAME["city"].astype("category"))
        model = ensemble.HistGradientBoostingRegressor(categorical_features="from_dtype", **small)
        said("HistGradientBoostingRegressor, categories", "histogram_categories", model, rows, TARGET, PREDICT)


write_trees()
write_boosting()
write_histogram_boosting()
record.close()
