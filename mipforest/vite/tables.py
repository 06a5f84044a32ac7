"""The tables behind VITE's picture, and their ``.csv`` files.

Source: Di Teodoro, Monaci and Palagi, *Unboxing tree ensembles for interpretability* (2024), section 5. All shares
are percentages; a tree counts with its weight, which is 1 in forests.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mipforest.arrays import FloatArray
from mipforest.atomic import atomic_write
from mipforest.data import Dataset
from mipforest.ensembles import Ensemble, node_uses, proximity
from mipforest.trees import Topology

#: Digits of the numbers in files.
NUMBERS = "%.10g"

#: What a tree may do at a node of the complete tree.
ROLES = ("split", "leaf", "absent")


@dataclass(frozen=True, eq=False)
class EnsembleTables:
    """VITE's tables of an ensemble, each computed when it is first asked for.

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
        """Share of each feature in the splits of each level; see :func:`level_percentages`."""
        return level_percentages(self.ensemble, self.data, self.depth)

    @cached_property
    def nodes(self) -> Any:
        """Share of each feature in the splits of each node; see :func:`node_percentages`."""
        return node_percentages(self.ensemble, self.data, self.depth)

    @cached_property
    def roles(self) -> Any:
        """Share of trees that split at each node, or end there; see :func:`node_roles`."""
        return node_roles(self.ensemble, self.depth)

    @cached_property
    def thresholds(self) -> Any:
        """Range of split values by node and feature; see :func:`threshold_ranges`."""
        return threshold_ranges(self.ensemble, self.data, self.depth)

    @cached_property
    def proximity(self) -> Any:
        """(n, n) share of trees in which two samples share a leaf; see :func:`mipforest.ensembles.proximity`."""
        samples = pd.Index(self.data.samples.labels, name="sample")
        return pd.DataFrame(proximity(self.ensemble, self.data.X_raw), index=samples, columns=samples)

    @cached_property
    def probabilities(self) -> Any:
        """Target, prediction and its probability by sample; see :func:`class_probabilities`."""
        return class_probabilities(self.ensemble, self.data)

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
        """Share of the samples that the ensemble predicts correctly."""
        return float((self.probabilities.target == self.probabilities.predicted).mean())

    def tables(self) -> dict[str, Any]:
        """Return all tables by name."""
        names = ("levels", "nodes", "roles", "thresholds", "classes", "probabilities", "proximity")
        return {name: getattr(self, name) for name in names}

    def write_tables(self, folder: str | PathLike[str]) -> list[Path]:
        """Write each table to ``NAME.csv`` in a folder, created if absent; existing files are replaced.

        Each file appears whole or not at all.

        Raises
        ------
        OSError
            If the folder cannot be created, or a file cannot be written.
        """
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        paths = []
        for name, table in self.tables().items():
            path = folder / f"{name}.csv"
            with atomic_write(path, "w") as file:
                table.to_csv(file, index=table.index.name is not None, float_format=NUMBERS)
            paths.append(path)
        return paths


def level_percentages(ensemble: Ensemble, data: Dataset, depth: int) -> Any:
    """Return the share of a level's splits that each feature has (definition 5.1).

    Parameters
    ----------
    ensemble
        The ensemble.
    data
        Names of the p features.
    depth
        Number of levels, 1 to 10.

    Returns
    -------
    pandas.DataFrame
        One row per feature, one column per level. A column sums to 100, or to 0 where no tree splits.
    """
    uses = np.zeros((depth, data.p))
    np.add.at(uses, Topology(depth).levels, node_uses(ensemble, depth))
    columns = pd.Index(range(depth), name="level")
    return pd.DataFrame(_percentages(uses).T, index=_feature_index(data), columns=columns)


def node_percentages(ensemble: Ensemble, data: Dataset, depth: int) -> Any:
    """Return the share of a node's splits that each feature has (definition 5.2).

    Parameters
    ----------
    ensemble, data, depth
        As for :func:`level_percentages`.

    Returns
    -------
    pandas.DataFrame
        One row per feature, one column per branch node of the complete tree, in heap order. A column sums to
        100, or to 0 where no tree splits.
    """
    uses = node_uses(ensemble, depth)
    columns = pd.Index(range(len(uses)), name="node")
    return pd.DataFrame(_percentages(uses).T, index=_feature_index(data), columns=columns)


def node_roles(ensemble: Ensemble, depth: int) -> Any:
    """Return the share of the trees that split at each node, that end there, and that ended above it.

    Parameters
    ----------
    ensemble, depth
        As for :func:`level_percentages`.

    Returns
    -------
    pandas.DataFrame
        One row per branch node of the complete tree, in heap order; columns ``split``, ``leaf`` and
        ``absent``, which sum to 100.
    """
    branches = np.arange(Topology(depth).n_branches)
    weight = np.zeros((len(branches), len(ROLES)))
    for member in ensemble.members:
        role = np.full(len(branches), ROLES.index("absent"))
        position = member.heap_positions(depth - 1)
        nodes = np.flatnonzero(position >= 0)
        is_leaf = member.left[nodes] < 0
        role[position[nodes]] = np.where(is_leaf, ROLES.index("leaf"), ROLES.index("split"))
        weight[branches, role] += member.weight
    return pd.DataFrame(_percentages(weight), columns=list(ROLES), index=pd.Index(branches, name="node"))


def threshold_ranges(ensemble: Ensemble, data: Dataset, depth: int) -> Any:
    """Return the least and greatest split value of each feature at each node, in original units.

    Parameters
    ----------
    ensemble, data, depth
        As for :func:`level_percentages`.

    Returns
    -------
    pandas.DataFrame
        One row per node and feature that some tree splits on there: columns ``node``, ``feature`` (name),
        ``percent`` (node frequency), ``splits`` (number of trees), ``lower`` and ``upper``; the most frequent
        feature of a node first.
    """
    splits = pd.concat([_splits(member, depth) for member in ensemble.members], ignore_index=True)
    by_feature = splits.groupby(["node", "feature"], sort=True)["threshold"]
    ranges = by_feature.agg(splits="size", lower="min", upper="max").reset_index()
    percent = _percentages(node_uses(ensemble, depth))[ranges["node"], ranges["feature"]]
    ranges.insert(2, "percent", percent)
    ranges = ranges.sort_values(["node", "percent", "feature"], ascending=[True, False, True], kind="stable")
    names = np.array(data.features.labels, dtype=object)
    return ranges.assign(feature=names[ranges["feature"]]).reset_index(drop=True)


def class_probabilities(ensemble: Ensemble, data: Dataset) -> Any:
    """Return what the ensemble predicts for each sample.

    Returns
    -------
    pandas.DataFrame
        One row per sample: columns ``target`` and ``predicted`` (class names) and ``probability``, the
        ensemble's of the class that it predicts.
    """
    names = np.array(data.classes, dtype=object)
    return pd.DataFrame(
        {
            "target": names[data.y.astype(np.int64)],
            "predicted": names[ensemble.predict(data.X_raw)],
            "probability": ensemble.probability(data.X_raw),
        },
        index=pd.Index(data.samples.labels, name="sample"),
    )


def _splits(member: Any, depth: int) -> Any:
    """Return node, feature and threshold of every split of a tree above a depth."""
    position = member.heap_positions(depth - 1)
    nodes = np.flatnonzero((position >= 0) & (member.left >= 0))
    return pd.DataFrame(
        {"node": position[nodes], "feature": member.feature[nodes], "threshold": member.threshold[nodes]}
    )


def _percentages(uses: FloatArray) -> FloatArray:
    """Rescale rows to sum to 100; rows of zeros stay."""
    total = uses.sum(axis=1, keepdims=True)
    shares: FloatArray = np.divide(100 * uses, total, out=np.zeros_like(uses), where=total > 0)
    return shares


def _feature_index(data: Dataset) -> Any:
    return pd.Index(data.features.labels, name="feature")
