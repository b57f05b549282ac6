"""Runs that earlier versions made, kept as files, and what makes them."""
