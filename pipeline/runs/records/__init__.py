"""What lies in a run's folder: each record with its reader and writer."""
