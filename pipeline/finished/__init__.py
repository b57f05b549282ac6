"""Finished runs in Python: tables, attributions, and rows as text or HTML."""
