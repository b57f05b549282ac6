"""Readers of user arguments, which return values or raise one-line errors."""
