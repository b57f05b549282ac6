"""Functions of the margin that attributions are carried to, background row by background row: predictions and losses."""
