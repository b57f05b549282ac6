"""Rows, labels, and the record of what was written: read by programs in environments of old versions, with NumPy and pandas alone."""

import json
import os
import sys

import numpy as np
import pandas as pd

N, N_ROWS, N_EXPLAINED = 120, 10, 3
FOLDER = sys.argv[1] if len(sys.argv) > 1 else "."


def make_frame():
    """Numbers, some missing, some zero, and a text of five values; RandomState draws the same in every version of NumPy."""
    rng = np.random.RandomState(7)
    frame = pd.DataFrame(rng.normal(size=(N, 3)).round(2), columns=["a", "b", "c"])
    frame.loc[::7, "a"], frame.loc[::5, "b"] = np.nan, 0.0
    return frame.assign(city=np.array(list("pqrst"))[rng.randint(0, 5, N)])


FRAME = make_frame()
NUMBERS = FRAME[["a", "b", "c"]]
CATEGORIES = pd.CategoricalDtype(list("pqrst"))
CODES = FRAME["city"].map({"p": 0, "q": 1, "r": 2, "s": 3, "t": 4})
TARGET = (NUMBERS["a"].fillna(0.5) + NUMBERS["b"] * (NUMBERS["c"] > 0) + FRAME["city"].isin(["p", "s"])).round(3).to_numpy()
POSITIVE = np.exp(TARGET / 2).round(3)
BINARY = (TARGET > 0.4).astype(int)
CLASSES = np.digitize(TARGET, [-0.2, 0.8])
SEVERAL = np.column_stack((TARGET, NUMBERS["c"] - TARGET))


def numbers(found, digits):
    """Lists of lists of numbers, with null for NaN."""
    if isinstance(found, (list, tuple, np.ndarray)):
        return [numbers(each, digits) for each in found]
    return None if found != found else float(f"{found:.{digits}g}")


class Record:
    """What a version wrote, and what it says of some rows."""

    def __init__(self, digits):
        self.said, self.digits = [], digits

    def path(self, file):
        """Where a file goes."""
        return os.path.join(FOLDER, file)

    def add(self, case, file, rows, margin, contributions=None, **more):
        """Add a case: the margin of every row, ``(n,)`` or ``(n, outputs)``, and contributions, ``(n, outputs * (features + 1))``."""
        rows = rows.head(N_ROWS)
        margin = np.asarray(margin, float)[:N_ROWS].reshape(len(rows), -1)
        said = {
            "case": case,
            "file": file,
            "columns": list(map(str, rows.columns)),
            "rows": [[None if x is None or x != x else x for x in row] for row in rows.astype(object).values.tolist()],
            "margin": numbers(margin, self.digits),
        }
        if contributions is not None:
            some = np.asarray(contributions, float)[:N_EXPLAINED].reshape(-1, margin.shape[1], len(rows.columns) + 1)
            said["contributions"] = numbers(some, 9)
        for name, value in more.items():
            said[name] = numbers(np.asarray(value, float)[:N_ROWS].reshape(len(rows), -1), self.digits)
        self.said.append(said)

    def add_file(self, case, file):
        """Add a file of which nothing is said."""
        self.said.append({"case": case, "file": file})

    def close(self):
        """Write what was said."""
        with open(self.path("said.json"), "w") as file:
            json.dump(self.said, file)
