"""Dask and this machine; nothing here knows a run."""
