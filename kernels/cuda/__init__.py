"""Kernels on a graphics card, by numba-cuda: binning, margins, look-ups and walks, on the tables of the processor's kernels."""
