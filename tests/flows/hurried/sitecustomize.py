"""Python imports this before a flow run that a test's worker starts: the waits between tries are as many as ever, and short."""

import sys

if "prefect.engine" in sys.orig_argv:  # the worker itself needs none of it
    from leafledger.flows import stages

    stages.RETRY_SECONDS[:] = [0.1 for _ in stages.RETRY_SECONDS]
