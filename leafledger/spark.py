"""Attributions of Spark's data frames."""

from leafledger.pipeline.serving.pyspark_frames import attribute

__all__ = ["attribute"]
