"""The input: columns matched with the model, files listed, rows and labels read, groups of features."""
