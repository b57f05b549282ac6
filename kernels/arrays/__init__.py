"""Array tools: rankings, 32-bit offsets, and pseudorandom numbers derived from positions."""
