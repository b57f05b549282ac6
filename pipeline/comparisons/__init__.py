"""Comparison of feature rankings over a data set."""
