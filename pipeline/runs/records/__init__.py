"""Records in a run's folder, each with its reader and writer."""
