"""The marginal game, in which absent features take the values of background rows."""
