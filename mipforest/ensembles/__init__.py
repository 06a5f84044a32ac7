"""Tree ensembles for two classes as targets: random forests, extra trees, gradient boosting, XGBoost.

Whatever library grew an ensemble, :func:`ensemble_for` gives it as an :class:`Ensemble`: its trees in original
units, the leaf of every sample, the predicted class and its probability.
"""

from mipforest.ensembles.ensemble import (
    CloseSamples,
    Ensemble,
    MemberTree,
    close_samples,
    level_frequencies,
    node_uses,
    proximity,
)
from mipforest.ensembles.target import describe_target, ensemble_for, fitted_target, names_no_file
from mipforest.errors import EnsembleError

__all__ = [
    "CloseSamples",
    "Ensemble",
    "EnsembleError",
    "MemberTree",
    "close_samples",
    "describe_target",
    "ensemble_for",
    "fitted_target",
    "level_frequencies",
    "names_no_file",
    "node_uses",
    "proximity",
]
