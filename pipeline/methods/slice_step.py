"""One step of explaining, shared by runs and rows in memory: attribute a slice of rows, check it, and apply link and output."""

from dataclasses import dataclass

import numpy as np

from leafledger.kernels.batch import attribute_batch, find_breach, find_not_finite, find_residuals, find_set_residuals
from leafledger.kernels.method.method import TOLERANCE, Check, Method
from leafledger.kernels.slices.buffers import TOTAL, Buffers, Prepared
from leafledger.kernels.slices.links import Link, carry_outputs, find_misses
from leafledger.kernels.slices.row_outputs import keep_outputs
from leafledger.kernels.weighted.rows import find_carried_misses, is_loss

from ..dataset.columns.row_places import RowPlaces
from ..errors import AdditivityBreach
from ..models.row_output import RowOutput

SAYS = {False: "prediction", True: "loss"}


def check_rows(check: Check | None, prepared: Prepared, buffers: Buffers, n_rows: int, places: RowPlaces) -> float | None:
    """Find the largest residual of a slice's rows, and refuse what does not add up as it should, or is no finite number.

    Parameters
    ----------
    check : Check or None
        What has to add up, if anything.
    buffers : Buffers
        After the kernel.
    n_rows : int
        Of the slice.
    places : RowPlaces
        Of the slice's rows, for the message.

    Returns
    -------
    float or None
        As a fraction of the margin's bound; None where attributions need not add up to margins.

    Raises
    ------
    AdditivityBreach
        A row misses by more than TOLERANCE, or something of it is not finite, whatever the method.
    """
    found = find_residuals(check, prepared, buffers, n_rows)
    row = find_breach(found)
    if row is not None and check is not None:
        miss = check.miss.format(missed=found[:, row].max())
        raise AdditivityBreach(f"{places.name(row)}: {miss}, expected at most {TOLERANCE:g}")
    missed = find_set_residuals(prepared, buffers, n_rows)
    row = find_breach(missed)
    if row is not None:
        what, bound = (SAYS[is_loss(prepared.weighted)], "row's own") if prepared.weighted.tables else ("margin", "margin's")
        miss = f"interactions miss {what} - base value by {missed[:, row].max():.3g} of the {bound} bound"
        raise AdditivityBreach(f"{places.name(row)}: {miss}, expected at most {TOLERANCE:g}")
    row = find_not_finite(buffers, n_rows)
    if row is not None:
        raise AdditivityBreach(f"{places.name(row)}: its margin or an attribution is infinite or NaN, expected finite numbers")
    return float(found.max(initial=0.0)) if check is not None and check.of_margins else None


def _enter_space(link: Link | None, prepared: Prepared, buffers: Buffers, n_rows: int, places: RowPlaces) -> tuple[Buffers, float]:
    """Carry rows from margins to the space, overwriting attributions; and the largest residual there, as a fraction of the bound."""
    if prepared.weighted.tables:
        return _take_carried(prepared, buffers, n_rows, places)
    if link is None:
        return buffers, 0.0
    carried = carry_outputs(link, prepared, buffers)
    found = find_misses(link, prepared, carried, n_rows)
    row = find_breach(found)
    if row is not None:
        miss = f"attributions miss prediction - base value by {found[:, row].max():.3g} of the prediction's bound"
        raise AdditivityBreach(f"{places.name(row)}: {miss}, expected at most {TOLERANCE:g}")
    return carried, float(found.max(initial=0.0))


def _take_carried(prepared: Prepared, buffers: Buffers, n_rows: int, places: RowPlaces) -> tuple[Buffers, float]:
    """Put what attributions add up to in the place of margins, NaN in rows without a label; they were carried background row by background row."""
    found, missing = find_carried_misses(buffers.phi, buffers, n_rows), buffers.labels.missing
    row = find_breach(found)
    if row is not None:
        miss = f"attributions miss {SAYS[is_loss(prepared.weighted)]} - base value by {found[:, row].max():.3g} of the row's own bound"
        raise AdditivityBreach(f"{places.name(row)}: {miss}, expected at most {TOLERANCE:g}")
    if is_loss(prepared.weighted):
        buffers.ends[:, :, missing] = np.nan
        buffers.phi[:, :, missing] = 0.0
        buffers.pairs[:, :, missing] = 0.0
        buffers.without[:, :, :, missing] = 0.0
    return buffers._replace(margin=buffers.ends[:, TOTAL]), float(found.max(initial=0.0))


@dataclass(frozen=True, slots=True)
class Slice:
    """What was found of a slice's rows; what pads them does not count.

    Attributes
    ----------
    margin : (outputs, n) float64
        Of the model, all outputs.
    every : Buffers
        Of all outputs, in the space that was asked for.
    kept : Buffers
        Of these the output of each row, where it has one of its own.
    output : (n,) int64 or None
        Which one that is.
    residual : float or None
        The largest of a row, as a fraction of the bound; None where attributions need not add up to margins.
    """

    margin: np.ndarray
    every: Buffers
    kept: Buffers
    output: np.ndarray | None
    residual: float | None


@dataclass(frozen=True, slots=True)
class SliceStep:
    """What is done with every slice.

    Attributes
    ----------
    method : Method
    check : Check or None
        What has to add up, if anything.
    link : Link or None
        That attributions are carried through; None for margins.
    row_output : RowOutput or None
        Which output a row is explained for, where it differs from row to row.
    prepared : Prepared
        The method's tables.
    """

    method: Method
    check: Check | None
    link: Link | None
    row_output: RowOutput | None
    prepared: Prepared

    def explain(self, buffers: Buffers, n_rows: int, places: RowPlaces) -> Slice:
        """Explain a slice.

        Parameters
        ----------
        buffers : Buffers
            With values, and labels where there are any; all else is overwritten.
        places : RowPlaces
            Of the slice's rows, for messages, and for draws of an output.

        Raises
        ------
        AdditivityBreach
            A row misses by more than TOLERANCE, or something of it is not finite.
        """
        attribute_batch(self.method, self.prepared, buffers, n_rows)
        found = check_rows(None if self.prepared.weighted.tables else self.check, self.prepared, buffers, n_rows, places)
        every, missed = _enter_space(self.link, self.prepared, buffers, n_rows, places)
        output = None if self.row_output is None else self.row_output.choose(buffers.margin, places.numbers(buffers.margin.shape[1]))
        kept = every if output is None else keep_outputs(every, output)
        residual = missed if self.prepared.weighted.tables else None if found is None else max(found, missed)
        return Slice(buffers.margin, every, kept, output, residual)
