"""Nearest changes of rows in memory."""
