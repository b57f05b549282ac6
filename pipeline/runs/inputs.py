"""Whether the model knows the data's categories: where it knows hardly any of a feature's, they are not what it was trained on."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from kernels.inputs import INPUTS

from ..errors import SchemaMismatch, UsageError
from .summaries import read_totals

ENOUGH = 100  # values, by which a feature's categories can be judged
HARDLY_ANY = 0.01  # of them


def check_predictions(names: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse columns of predictions that are not one for every output.

    Parameters
    ----------
    names : sequence of str
        Of the columns; none where predictions are not compared.
    outputs : sequence of str
        Of the model.

    Raises
    ------
    UsageError
        There are fewer columns than outputs, or more.
    """
    if names and len(names) != len(outputs):
        raise UsageError(f"predictions are {', '.join(names)}, expected a column for each of the model's {len(outputs)} outputs")


def refuse_unseen(tables: Mapping[str, pa.Table], allow_unseen: bool) -> None:
    """Refuse rows of which the model knows hardly any category of a feature.

    Parameters
    ----------
    tables : mapping of str to pa.Table
        Summaries by name, among them that of the inputs.
    allow_unseen : bool
        Refuse nothing.

    Raises
    ------
    SchemaMismatch
        Of a feature's values, at least ENOUGH that are not missing, no more than HARDLY_ANY are categories of the model; or none, where it has those
        alone that splits ask for.
    """
    if allow_unseen:
        return
    unasked = read_totals(tables).get(INPUTS.name, {}).get("unasked", {})
    for row in tables[INPUTS.name].to_pylist():
        there, told = row["rows"] - row["missing"], row["unseen"] is not None
        unseen = row["unseen"] if told else unasked.get(row["feature"], 0)
        if there >= ENOUGH and there - unseen <= HARDLY_ANY * there * told:
            raise SchemaMismatch(
                f"column {row['feature']!r}: {unseen:,} of {there:,} values are no category of the model, expected those that it was "
                "trained on; allow_unseen takes them as they are"
            )
