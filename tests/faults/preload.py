"""Loaded by Dask workers that a test starts: makes work last, or end badly, as the environment says."""

import ctypes
import os
import time

from pipeline import part

SECONDS, DEADLY = "FAULTS_SECONDS", "FAULTS_DEADLY"  # that an item takes longer, and the part that ends its worker


def dask_setup(worker) -> None:
    """Called once by every worker process."""
    explain = part.explain_item

    def explained(plan, plan_digest, item, prepared, local):
        time.sleep(float(os.environ.get(SECONDS, "0")))
        if str(item.part) == os.environ.get(DEADLY):
            ctypes.string_at(0)  # a segmentation fault
        explain(plan, plan_digest, item, prepared, local)

    part.explain_item = explained
