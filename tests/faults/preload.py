"""Loaded by Dask workers and other processes that a test starts: makes work last, or end badly, as the environment says."""

import ctypes
import os
import select
import time
from pathlib import Path
from types import MappingProxyType

from leafledger.pipeline.drift.measure import measure_part as measuring
from leafledger.pipeline.runs.execute import make_part

SECONDS = "FAULTS_SECONDS"  # that an item takes longer
DEADLY, GREEDY = "FAULTS_DEADLY", "FAULTS_GREEDY"  # the part that ends its worker, or takes memory without end
COMPILED = "FAULTS_COMPILED"  # file to which is added how many kernels are on disk when an item begins
DEADLY_FILE = "FAULTS_DEADLY_FILE"  # that ends its worker, whatever item it is in
PIECE = 32 << 20  # bytes


def dask_setup(worker) -> None:
    """Called once by every process."""
    write_part = make_part.write_part

    def written(plan, plan_digest, item, prepared, local, rejected=MappingProxyType({}), in_order=map):
        deadly, seconds = str(item.part) == os.environ.get(DEADLY), float(os.environ.get(SECONDS, "0"))
        deadly |= os.environ.get(DEADLY_FILE) in {piece.uri for piece in item.pieces} - {*rejected}
        select.select([], [], [], seconds / 2 if deadly else seconds)  # sleep does not bear libfaketime
        if deadly:
            ctypes.string_at(0)  # a segmentation fault, while what started with it is still at work
        if COMPILED in os.environ:
            with open(os.environ[COMPILED], "a") as file:
                file.write(f"{len(list(Path(os.environ['NUMBA_CACHE_DIR']).rglob('*.nbc')))}\n")
        taken = []
        while str(item.part) == os.environ.get(GREEDY):
            taken.append(b"0" * PIECE)
            time.sleep(0.05)  # whoever watches looks ten times a second
        return write_part(plan, plan_digest, item, prepared, local, rejected, in_order)

    make_part.write_part = written
    measure = measuring.measure_columns

    def measured(*arguments):
        select.select([], [], [], float(os.environ.get(SECONDS, "0")))
        return measure(*arguments)

    measuring.measure_columns = measured
