"""What Prefect logs of a refusal: its line, as on the command line, in the place of a page of traceback that says where in the code it was raised."""

import logging

from leafledger.pipeline.display.text import printable
from leafledger.pipeline.errors import LeafledgerError

LOGGERS = ("prefect.flow_runs", "prefect.task_runs", "prefect.engine")  # that log what a run ended with


def _as_line(record: logging.LogRecord) -> bool:
    """Whether to log a record, which becomes the line of the refusal that it is about."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, LeafledgerError):
        record.msg, record.args, record.exc_info = printable(str(error)), (), None
    return True


def log_refusals_as_lines() -> None:
    """Let Prefect log every LeafledgerError as its line. Whatever else goes wrong keeps its traceback, for whoever mends it.

    A state says a refusal in one line by itself. But a flow run of a deployment ends with the error raised, and a task logs what exhausted its
    retries: both with a traceback, for which Prefect has no setting.
    """
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_as_line)  # once, however often it is called
