"""Attributions as a function of DuckDB."""

from leafledger.pipeline.serving.duckdb_function import register

__all__ = ["register"]
