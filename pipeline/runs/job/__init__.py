"""Arguments of a run: options, and the Job record."""
