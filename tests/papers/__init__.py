"""Reproductions: ``python -m tests.papers`` shows the figures and tables of five papers as numbers, what each printed and what comes out, with claims
that can fail, and keeps them for the pages."""
