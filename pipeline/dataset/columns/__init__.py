"""Columns of a data set: matched with the model, decoded, grouped."""
