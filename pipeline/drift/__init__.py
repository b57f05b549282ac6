"""Drift between runs: distributions of every column, stored with the run, and comparison of two runs."""
