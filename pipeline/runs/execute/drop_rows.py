"""A part without some of its rows: written anew, with nothing of them in pages, dictionaries, statistics or filters; its states stay."""

import json
from collections.abc import Collection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...json_records import as_fields, parse_text
from ..lookup import bloom_filter
from ..records.footer import KEY

STORED = "stored"  # field of the footer with the number of rows that the part holds
DICTIONARY, SPLIT = {"RLE_DICTIONARY", "PLAIN_DICTIONARY"}, "BYTE_STREAM_SPLIT"


def _open_like(parquet: pq.ParquetFile, schema: pa.Schema, target: Path) -> pq.ParquetWriter:
    """Open a local file to be written as another part is: compression, encodings, filters of its columns."""
    group = parquet.metadata.row_group(0)
    chunks = [group.column(c) for c in range(group.num_columns)]
    encodings = {chunk.path_in_schema: {*chunk.encodings} for chunk in chunks}
    return pq.ParquetWriter(
        target,
        schema,
        compression=chunks[0].compression,
        use_dictionary=[name for name, kinds in encodings.items() if kinds & DICTIONARY],
        use_byte_stream_split=[name for name, kinds in encodings.items() if SPLIT in kinds],
        write_page_checksum=True,
        store_schema=True,
        **bloom_filter.writing((chunk.path_in_schema for chunk in chunks if bloom_filter.size(chunk)), parquet.metadata.num_rows),
    )


def _encode_anew(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give a column of a dictionary one of the values that are left: the other would keep those of the rows that are gone."""
    kind = column.type
    return column.cast(kind.value_type).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column


def _without(table: pa.Table, first_row: int, rows: np.ndarray) -> pa.Table:
    """Leave out rows of a row group, by slices, which Arrow has of every type."""
    gone = rows[(rows >= first_row) & (rows < first_row + table.num_rows)] - first_row
    starts, ends = np.concatenate([[0], gone + 1]), np.concatenate([gone, [table.num_rows]])
    left = pa.concat_tables([table.slice(start, end - start) for start, end in zip(starts, ends, strict=True)])
    return pa.table([_encode_anew(column) for column in left.columns], schema=table.schema)


def drop_rows(part: Path, rows: Collection[int], target: Path) -> Path:
    """Write a part without some of its rows.

    What its footer says of all rows that were explained, its states and residual among it, stays.

    Parameters
    ----------
    part : Path
        A local file.
    rows : collection of int
        Numbers in the part as it is, from 0, each once.
    target : Path
        A local file that is not there yet.

    Returns
    -------
    Path
        The target.
    """
    gone, first_row = np.array(sorted(rows), np.int64), 0
    with pq.ParquetFile(part, page_checksum_verification=True) as parquet:
        schema = parquet.schema_arrow.remove_metadata()
        footer = parse_text(parquet.metadata.metadata[KEY])
        footer[STORED] = parquet.metadata.num_rows - gone.size
        with _open_like(parquet, schema, target) as writer:
            for group in range(parquet.num_row_groups):
                table = parquet.read_row_group(group).replace_schema_metadata()
                left = _without(table, first_row, gone)
                if left.num_rows:
                    writer.write_table(left, row_group_size=left.num_rows)
                first_row += table.num_rows
            writer.add_key_value_metadata({KEY.decode(): json.dumps(footer, default=as_fields)})
    return target
