"""Comparison of feature rankings: quality of each on the model, and agreement of pairs."""
