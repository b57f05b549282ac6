"""The exception for invalid parameters of kernels."""


class InvalidParameters(ValueError):
    """Parameters that do not fit the model or each other; the message says what was got and expected."""
