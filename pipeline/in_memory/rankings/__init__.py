"""Rankings of rows in memory: prediction gaps, curves and gradients."""
