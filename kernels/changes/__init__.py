"""What would have to change: a row's margin as a function of one feature, and the nearest value that crosses a threshold."""
