"""Explainers where predictions are served: logged in MLflow, and as functions of Spark and DuckDB."""
