"""Rankings of a data set compared."""
