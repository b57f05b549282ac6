"""From parts to a published run: summaries, the manifest, the pointer to the latest run, the table."""
