"""Commands about a model, not a run."""
