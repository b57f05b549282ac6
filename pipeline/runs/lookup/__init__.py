"""Single rows of a finished run, found by their ids."""
