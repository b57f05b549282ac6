"""Collections of finished runs: listing, importances over time, index page and pruning."""
