"""A finished run measured: the distribution of every column."""
