"""Imported by the process that workers are forked of: what takes each of them a quarter of a second before its first kernel is done then."""

import numpy as np

from leafledger.kernels.slices.top_k import find_largest

find_largest(np.zeros((3, 1)), 1)
