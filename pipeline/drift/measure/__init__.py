"""Measurement of a finished run: the distribution of every column."""
