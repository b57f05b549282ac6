"""Reproductions: ``python -m tests.papers`` shows where published algorithms lose all digits as trees deepen, and that the kernels do not."""
