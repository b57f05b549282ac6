"""Rows of a run counted on grids, which is all that figures are drawn from."""
