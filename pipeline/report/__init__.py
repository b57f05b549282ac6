"""Report of a finished run: one self-contained page of figures, tables and text."""
