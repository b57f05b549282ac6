"""Widths of vectors, of blocks of rows, and of a cache line."""

LANES = 8  # doubles in a register
QUAD = 4  # numbers of a table row loaded at once
WIDE = 32  # rows whose codes are computed at once
LINE = 64  # bytes of a cache line
