"""The error of a run folder that cannot be read or written."""


class RunError(Exception):
    """A run folder that is none, is in the way, or cannot be written; the message says what to do."""
