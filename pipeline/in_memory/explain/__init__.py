"""Attributions of rows in memory."""
