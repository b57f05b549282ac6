"""A slice of rows at work: its buffers, labels and outputs, and the link from margins to predictions."""
