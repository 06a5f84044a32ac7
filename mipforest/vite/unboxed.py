"""An ensemble unboxed: all of VITE's tables, and their pictures and files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from mipforest.data import Dataset
from mipforest.ensembles import Ensemble, ensemble_for, proximity
from mipforest.ensembles.target import DEFAULT_SEED
from mipforest.trees import Topology
from mipforest.vite import measures
from mipforest.vite.tables import write_tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Vite:
    """What there is to see of an ensemble. Made by :func:`vite`; tables are computed when first asked for.

    Attributes
    ----------
    ensemble
        The ensemble.
    data
        The samples it is shown on.
    depth
        Number of levels to show, D; deeper splits are left out.
    """

    ensemble: Ensemble
    data: Dataset
    depth: int

    @cached_property
    def levels(self) -> Any:
        """Share of each feature in the splits of each level; see :func:`.measures.level_percentages`."""
        return measures.level_percentages(self.ensemble, self.data, self.depth)

    @cached_property
    def nodes(self) -> Any:
        """Share of each feature in the splits of each node; see :func:`.measures.node_percentages`."""
        return measures.node_percentages(self.ensemble, self.data, self.depth)

    @cached_property
    def roles(self) -> Any:
        """Share of trees that split at each node, or end there; see :func:`.measures.node_roles`."""
        return measures.node_roles(self.ensemble, self.depth)

    @cached_property
    def thresholds(self) -> Any:
        """Range of split values by node and feature; see :func:`.measures.threshold_ranges`."""
        return measures.threshold_ranges(self.ensemble, self.data, self.depth)

    @cached_property
    def proximity(self) -> Any:
        """(n, n) share of trees in which two samples share a leaf; see :func:`mipforest.ensembles.proximity`."""
        samples = pd.Index(self.data.samples.labels, name="sample")
        return pd.DataFrame(proximity(self.ensemble, self.data.X_raw), index=samples, columns=samples)

    @cached_property
    def probabilities(self) -> Any:
        """Target, prediction and its probability by sample; see :func:`.measures.class_probabilities`."""
        return measures.class_probabilities(self.ensemble, self.data)

    @cached_property
    def classes(self) -> Any:
        """By predicted class: number of ``samples``, mean ``probability``, and share that is ``right``."""
        sure = self.probabilities.assign(right=self.probabilities.target == self.probabilities.predicted)
        by_class = sure.groupby("predicted").agg(
            samples=("probability", "size"), probability=("probability", "mean"), right=("right", "mean")
        )
        return by_class.reindex(list(self.data.classes)).fillna({"samples": 0}).astype({"samples": np.int64})

    @property
    def accuracy(self) -> float:
        """Share of the samples that the ensemble predicts as they are."""
        return float((self.probabilities.target == self.probabilities.predicted).mean())

    def tables(self) -> dict[str, Any]:
        """Give all tables by name."""
        names = ("levels", "nodes", "roles", "thresholds", "classes", "probabilities", "proximity")
        return {name: getattr(self, name) for name in names}

    def write_tables(self, folder: str | PathLike[str]) -> list[Path]:
        """Write all tables as ``.csv`` files into a folder; see :func:`mipforest.vite.tables.write_tables`."""
        return write_tables(self.tables(), Path(folder))

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
    """Look into a tree ensemble (Di Teodoro, Monaci and Palagi 2024, section 5).

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
