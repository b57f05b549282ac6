"""Numerical kernels: arrays in, arrays out, without files, column names or clusters."""
