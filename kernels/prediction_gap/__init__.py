"""PG² and PGI²: squared changes of predictions under perturbation of features, and rankings by them."""
