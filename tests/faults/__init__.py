"""Runs that survive: faults of stores, workers, schedulers and clients are made, and what is left is verified."""
