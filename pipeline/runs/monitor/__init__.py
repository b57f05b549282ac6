"""Monitoring of runs: progress, metrics, lineage and provenance."""
