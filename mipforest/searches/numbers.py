"""Numbers that compiled loops can compute with: neither NaN nor infinite, nor so large that sums of products are.

Compiled loops compare numbers to choose where to write. No comparison with NaN holds, so with one of them nothing is
chosen, and memory that is not theirs would be written. Each search looks at its numbers once, before it begins.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from mipforest.arrays import FloatArray
from mipforest.errors import DataValueError
from mipforest.objectives.leaf_losses import PrescriptionLoss
from mipforest.problem.structure import TreeCharges

#: Largest number that is multiplied: the square of a sum of products of three of them is far below 1.8e308.
LARGEST = 1e50

#: Size of numbers that are compared only: any finite one.
ANY_SIZE = float(np.finfo(np.float64).max)

#: Largest number that is only added, such as the cost of a split.
LARGEST_ADDED = 1e300


def require(
    search: str, name: str, values: ArrayLike | None, *, least: float = -LARGEST, most: float = LARGEST
) -> None:
    """Refuse numbers that a search cannot compute with.

    Parameters
    ----------
    search, name
        Of the search, and of the numbers.
    values
        A number, or any array of them; ``None`` is not looked at.
    least, most
        Their range, both ends included.

    Raises
    ------
    DataValueError
        With the first number that is NaN or out of range, and where it stands.
    """
    if values is None or not np.size(values):
        return
    array = np.asarray(values)
    # Least and greatest are NaN where one number is, and NaN is in no range.
    if array.min() >= least and array.max() <= most:
        return
    at = np.argwhere(~((array >= least) & (array <= most)))[0]
    place = f"[{', '.join(map(str, at))}]" if len(at) else ""
    if math.isinf(least) and math.isinf(most):
        taken = "what is a number"
    else:
        taken = "finite numbers" if least == -ANY_SIZE else f"numbers from {least:g} to {most:g}"
    raise DataValueError(
        f"{search}: {name}{place} is {float(array[tuple(at)]):g}, and it can compute with {taken} only; find out where "
        "it comes from, the data or a parameter, and change it"
    )


def require_limits(
    search: str, *, best: float = math.inf, gap: float = 0.0, deadline: float = math.inf
) -> None:
    """Refuse a value of a known tree, a gap or a deadline that is no number; infinity is none at all.

    Parameters
    ----------
    search
        Its name.
    best
        Value of a tree that is known, infinite if none is.
    gap
        Relative gap, finite and at least 0.
    deadline
        On some clock, of any size.

    Raises
    ------
    DataValueError
        With the value.
    """
    require(search, "the value of a known tree", best, most=math.inf)
    require(search, "gap", gap, least=0.0)
    require(search, "deadline", deadline, least=-math.inf, most=math.inf)


def require_charges(search: str, charges: TreeCharges, X: FloatArray, *, products: bool = False) -> None:
    """Refuse charges, or samples, that a search cannot compute with.

    Parameters
    ----------
    search
        Its name.
    charges
        What trees are charged.
    X
        Features of the samples.
    products
        Whether features are multiplied; else they are compared only, and may be of any finite size.

    Raises
    ------
    DataValueError
        With the number, and where it stands.
    """
    size = LARGEST if products else ANY_SIZE
    require(search, "X", X, least=-size, most=size)
    require(search, "y", charges.y)
    require(search, "weight", charges.weight, least=0.0)
    for name, of in vars(charges.loss).items():  # costs, levels, weights of targets
        if not isinstance(of, str):
            require(search, name, of, least=0.0)
    require(search, "unit", charges.unit, least=1.0 / LARGEST_ADDED, most=LARGEST_ADDED)
    require(search, "offset", charges.offset, least=-LARGEST_ADDED, most=LARGEST_ADDED)
    require(search, "split_cost", charges.split_cost, least=0.0, most=LARGEST_ADDED)
    require(search, "coefficient_cost", charges.coefficient_cost, least=0.0, most=LARGEST_ADDED)
    require(search, "margin", charges.margin, least=0.0)
    if isinstance(charges.loss, PrescriptionLoss):
        require(search, "mu", charges.loss.mu, most=1.0)
