"""A bucket, as the tests of the pipeline have it."""

from tests.pipeline.conftest import bucket, s3_endpoint  # noqa: F401 - fixtures of this folder
