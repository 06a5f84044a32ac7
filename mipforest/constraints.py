"""Constraints that take more than one line, for the models of trees that can express them.

Every function takes a built :class:`~mipforest.problem.problem.Problem` and adds rows to ``problem.model``.
What they read comes from the formulation (:class:`~mipforest.problem.expressions.TreeExpressions`), so one
function serves every model that says, for example, which class a sample is predicted. A model that does not raises
:class:`~mipforest.problem.expressions.NotExpressed`.

Constraints on samples hold for the **training samples**; on new ones they hold as far as these are alike.

The name of a **column** of the table stands for all of its features: of its levels, of sets of them, and of both places
for its missing values. The name of a feature stands for it alone, but where features are counted or monotone: there it
stands for those that differ from it in missing values alone, too.

The same constraints as objects, which options and files make, are in :mod:`mipforest.problem.constraints`.
"""

from mipforest.problem.constraints.rows import (
    at_most_of,
    columns_used,
    demographic_parity,
    equal_opportunity,
    feature_budget,
    features_used,
    fix_split,
    forbid_features,
    forbid_label,
    limit_label,
    max_false_negatives,
    max_total,
    min_balanced_accuracy,
    min_f1,
    min_precision,
    min_recall,
    min_samples_leaf,
    min_weight_fraction_leaf,
    monotone,
    once_per_path,
    require_features,
)

__all__ = [
    "at_most_of",
    "columns_used",
    "demographic_parity",
    "equal_opportunity",
    "feature_budget",
    "features_used",
    "fix_split",
    "forbid_features",
    "forbid_label",
    "limit_label",
    "max_false_negatives",
    "max_total",
    "min_balanced_accuracy",
    "min_f1",
    "min_precision",
    "min_recall",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "monotone",
    "once_per_path",
    "require_features",
]
