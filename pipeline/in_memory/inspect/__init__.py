"""Inspection of models: features, leaf tables, costs, and unsupported methods."""
