"""Kernels on a graphics card, by numba-cuda: walks, look-ups and leaves with a background, on the tables of the processor's kernels."""
