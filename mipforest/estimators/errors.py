"""What can go wrong, or be worth a word, when an estimator is fitted."""


class NoTreeFound(RuntimeError):
    """The solver ended without a tree: the message says why, and what to do."""


class FitWarning(UserWarning):
    """Something that the user should know about a fit: a start that was repaired, a bound that is limited."""


class UnverifiedTreeWarning(FitWarning):
    """The tree's objective by the definition is not what the solver states, or a constraint is violated."""
