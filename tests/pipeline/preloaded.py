"""What processes that are forked of one have: all that a run imports, some of it late, what Numba does at its first kernel, and a bucket's client at
its first request; it takes seconds."""

from functools import cache

import botocore.session
import distributed
import numpy as np
import pandas
import pyarrow.dataset
import scipy.linalg
import scipy.special
from botocore.loaders import JSONFileLoader

from leafledger.kernels.slices.top_k import find_largest
from leafledger.pipeline.cluster import requirements
from leafledger.pipeline.command import cli
from leafledger.pipeline.command.commands import explaining
from leafledger.pipeline.runs import stages
from leafledger.pipeline.runs.check import check
from tests.compiled_once import compile_once

__all__ = ["check", "cli", "distributed", "explaining", "pandas", "pyarrow", "requirements", "scipy", "stages"]  # for those that are forked

compile_once()
find_largest(np.zeros((3, 1)), 1)

# A client reads what botocore knows of services from JSON files, a quarter of what a short run in a bucket takes.
read_json = cache(JSONFileLoader().load_file)
JSONFileLoader.load_file = lambda _, path: read_json(path)
botocore.session.Session().create_client("s3", "us-east-1", aws_access_key_id="nobody", aws_secret_access_key="nothing")
