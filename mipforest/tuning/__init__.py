"""Tuning of hyperparameters by cross-validation: over a grid, or by the pruning curves of many trees."""

from mipforest.errors import ClusterError, FitError, NoTreeFound, TuningError, TuningInterrupted
from mipforest.tuning.batch import BatchTuning, tune_batch
from mipforest.tuning.cost_complexity import Curve
from mipforest.tuning.cross_validation import Records, cross_validate
from mipforest.tuning.fit import Fit
from mipforest.tuning.plan import MAX_FITS, Grid, Plan, parse_grid
from mipforest.tuning.run import Tuning, executor_for, tune
from mipforest.tuning.selection import Rule, choose

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
