"""A thousand workers that only wait, at a real scheduler, driven by a run's own client: what the scheduler and the client cost."""
