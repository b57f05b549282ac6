"""A published run opened in Python: its tables, and single rows as text or HTML."""
