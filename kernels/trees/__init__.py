"""Tree ensembles as arrays: bins, paths, margins, look-up tables, and the forest that games use."""
