"""Benchmarks: ``python -m tests.bench`` measures kernels, whole runs and memory in one go, against the libraries' own contributions."""
