"""Nearest changes: what may be changed, which values are supported, thresholds, and words."""
