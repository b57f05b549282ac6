"""Loader of LightGBM models."""
