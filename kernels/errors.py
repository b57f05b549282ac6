"""Errors."""


class InvalidParameters(ValueError):
    """Parameters that do not fit the model or each other; the message says what was got and expected."""
