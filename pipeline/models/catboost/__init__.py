"""CatBoost's models."""
