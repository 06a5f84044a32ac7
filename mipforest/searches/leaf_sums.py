"""What leaves lose by sums over their samples, in compiled loops: see :mod:`mipforest.objectives.leaf_losses`."""

from __future__ import annotations

import numpy as np

from mipforest.searches import kernel

#: Kinds of losses, by what is summed over the samples of a leaf. Two classes (where a search has them): the costs of
#: predicting each, as difference and sum; any number of classes: the cost of predicting each; numbers: the statistics
#: of the loss, three of each sample, by :func:`loss_of_sums` but for the absolute loss, which asks for an order.
TWO_CLASSES, CLASSES, SQUARED, ABSOLUTE, POISSON = range(5)

#: The kinds of losses of numbers, by name.
KIND_OF = {"squared": SQUARED, "absolute": ABSOLUTE, "deviance": POISSON}

#: As :data:`mipforest.objectives.leaf_losses.SMALL`; machine code is kept by the text of the searches alone.
SMALL = 1e-3


@kernel
def loss_of_sums(kind: int, w: float, s: float, q: float) -> float:
    """Return the loss of a leaf under its best prediction by the sums of three statistics; without samples 0."""
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
