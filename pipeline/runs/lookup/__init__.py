"""Look-up of rows in a finished run by their ids."""
