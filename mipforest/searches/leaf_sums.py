"""What leaves lose by sums over their samples, in compiled loops: see :mod:`mipforest.objectives.leaf_losses`."""

from __future__ import annotations

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.objectives.leaf_losses import LabelLoss, LeafLoss
from mipforest.searches import kernel

#: Kinds of losses, by what is summed over the samples of a leaf. Two classes (where a search has them): the costs of
#: predicting each, as difference and sum; numbers: the statistics of the loss, by :func:`loss_of_sums` or
#: :func:`loss_of_vector` but for the absolute loss, which asks for an order.
TWO_CLASSES, SQUARED, ABSOLUTE, POISSON = range(4)

#: Kind of the loss of labels, plus the number of targets that have one: of each the costs of predicting its classes, as
#: many for every target.
LABELS = 1 << 20

#: The kind of one label.
CLASSES = LABELS + 1

#: The kinds of losses of numbers, by name.
KIND_OF = {"squared": SQUARED, "absolute": ABSOLUTE, "deviance": POISSON}


def kind_of_loss(loss: LeafLoss) -> int:
    """Return which loss compiled loops have of the statistics of a loss; a KeyError where they have none."""
    return LABELS + loss.n_labels if isinstance(loss, LabelLoss) else KIND_OF[loss.name]


#: As :data:`mipforest.objectives.leaf_losses.SMALL`; machine code is kept by the text of the searches alone.
SMALL = 1e-3


@kernel
def loss_of_sums(kind: int, w: float, s: float, q: float) -> float:
    """Return the loss of a leaf under its best prediction by the sums of three statistics; without samples 0.

    One number to predict is by far the most frequent case, and loops over statistics would slow it by a third:
    :func:`loss_of_vector` has several.
    """
    if w <= 0.0:
        return 0.0
    if kind == POISSON:  # as :func:`mipforest.objectives.leaf_losses.excess`
        d, lost = s / w, 1.0
        if abs(d) < SMALL:
            lost = d * d * (1 / 2 - d * (1 / 6 - d * (1 / 12 - d * (1 / 20 - d / 30))))
        elif d > -1.0:
            lost = (1.0 + d) * np.log1p(d) - d
        return float(max(0.0, q - w * lost))
    return float(max(0.0, q - s * s / w))


@kernel
def loss_of_vector(kind: int, total: FloatArray, less: FloatArray, share: float) -> float:
    """Return the loss of a leaf that predicts several targets by the sums of its statistics; without samples 0.

    Parameters
    ----------
    kind
        The squared loss, or :data:`LABELS` and the number of targets.
    total, less
        (V,) sums over some samples, and over those among them that are not in the leaf.
    share
        0 where all are in the leaf, else 1.
    """
    last, loss = len(total) - 1, 0.0
    if kind > LABELS:
        K = len(total) // (kind - LABELS)
        for first in range(0, len(total), K):
            least = np.inf
            for k in range(first, first + K):
                least = min(least, total[k] - share * less[k])
            loss += least
        return float(max(0.0, loss))
    w = total[0] - share * less[0]
    if w <= 0.0:
        return 0.0
    for v in range(1, last):
        s = total[v] - share * less[v]
        loss += s * s
    return float(max(0.0, total[last] - share * less[last] - loss / w))


@kernel
def may_skip(w: float, s: float, all_w: float, all_s: float, gain: float) -> bool:
    r"""Return whether a split cannot gain that much of the Poisson loss of a leaf, without a logarithm.

    As :math:`\ln x \le x - 1`, with :math:`\delta = S / W` both sides gain together at most
    :math:`(s_1^2 / w_1 + s_2^2 / w_2 - S^2 / W) / (1 + \delta)`.
    """
    other_w, other_s = all_w - w, all_s - s
    if w <= 0.0 or other_w <= 0.0:
        return False
    spread = s * s / w + other_s * other_s / other_w - all_s * all_s / all_w
    return bool(spread * all_w <= gain * (all_w + all_s))
