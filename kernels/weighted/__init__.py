"""The marginal game with weighted background rows, for what is carried background row by background row."""
