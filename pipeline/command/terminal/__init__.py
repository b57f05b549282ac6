"""Tools shared by commands: options, settings, progress, JSON documents, signals."""
