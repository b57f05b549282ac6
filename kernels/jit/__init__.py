"""Compilation of kernels: the only jit decorator, and explicit vectors of eight rows."""
