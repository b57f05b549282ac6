"""Execution of a plan: parts made in this process or on a cluster."""
