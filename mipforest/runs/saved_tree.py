"""``tree.json``: a tree with what it takes to predict from a table in original units."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import DataError, Encoding
from mipforest.data.columns import text
from mipforest.runs.data_source import LoadedData
from mipforest.trees import NodeStatistics, Tree, TreeFileError, from_dict, node_statistics, to_dict


@dataclass(frozen=True, eq=False)
class SavedTree:
    """A tree that takes tables as they are in files.

    Attributes
    ----------
    tree
        The tree, for features in original units.
    encoding
        How the columns of a table become its features.
    target
        Name of the target column.
    labels
        Class number by label; see :class:`~mipforest.runs.data_source.LoadedData`.
    statistics
        Training samples by node.
    """

    tree: Tree
    encoding: Encoding
    target: str
    labels: Mapping[str, int]
    statistics: NodeStatistics

    @classmethod
    def of(cls, tree: Tree, data: LoadedData) -> SavedTree:
        """Put a tree together with the data that it was fitted on."""
        train = data.train
        statistics = node_statistics(tree, train.X_raw, train.y)
        return cls(tree, train.encoding, train.target, data.labels, statistics)

    def predict(self, frame: Any) -> IntArray | FloatArray:
        """(n,) class numbers or values for the rows of a table.

        Raises
        ------
        DataError
            If a column is absent, or a value is missing or unknown.
        """
        return self.tree.predict(self.encoding.encode(frame))

    def targets(self, column: Any) -> IntArray | FloatArray:
        """(n,) class numbers or values that a target column states.

        Raises
        ------
        DataError
            If the column holds a label that the training data do not have.
        """
        if not self.tree.is_classifier:
            return np.asarray(column, dtype=np.float64)
        stated = [text(value) for value in column]
        unknown = [label for label in stated if label not in self.labels]
        if unknown:
            raise DataError(
                f"column {self.target!r} holds {unknown[0]!r}, which is no class of the training data "
                f"({', '.join(self.labels)}); correct the label or remove the column"
            )
        return np.array([self.labels[label] for label in stated], dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Give everything as JSON takes it; :func:`mipforest.trees.from_dict` reads the tree alone."""
        counts, mean = self.statistics.class_counts, self.statistics.mean
        return to_dict(self.tree) | {
            "target": self.target,
            "labels": dict(self.labels),
            "encoding": self.encoding.to_dict(),
            "training_samples": {
                "samples": self.statistics.samples.tolist(),
                "class_counts": None if counts is None else counts.tolist(),
                "mean": None
                if mean is None
                else [None if np.isnan(value) else value for value in mean.tolist()],
            },
        }


def load_saved_tree(path: Path) -> SavedTree:
    """Read a ``tree.json`` of a run.

    Raises
    ------
    TreeFileError
        If it is none.
    OSError
        If it cannot be read.
    """
    try:
        content = json.loads(path.read_bytes())
        tree = from_dict(content)
        return SavedTree(
            tree,
            Encoding.from_dict(content["encoding"]),
            content["target"],
            content["labels"],
            _statistics(content),
        )
    except KeyError as absent:
        raise TreeFileError(
            f"{path}: the entry {absent} is absent: a tree without the encoding of its data; "
            "use the tree.json of a run"
        ) from None
    except (TreeFileError, DataError) as error:
        raise TreeFileError(f"{path}: {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise TreeFileError(f"{path}: not a tree of a run: {error}") from error


def _statistics(content: Mapping[str, Any]) -> NodeStatistics:
    entries = content["training_samples"]
    counts, mean = entries["class_counts"], entries["mean"]
    return NodeStatistics(
        np.array(entries["samples"], dtype=np.int64),
        None if counts is None else np.array(counts, dtype=np.int64),
        None if mean is None else np.array(mean, dtype=np.float64),
    )
