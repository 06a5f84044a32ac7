"""What can go wrong between a model and a solver; every message says what happened, why, and what to do."""


class SolverError(Exception):
    """Base class of the errors of this package."""


class Unsupported(SolverError):
    """The solver never takes such a model or option."""


class NotAllowed(SolverError):
    """The call makes sense, but not in this state (a start of the wrong length, a limit below zero)."""


class SolverUnavailable(SolverError):
    """The solver is unknown or not installed."""


class LicenseLimit(SolverError):
    """The model is beyond what the solver's licence allows."""
