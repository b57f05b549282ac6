"""Who runs, and what others are told of it: progress, metrics, lineage, provenance."""
