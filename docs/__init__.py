"""What makes the documentation's pages."""
