"""A model and a method made ready: what a run and rows in memory both need."""
