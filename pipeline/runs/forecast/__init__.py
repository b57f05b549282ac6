"""Forecast of a run's time and memory."""
