"""Rows in memory: attributions, prediction gaps, curves and gradients."""
