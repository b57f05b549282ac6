"""Text encoding of reduction states, for the footers of parts."""

import base64
import io
from collections.abc import Iterator
from typing import Any
from zipfile import BadZipFile

import numpy as np

from leafledger.kernels.reductions.reduction import Reduction

from ..errors import InvalidRun
from ..stores.table_arrays import load_numpy


def _arrays(record: Any) -> list[np.ndarray]:
    """Yield the arrays of nested records."""
    return [record] if isinstance(record, np.ndarray) else [array for part in record for array in _arrays(part)]


def _fill(template: Any, arrays: Iterator[np.ndarray]) -> Any:
    """Fill nested records like the template with arrays."""
    return next(arrays) if isinstance(template, np.ndarray) else type(template)(*(_fill(part, arrays) for part in template))


def pack_state(state: Any) -> str:
    """Encode a reduction's state as text.

    Parameters
    ----------
    state : nested NamedTuples of arrays

    Returns
    -------
    str
        Base64 of an ``.npz`` file, whose members carry checksums.
    """
    buffer = io.BytesIO()
    np.savez(buffer, *_arrays(state))
    return base64.b64encode(buffer.getvalue()).decode()


def unpack_state(reduction: Reduction, text: str) -> Any:
    """Decode a reduction's state from text.

    Parameters
    ----------
    reduction : Reduction
        That the state is of.
    text : str
        As `pack_state` wrote it.
    """
    template = reduction.init(1, 0)
    try:
        arrays = load_numpy(io.BytesIO(base64.b64decode(text, validate=True)))
        if len(arrays) != len(_arrays(template)):
            raise ValueError(f"{len(arrays)} arrays, expected {len(_arrays(template))}")
        return _fill(template, (arrays[f"arr_{i}"] for i in range(len(arrays))))
    except (ValueError, KeyError, EOFError, RuntimeError, BadZipFile) as error:  # RuntimeError: zipfile's, for encryption and unsupported features
        raise InvalidRun(f"a part's state of {reduction.name!r} is damaged: {' '.join(str(error).split())}") from error


def same_states(reduction: Reduction, first: str, second: str) -> bool:
    """Return whether two states are bit-identical.

    Parameters
    ----------
    reduction : Reduction
        That the states are of.
    first, second : str
        As `pack_state` wrote them.
    """
    if first == second:
        return True
    pairs = zip(*(_arrays(unpack_state(reduction, text)) for text in (first, second)), strict=True)
    return all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
