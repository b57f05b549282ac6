"""What Linux, macOS and Windows do in ways of their own with files."""
