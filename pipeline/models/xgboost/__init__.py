"""Loader of XGBoost models."""
