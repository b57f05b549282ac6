"""What changed from one night to the next: distributions of every column of a run, measured once and kept, and two runs set side by side."""
