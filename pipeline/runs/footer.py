"""The footer of a part: the plan and the work item that it is of, its rows, units and base values, and its states of reductions."""

import json
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..dataset.listing import WorkItem
from ..display import printable
from ..errors import InvalidRun
from ..records import read_record
from .options import Space

KEY = b"leafledger"


@dataclass(frozen=True, slots=True)
class Footer:
    """What a part says of itself."""

    n_rows: int
    residual: float | None
    states: dict[str, str]
    space: Space  # units of attributions and base values
    base: dict[str, float]  # of every output of the model


@dataclass(frozen=True, slots=True)
class _Written:
    """The text of a footer."""

    plan: str  # SHA-256, hexadecimal
    item: WorkItem
    n_rows: int
    stored: int  # rows that the part holds
    residual: float | None
    states: dict[str, str]
    space: Space
    base: dict[str, float]


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
    found = _Written(plan_digest, item, footer.n_rows, n_stored, footer.residual, footer.states, footer.space, footer.base)
    writer.add_key_value_metadata({KEY.decode(): json.dumps(asdict(found))})


def read_footer(uri: str, part: int, file: Any, plan_digest: str, item: WorkItem | None = None) -> Footer:
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
    item : WorkItem, optional
        That it has to be of, where the plan is at hand.

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
        footer = read_record(_Written, (metadata.metadata or {}).get(KEY, b"{}"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidRun(f"{uri}: not a part of a run: {' '.join(str(error).split())}") from error
    if footer.plan != plan_digest or footer.item.part != part:
        raise InvalidRun(f"{uri}: a part of another plan ({printable(footer.plan[:12])}), expected {plan_digest[:12]}")
    if item is not None and footer.item != item:
        raise InvalidRun(f"{uri}: says that it is of other rows than the plan's part {part}")
    if footer.stored != metadata.num_rows:
        raise InvalidRun(f"{uri}: holds {metadata.num_rows} rows, its footer says {footer.stored}")
    return Footer(footer.n_rows, footer.residual, footer.states, footer.space, footer.base)
