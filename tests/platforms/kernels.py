"""``python -m tests.platforms.kernels [CASE]``: digests of what kernels compute of the same forests, by method, as JSON; the processor first.

It needs NumPy, SciPy and Numba alone, so that it runs wherever these do, under an emulator too.
"""

import hashlib
import json
import sys

import numpy as np

from leafledger.kernels.compiled import name_cpu
from tests.kernels.attributing import explain
from tests.trees import grown, symmetric

METHODS = ("shapley", "banzhaf")
N_ROWS, N_FEATURES = 300, 6


def main(*cases: str) -> None:
    """Print them, or some."""
    rng = np.random.default_rng(1)
    forests = {"grown": grown(rng, 20, 6, N_FEATURES), "symmetric": symmetric(rng, [0, 3, 1, 5], N_FEATURES)}
    rows = rng.normal(size=(N_ROWS, N_FEATURES))
    found = {"cpu": name_cpu()}
    for name, forest in forests.items():
        for case, method in ((f"{name}, {method}", method) for method in METHODS):
            if cases and case not in cases:
                continue
            phi, base, margin = explain(method, forest, rows)
            found[case] = hashlib.sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in (phi, base, margin))).hexdigest()
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
