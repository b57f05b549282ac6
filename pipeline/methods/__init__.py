"""Preparation of a model and a method, for runs and for rows in memory."""
