"""Explanations of rows in memory: attributions, prediction gaps, curves and gradients."""
