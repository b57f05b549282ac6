"""Exceptions of kernels."""


class InvalidParameters(ValueError):
    """Parameters that do not fit the model or each other; the message says what was got and expected."""


class NoRoom(MemoryError):
    """A card's memory is too small; the message says how much is free and how much is needed."""
