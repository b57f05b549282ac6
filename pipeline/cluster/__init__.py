"""Execution on Dask or in this process, and properties of the machine; independent of runs."""
