"""What a person gave, read, or refused in one line."""
