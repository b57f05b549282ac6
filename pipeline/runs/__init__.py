"""A run, from arguments to a published manifest."""
