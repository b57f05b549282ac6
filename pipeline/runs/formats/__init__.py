"""Formats of a run's records: their numbers, and what earlier ones mean."""
