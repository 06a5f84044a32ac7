"""The error that every problem with an ensemble raises."""


class EnsembleError(ValueError):
    """An ensemble that cannot be used: the message says what it is, why, and what to do."""
