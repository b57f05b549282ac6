"""Rows as they are shown, made by hand for tests."""

from leafledger.pipeline.finished.row_data import ShownOutput, ShownRow, Wording
from leafledger.pipeline.finished.row_view import Shown
from leafledger.pipeline.runs.lookup.row_lookup import RowAddress


def one(steps=(), base=1.0, total=3.0, n_others=0, output="", **more):
    """A row with one output."""
    found = {"errors": {}, "scores": {}, "interactions": None, "reasons": None} | more
    output = ShownOutput(output, base, total, tuple(steps), n_others=n_others, **found)
    return ShownRow(RowAddress(2, "run/part-00002.parquet", 5), "data.parquet", 17, {}, {}, (output,))


def shown(*rows, additive=True, ranks=False, n_found=None):
    column = "rank" if ranks else "phi"
    return Shown("run", "abc", "shapley", Wording(column, ranks, "margin", additive), n_found or len(rows), rows)
