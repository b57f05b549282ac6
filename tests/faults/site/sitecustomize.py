"""Loaded by every Python that starts with this folder on its path: work lasts longer, or ends badly, as the environment says."""

from tests.faults.preload import dask_setup

dask_setup(None)
