"""Text and pictures of a fitted estimator's tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from mipforest.arrays import FloatArray
from mipforest.trees import Tree, node_statistics, to_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class TreePictures(ABC):
    """What shows the tree of an estimator."""

    tree_: Tree

    @abstractmethod
    def _features(self, X: Any) -> FloatArray:
        """(n, p') encoded features in original units."""

    def _numbers(self, y: Any) -> Any:
        """Turn targets into what trees count: class numbers, or values."""
        return y

    def to_text(self, X: Any = None, y: npt.ArrayLike | None = None, *, max_terms: int = 6) -> str:
        """Write the tree as text, with the samples at each node if some are given.

        Parameters
        ----------
        X, y
            (n, p) samples and (n,) targets to count at the nodes, or ``None``.
        max_terms
            Most terms of a split or a linear leaf to show.
        """
        check_is_fitted(self, "tree_")
        counts = None
        if X is not None:
            counts = node_statistics(self.tree_, self._features(X), None if y is None else self._numbers(y))
        return to_text(self.tree_, counts, max_terms=max_terms)

    def plot(
        self, X: Any = None, y: npt.ArrayLike | None = None, ax: Axes | None = None, *, max_terms: int = 3
    ) -> Figure:
        """Draw the tree; ``figure.savefig(...)`` writes it.

        Parameters
        ----------
        X, y
            (n, p) samples and (n,) targets to count at the nodes, or ``None``.
        ax
            Axes to draw into; ``None`` makes a figure.
        max_terms
            Most terms of a split or a linear leaf to show.

        Raises
        ------
        ValueError
            If X or y do not fit the tree, or y comes without X.
        """
        from mipforest.trees import plot_tree

        check_is_fitted(self, "tree_")
        X_raw = None if X is None else self._features(X)
        return plot_tree(self.tree_, X_raw, None if y is None else self._numbers(y), ax, max_terms=max_terms)
