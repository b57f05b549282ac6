"""Rows and labels as people give them: data frames, arrays, Arrow batches, Dask frames."""
