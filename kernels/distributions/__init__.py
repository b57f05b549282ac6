"""Distributions of a column as mergeable histograms, and distances between two."""
