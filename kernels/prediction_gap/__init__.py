"""PG^2 and PGI^2: how far the prediction moves when features are perturbed, and rankings by it."""
