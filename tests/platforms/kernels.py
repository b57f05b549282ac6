"""``python -m tests.platforms.kernels``: digests of what kernels compute of the same forests, by method, as JSON; the processor first.

It needs NumPy, SciPy and Numba alone, so that it runs wherever these do, under an emulator too.
"""

import hashlib
import json

import numpy as np

from leafledger.kernels.compiled import name_cpu
from tests.kernels.attributing import explain
from tests.trees import grown, symmetric

METHODS = ("shapley", "banzhaf")
N_ROWS, N_FEATURES = 300, 6


def main() -> None:
    """Print them."""
    rng = np.random.default_rng(1)
    forests = {"grown": grown(rng, 20, 6, N_FEATURES), "symmetric": symmetric(rng, [0, 3, 1, 5], N_FEATURES)}
    rows = rng.normal(size=(N_ROWS, N_FEATURES))
    found = {"cpu": name_cpu()}
    for name, forest in forests.items():
        for method in METHODS:
            phi, base, margin = explain(method, forest, rows)
            found[f"{name}, {method}"] = hashlib.sha256(b"".join(np.ascontiguousarray(each).tobytes() for each in (phi, base, margin))).hexdigest()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
