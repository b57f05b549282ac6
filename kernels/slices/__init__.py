"""A batch of rows in memory: its buffers, labels and outputs, and the link to predictions."""
