"""Tree ensembles as arrays: their bins, paths, margins and tables, and the forest that games are played on."""
