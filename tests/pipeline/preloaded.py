"""What processes that are forked of one have: all that a run imports, some of it late, and what Numba learns at its first kernel, in seconds."""

import distributed
import pandas
import pyarrow.dataset
import scipy.linalg
import scipy.special

from leafledger.kernels.jit.decorator import _teach_numba
from leafledger.pipeline.command import cli
from leafledger.pipeline.command.commands import explaining
from leafledger.pipeline.runs import stages
from leafledger.pipeline.runs.check import check

__all__ = ["check", "cli", "distributed", "explaining", "pandas", "pyarrow", "scipy", "stages"]  # imported for those that are forked

_teach_numba()
