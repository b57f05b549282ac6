"""What is in a model: features, tables of its leaves, what is not supported."""
