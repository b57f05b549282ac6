"""Offsets in 32 bits, as kernels read them beside what else is said of a split."""

import numpy as np

from ..errors import InvalidParameters

LARGEST_OFFSET = int(np.iinfo(np.int32).max)


def check_offset(largest: int) -> None:
    """Refuse tables in which an offset has more than 32 bits: it would wrap, and a kernel would read other numbers.

    Parameters
    ----------
    largest : int
        of the offsets
    """
    if largest > LARGEST_OFFSET:
        raise InvalidParameters(
            f"the model is too large: a table has more than {largest:,} numbers, expected at most {LARGEST_OFFSET:,}; explain fewer of its trees"
        )


def narrow(numbers: np.ndarray) -> np.ndarray:
    """Store numbers, offsets among them, in 32 bits.

    Parameters
    ----------
    numbers : int64, of any shape

    Returns
    -------
    int32, of the same shape

    Raises
    ------
    InvalidParameters
        one of them does not fit
    """
    check_offset(int(numbers.max(initial=0)))
    return numbers.astype(np.int32)
