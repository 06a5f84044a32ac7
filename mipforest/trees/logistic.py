"""Logistic trees: two classes, told apart by the sign of a score that is the log-odds of the second one."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from mipforest.arrays import FloatArray, IntArray

#: A score of 0 or more predicts the second class; where rounding would make its probability 1/2, it gets
#: the next double, so that the larger probability is always that of the predicted class.
_ABOVE_HALF = float(np.nextafter(0.5, 1.0))


def check_logistic(classes: tuple[str, ...], leaf_value: IntArray | FloatArray) -> None:
    """Refuse a logistic tree whose leaves do not follow the sign of the scores.

    Parameters
    ----------
    classes
        Names of the classes.
    leaf_value
        (|L|,) class number of each leaf, left to right.

    Raises
    ------
    ValueError
        If there are not two classes, or a left leaf does not predict class 0, or a right one not class 1.
    """
    if len(classes) != 2:
        kind = f"the {len(classes)} classes {', '.join(classes)}" if classes else "no classes"
        raise ValueError(
            f"a logistic tree tells two classes apart, but this one has {kind}; leave logistic out"
        )
    wrong = leaf_value != np.arange(len(leaf_value)) % 2
    if wrong.any():
        position = int(np.argmax(wrong))
        side = "right" if position % 2 else "left"
        raise ValueError(
            f"in a logistic tree every left leaf predicts class 0 ({classes[0]}) and every right one class 1 "
            f"({classes[1]}), but leaf_value[{position}], a {side} leaf, is {int(leaf_value[position])}; turn "
            f"the signs of the weights and the intercept above it, or leave logistic out"
        )


def class_probabilities(log_odds: FloatArray) -> FloatArray:
    """(n, 2) probabilities of both classes, from (n,) log-odds of the second one.

    Each is computed by itself, so that a tiny probability is as exact as a large one; the two sum to 1 up to
    rounding. The larger one is that of the class that the sign predicts.
    """
    second = expit(log_odds)
    second = np.where(log_odds >= 0, np.maximum(second, _ABOVE_HALF), second)
    return np.column_stack([expit(-log_odds), second])
