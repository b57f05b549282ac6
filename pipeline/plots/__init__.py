"""Pictures of attributions in memory, by the figures of a report."""
