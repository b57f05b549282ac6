"""Reproductions: ``python -m tests.papers`` shows the papers' figures as numbers: where published algorithms lose all digits as trees deepen and the
kernels do not, and what the marginal game costs."""
