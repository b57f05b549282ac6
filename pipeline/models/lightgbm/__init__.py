"""LightGBM's models."""
