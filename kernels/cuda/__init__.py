"""Kernels on a graphics card, by numba-cuda: walks and look-ups, on the tables of the processor's kernels."""
