"""A split in words, in original units: ``age >= 52.5``, ``0.31 age - 1.2 chol >= 3.4``."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10

import numpy as np

from mipforest.trees.tree import Tree


@dataclass(frozen=True)
class SplitText:
    """The condition under which a sample goes right.

    Attributes
    ----------
    terms
        Signed terms, the most influential first: ``("0.31 age", "- 1.2 chol")``; a single feature name for a
        univariate split.
    n_hidden
        Number of further terms that are left out.
    relation
        ``">="`` or ``"<="``.
    threshold
        Right-hand side.
    """

    terms: tuple[str, ...]
    n_hidden: int
    relation: str
    threshold: str

    def __str__(self) -> str:
        more = [f"+ {self.n_hidden} more"] if self.n_hidden else []
        return " ".join([*self.terms, *more, self.relation, self.threshold])


def describe_split(tree: Tree, t: int, *, digits: int = 4, max_terms: int = 6) -> SplitText:
    """Describe the split of branch node t in original units.

    A univariate split is divided by its weight (``age >= 52.5``, or ``<=`` where the weight is negative). An
    oblique one keeps its scale: left minus right side is the score. Its terms are ordered by the size of
    their weight over scaled features, so the feature that moves the score most over its range comes first.

    Parameters
    ----------
    tree
        The tree.
    t
        A branch node that is not trivial.
    digits
        Significant digits; integer parts are written out in full.
    max_terms
        Most terms to show; at least 1.
    """
    weights, intercepts = tree.original_units()
    order = np.argsort(-np.abs(tree.w[t]), kind="stable")
    order = order[tree.w[t][order] != 0]
    names = tree.feature_names
    if len(order) == 1:
        j = int(order[0])
        relation = ">=" if tree.w[t, j] > 0 else "<="
        return SplitText((names[j],), 0, relation, format_number(-intercepts[t] / weights[t, j], digits))
    shown = order[:max_terms]
    terms = tuple(
        signed_term(weights[t, j], names[j], digits, first=position == 0) for position, j in enumerate(shown)
    )
    return SplitText(terms, len(order) - len(shown), ">=", format_number(-intercepts[t], digits))


def format_number(value: float, digits: int = 4) -> str:
    """Write a number with ``digits`` significant digits, no trailing zeros, and its integer part in full.

    Beyond ten million and below 0.0001 it is written as ``1.234e-5``.

    >>> format_number(52.5), format_number(12345.6), format_number(-0.000012345)
    ('52.5', '12346', '-1.234e-5')
    """
    if value == 0 or not np.isfinite(value):
        return f"{abs(value):g}" if value == 0 else f"{value:g}"
    magnitude = floor(log10(abs(value)))
    if not -4 <= magnitude < 7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return f"{_strip(mantissa)}e{int(exponent)}"
    return _strip(f"{value:.{max(digits - 1 - magnitude, 0)}f}")


def _strip(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number


def signed_term(weight: float, name: str, digits: int, *, first: bool = False) -> str:
    """Write a term of a sum: ``+ 0.31 age``, ``- age``; the first one as ``0.31 age``, ``-age``."""
    sign = "-" if weight < 0 else "" if first else "+"
    size = format_number(abs(weight), digits)
    product = name if size == "1" else f"{size} {name}"
    return f"{sign}{product}" if first else f"{sign} {product}"
