"""Files of a data set: listed, identified, read in row groups."""
