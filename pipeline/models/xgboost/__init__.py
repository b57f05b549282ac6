"""XGBoost's models."""
