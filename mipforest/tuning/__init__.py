"""Tuning of hyperparameters by cross-validation: over a grid, or by the pruning curves of many trees."""

from mipforest.errors import ClusterError, FitError, NoTreeFound, TuningError, TuningInterrupted
from mipforest.tuning.cost_complexity import Curve
from mipforest.tuning.cross_validation import Records, cross_validate, executor_for
from mipforest.tuning.fit import Fit
from mipforest.tuning.plan import MAX_FITS, Grid, Plan, Rule, choose, parse_grid
from mipforest.tuning.run import BatchTuning, Tuning, tune, tune_batch

__all__ = [
    "MAX_FITS",
    "BatchTuning",
    "ClusterError",
    "Curve",
    "Fit",
    "FitError",
    "Grid",
    "NoTreeFound",
    "Plan",
    "Records",
    "Rule",
    "Tuning",
    "TuningError",
    "TuningInterrupted",
    "choose",
    "cross_validate",
    "executor_for",
    "parse_grid",
    "tune",
    "tune_batch",
]
