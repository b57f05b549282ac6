"""Removal of one person from finished runs: rows out of parts, tables and pages, and the proof that nothing holds them."""
