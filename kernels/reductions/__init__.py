"""Mergeable states of many rows, and the summaries that are read off them."""
