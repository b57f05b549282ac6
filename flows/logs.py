"""Filter of Prefect's logs that shortens refusals from tracebacks to one line."""

import logging

from leafledger.pipeline.display.text import printable
from leafledger.pipeline.errors import LeafledgerError

LOGGERS = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")  # loggers of final states


def _as_line(record: logging.LogRecord) -> bool:
    """Log a refusal's record as one line."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, LeafledgerError):
        record.msg, record.args, record.exc_info = printable(str(error)), (), None
    return True


def log_refusals_as_lines() -> None:
    """Make Prefect log every LeafledgerError as its line; other errors keep their traceback.

    A state has a refusal's line anyway. But a deployment's flow run ends with the error raised, and a task logs what exhausted its retries: both with
    a traceback that no Prefect setting turns off.
    """
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_as_line)  # idempotent
