"""A published run checked: its objects, its parts, its numbers."""
