"""Finished runs side by side: which there are, and what became of importances from one night to the next."""
