"""What processes that are forked of one have: all that a run imports, some of it late, and what Numba does at its first kernel; it takes seconds."""

import distributed
import numpy as np
import pandas
import pyarrow.dataset
import scipy.linalg
import scipy.special

from leafledger.kernels.slices.top_k import find_largest
from leafledger.pipeline.cluster import requirements
from leafledger.pipeline.command import cli
from leafledger.pipeline.command.commands import explaining
from leafledger.pipeline.runs import stages
from leafledger.pipeline.runs.check import check

__all__ = ["check", "cli", "distributed", "explaining", "pandas", "pyarrow", "requirements", "scipy", "stages"]  # for those that are forked

find_largest(np.zeros((3, 1)), 1)
