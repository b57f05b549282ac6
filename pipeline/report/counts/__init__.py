"""Counts of a run's rows on grids, the data of all figures."""
