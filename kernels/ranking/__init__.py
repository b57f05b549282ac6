"""Rankings by gradient ascent, and insertion and deletion curves."""
