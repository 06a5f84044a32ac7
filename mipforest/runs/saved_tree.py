"""``tree.json``: a tree with what it takes to predict from a table in original units."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import DataError, Encoding
from mipforest.data.columns import numbers, text
from mipforest.runs.data_source import LoadedData
from mipforest.trees import NodeStatistics, Tree, TreeFileError, from_dict, node_statistics, to_dict

#: Statistics of a regression tree: one number per node, absent where no sample passes.
_VALUES = ("mean", "r2", "mse", "mae")


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
            If the column holds a label that the training data do not have, or no number for a regression.
        """
        if not self.tree.is_classifier:
            return numbers(pd.Series(column, name=self.target))
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
        counts = self.statistics.class_counts
        return to_dict(self.tree) | {
            "target": self.target,
            "labels": dict(self.labels),
            "encoding": self.encoding.to_dict(),
            "training_samples": {
                "samples": self.statistics.samples.tolist(),
                "class_counts": None if counts is None else counts.tolist(),
                **{name: _with_gaps(getattr(self.statistics, name)) for name in _VALUES},
            },
        }


def _with_gaps(values: FloatArray | None) -> list[float | None] | None:
    """Give values as JSON takes them, ``None`` in place of NaN."""
    return None if values is None else [None if np.isnan(value) else value for value in values.tolist()]


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
    counts = entries["class_counts"]
    # Trees of older versions have the mean alone.
    values = {name: entries["mean"] if name == "mean" else entries.get(name) for name in _VALUES}
    return NodeStatistics(
        np.array(entries["samples"], dtype=np.int64),
        None if counts is None else np.array(counts, dtype=np.int64),
        **{
            name: None if value is None else np.array(value, dtype=np.float64)
            for name, value in values.items()
        },
    )
