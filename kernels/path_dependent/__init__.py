"""The path-dependent game, in which absent features are averaged by the cover of the branches."""
