"""Write models by the CatBoost that is installed, 1.0 to 1.2, and what it says of some rows."""

import catboost
import numpy as np
from record import BINARY, CLASSES, FRAME, N_ROWS, NUMBERS, SEVERAL, TARGET, Record

SMALL = {"iterations": 4, "depth": 2, "verbose": 0, "allow_writing_files": False, "random_seed": 1, "thread_count": 1, "learning_rate": 0.5}
COUNTED = {"iterations": 6, "depth": 3, "model_size_reg": 0, "one_hot_max_size": 2}
record = Record(17)


def said(case, file, given, rows, target, forms=("cbm",), symmetric=True):
    """Train, and record margins, and contributions, which CatBoost has right of symmetric trees alone."""
    texts = [name for name in rows if rows[name].dtype == object]
    model = catboost.CatBoost({**SMALL, **given}).fit(rows, target, cat_features=texts)
    rows = rows.head(N_ROWS)
    margin = np.asarray(model.predict(rows, prediction_type="RawFormulaVal", thread_count=1))
    n, outputs = len(rows), margin.reshape(len(rows), -1).shape[1]
    pool = catboost.Pool(rows, np.zeros(n), cat_features=texts)
    found = np.asarray(model.get_feature_importance(pool, type="ShapValues", thread_count=1)) if symmetric else np.zeros(0)
    contributions = found.reshape(n, -1) if found.size == n * outputs * (len(rows.columns) + 1) else None
    for form in forms:
        model.save_model(record.path(f"{file}.{form}"), format=form)
        record.add(f"{case}, {form}", f"{file}.{form}", rows, margin, contributions)


BOTH = ("cbm", "json")
said("regression", "regression", {}, NUMBERS, TARGET, BOTH)
said("nan_mode=Max", "nan_max", {"nan_mode": "Max"}, NUMBERS, TARGET)
said("two classes", "two_classes", {"loss_function": "Logloss"}, NUMBERS, BINARY, BOTH)
said("three classes", "three_classes", {"loss_function": "MultiClass"}, NUMBERS, CLASSES)
said("several targets", "several", {"loss_function": "MultiRMSE"}, NUMBERS, SEVERAL)
said("grow_policy=Lossguide", "lossguide", {"grow_policy": "Lossguide"}, NUMBERS, TARGET, BOTH, symmetric=False)
said("categories, one-hot", "one_hot", {"one_hot_max_size": 10}, FRAME, TARGET, BOTH)
said("target statistics", "statistics", COUNTED, FRAME, TARGET, BOTH)
said("target statistics, two classes", "statistics_classes", {**COUNTED, "loss_function": "Logloss"}, FRAME, BINARY)
record.close()
