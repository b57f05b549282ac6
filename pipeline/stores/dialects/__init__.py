"""Dialects of stores: one file for each kind of store reached through fsspec."""
