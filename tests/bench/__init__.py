"""Benchmarks: ``python -m tests.bench`` measures kernels, whole runs and memory in one go, against everything else that explains trees."""
