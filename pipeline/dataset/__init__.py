"""Input data: files, columns matched with the model, rows, labels, and groups of features."""
