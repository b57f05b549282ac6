"""How kernels are compiled: the only decorator, and loops over eight rows at once."""
