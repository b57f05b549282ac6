"""Small tables of a run's folder, as summaries and distributions, read whole."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import InvalidRun


def read_small_table(source: Any, uri: str) -> pa.Table:
    """Read a table.

    Parameters
    ----------
    source : file-like or pa.Buffer
        Of Parquet.
    uri : str
        Where it is, for messages.

    Returns
    -------
    pa.Table
        Valid, so that every text of it can be decoded.

    Raises
    ------
    InvalidRun
        It is damaged.
    """
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as parquet:
            table = parquet.read()
        table.validate(full=True)  # texts are not decoded when they are read
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InvalidRun(f"{uri}: is damaged: {' '.join(str(error).split())}") from error
    return table
