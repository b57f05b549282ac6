"""Arrays of numbers: orders, narrow offsets, and random numbers that depend on a position alone."""
