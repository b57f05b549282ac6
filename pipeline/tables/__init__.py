"""Lakehouse tables, Delta Lake's and Iceberg's: live files for reading, and commits of a run's parts."""
