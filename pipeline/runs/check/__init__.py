"""Verification of published runs: objects, parts and numbers."""
