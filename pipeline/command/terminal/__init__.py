"""What every command shares: options, settings, progress, documents, signals."""
