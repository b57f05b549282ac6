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
    """Add the footer to a part that is about to be closed, and that holds ``n_stored`` rows."""
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
    """The footer of a part, in a local path or an open file; refuse one that another plan made."""
    try:
        metadata = pq.read_metadata(file)
        footer = json.loads((metadata.metadata or {}).get(KEY, b"{}"))
        if footer.get("plan") != plan_digest or footer["item"]["part"] != part or footer["stored"] != metadata.num_rows:
            raise InvalidRun(f"{uri}: a part of another plan ({str(footer.get('plan'))[:12]}), expected {plan_digest[:12]}")
        return Footer(footer["n_rows"], footer["residual"], footer["states"])
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidRun(f"{uri}: not a part of a run: {type(error).__name__} {' '.join(str(error).split())}") from error
