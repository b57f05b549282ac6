"""Mergeable states over rows, and the summaries computed from them."""
