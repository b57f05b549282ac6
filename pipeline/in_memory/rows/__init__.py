"""Rows and labels in memory: data frames, arrays, Arrow batches, Dask frames."""
