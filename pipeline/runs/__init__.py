"""Runs: from arguments to a published manifest."""
