"""32-bit offsets of kernel tables, with an overflow check."""

import numpy as np

from ..errors import InvalidParameters

LARGEST_OFFSET = int(np.iinfo(np.int32).max)


def check_offset(largest: int) -> None:
    """Refuse tables with an offset beyond 32 bits, which would wrap around and make kernels read wrong numbers.

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
    """Store integers, such as offsets, in 32 bits.

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
