"""Loader of CatBoost models."""
