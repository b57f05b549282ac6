"""Row checks."""

from leafledger.kernels.batch import find_breach, find_not_finite, find_residuals
from leafledger.kernels.method.method import TOLERANCE, Check
from leafledger.kernels.slices.buffers import Buffers, Prepared
from leafledger.kernels.slices.links import Link, carry_outputs, find_misses

from ..errors import AdditivityBreach


def check_rows(check: Check | None, prepared: Prepared, buffers: Buffers, n_rows: int, where: str, first_row: int) -> float | None:
    """Find the largest residual of a slice's rows, and refuse what does not add up as it should, or is no finite number.

    Parameters
    ----------
    check : Check or None
        What has to add up, if anything.
    buffers : Buffers
        After the kernel.
    n_rows : int
        Of the slice.
    where : str
        What the message starts with: the file and ": ", or nothing.
    first_row : int
        Number of the slice's first row in the file, for the message.

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
        raise AdditivityBreach(f"{where}row {first_row + row}: {miss}, expected at most {TOLERANCE:g}")
    row = find_not_finite(buffers, n_rows)
    if row is not None:
        raise AdditivityBreach(f"{where}row {first_row + row}: its margin or an attribution is infinite or NaN, expected finite numbers")
    return float(found.max(initial=0.0)) if check is not None and check.of_margins else None


def enter_space(link: Link | None, prepared: Prepared, buffers: Buffers, n_rows: int, where: str, first_row: int) -> tuple[Buffers, float]:
    """Carry a slice's rows from margins to predictions, and refuse what does not add up to these.

    Parameters
    ----------
    link : Link or None
        None leaves rows as they are.
    buffers : Buffers
        After the kernel; attributions are overwritten.
    n_rows : int
        Of the slice.
    where : str
        What the message starts with: the file and ": ", or nothing.
    first_row : int
        Number of the slice's first row in the file, for the message.

    Returns
    -------
    buffers : Buffers
        With predictions in the place of margins.
    residual : float
        The largest of a row, as a fraction of the prediction's bound; 0 where rows are left as they are.

    Raises
    ------
    AdditivityBreach
        A row misses by more than TOLERANCE.
    """
    if link is None:
        return buffers, 0.0
    carried = carry_outputs(link, prepared, buffers)
    found = find_misses(link, prepared, carried, n_rows)
    row = find_breach(found)
    if row is not None:
        miss = f"attributions miss prediction - base value by {found[:, row].max():.3g} of the prediction's bound"
        raise AdditivityBreach(f"{where}row {first_row + row}: {miss}, expected at most {TOLERANCE:g}")
    return carried, float(found.max(initial=0.0))
