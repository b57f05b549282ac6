"""Golden numbers: values that must stay, of every method, game and library."""
