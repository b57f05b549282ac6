"""Shapley, Banzhaf, Beta, Owen and other values: tables of both games, and the methods."""
