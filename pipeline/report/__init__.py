"""A report of a finished run: one page that holds its figures, their numbers and their words, and asks for nothing else."""
