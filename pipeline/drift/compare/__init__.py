"""Comparison of two measured runs."""
