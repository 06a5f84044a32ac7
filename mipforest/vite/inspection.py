"""Inspection of an ensemble: VITE's tables, their picture and their files."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from mipforest.data import Dataset
from mipforest.ensembles import ensemble_for
from mipforest.ensembles.target import DEFAULT_SEED
from mipforest.trees import Topology
from mipforest.vite.tables import EnsembleTables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Vite(EnsembleTables):
    """An ensemble as tables and as a picture. Made by :func:`vite`."""

    def plot(self, *, max_features: int = 6) -> Figure:
        """Draw everything on one page; see :func:`mipforest.vite.picture.plot_vite`."""
        from mipforest.vite.picture import plot_vite

        return plot_vite(self, max_features=max_features)

    def save(self, path: str | PathLike[str], *, max_features: int = 6) -> None:
        """Draw everything into a ``.svg``, ``.png`` or ``.pdf`` file, whole or not at all.

        Raises
        ------
        ValueError
            If the suffix is another one, or the tree has too many boxes.
        OSError
            If the file cannot be written.
        """
        from mipforest.trees import save_figure

        save_figure(self.plot(max_features=max_features), path)


def vite(target: Any, data: Dataset, depth: int, *, seed: int = DEFAULT_SEED) -> Vite:
    """Inspect a tree ensemble (Di Teodoro, Monaci and Palagi 2024, section 5).

    Parameters
    ----------
    target
        The ensemble: a name, a ``.joblib`` file, a fitted classifier; see
        :func:`mipforest.ensembles.ensemble_for`. Its trees may be deeper than ``depth``.
    data
        A data set of two classes.
    depth
        Number of levels to show, 1 to 10, and depth of trees that are fitted here.
    seed
        Seed of trees that are fitted here, if the target names none.

    Raises
    ------
    EnsembleError, OSError
        If the target cannot be used with these data.
    ValueError
        If the depth is out of range.
    """
    depth = Topology(depth).depth
    return Vite(ensemble_for(target, data, depth, seed=seed, deeper=True), data, depth)
