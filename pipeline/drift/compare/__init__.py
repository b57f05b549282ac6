"""Two measured runs set side by side."""
