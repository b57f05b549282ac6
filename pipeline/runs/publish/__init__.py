"""Publication of a run: summaries, manifest, pointer to the latest run, and table commit."""
