"""The footer of a part: the plan and the work item that it is of, its rows, and its states of reductions."""

import json
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..dataset.listing import WorkItem
from ..errors import InvalidRun

KEY = b"leafledger"


@dataclass(frozen=True, slots=True)
class Footer:
    """What a part says of itself."""

    n_rows: int
    residual: float | None
    states: dict[str, str]


def write_footer(writer: pq.ParquetWriter, plan_digest: str, item: WorkItem, footer: Footer, n_stored: int) -> None:
    """Add the footer to a part that is about to be closed.

    Parameters
    ----------
    writer : pq.ParquetWriter
        Of the part, open.
    plan_digest : str
        SHA-256 of the run's plan, hexadecimal.
    item : WorkItem
        That the part is of.
    footer : Footer
    n_stored : int
        Rows that the part holds: all of the item, or none where summaries alone are asked for.
    """
    found = {
        "plan": plan_digest,
        "item": asdict(item),
        "n_rows": footer.n_rows,
        "stored": n_stored,
        "residual": footer.residual,
        "states": footer.states,
    }
    writer.add_key_value_metadata({KEY.decode(): json.dumps(found)})


def read_footer(uri: str, part: int, file: Any, plan_digest: str) -> Footer:
    """Read the footer of a part.

    Parameters
    ----------
    uri : str
        Of the part, for messages.
    part : int
        Number that it has to have.
    file : path or file
        A local path, or an open file.
    plan_digest : str
        SHA-256 that its plan has to have, hexadecimal.

    Returns
    -------
    Footer

    Raises
    ------
    InvalidRun
        Another plan or another item made it, it has other rows than were stored, or it is no part.
    """
    try:
        metadata = pq.read_metadata(file)
        footer = json.loads((metadata.metadata or {}).get(KEY, b"{}"))
        if footer.get("plan") != plan_digest or footer["item"]["part"] != part or footer["stored"] != metadata.num_rows:
            raise InvalidRun(f"{uri}: a part of another plan ({str(footer.get('plan'))[:12]}), expected {plan_digest[:12]}")
        return Footer(footer["n_rows"], footer["residual"], footer["states"])
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRun(f"{uri}: not a part of a run: {type(error).__name__} {' '.join(str(error).split())}") from error
