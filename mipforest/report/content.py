"""What a report is about: a run, its tree, and its samples as far as they can be had."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mipforest.data import Encoding
from mipforest.meanings import renamed
from mipforest.report.markup import short
from mipforest.runs import LoadedData, Run, RunError, SavedCard, SavedTree, samples_of
from mipforest.runs.folder import TREES, TUNING
from mipforest.runs.text_files import JsonFileError, read_json_object
from mipforest.trees import NodeStatistics, Predictor, Tree, TreeSet
from mipforest.trees.reachable import ReachableNode, reachable_tree

#: Columns of ``tuning.csv`` that a page shows, after those of the hyperparameters, which come before ``chosen``.
#: A tuning by a grid has ``features_mean``, too.
SCORES = frozenset({"chosen", "validation_mean", "validation_std", "train_mean"})


@dataclass(frozen=True, eq=False)
class FittedTree:
    """A tree, its training samples by node, and the part of it that a sample can reach."""

    tree: Tree
    statistics: NodeStatistics
    root: ReachableNode

    @property
    def nodes(self) -> list[ReachableNode]:
        """All nodes, every node before those below it, left before right."""
        found, waiting = [], [self.root]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += reversed(node.children)
        return found


@dataclass(frozen=True, eq=False)
class Content:
    """What a page shows.

    Attributes
    ----------
    result
        The content of ``result.json``.
    fitted
        The tree; ``None`` if the run found none.
    samples
        Training and test samples, or ``None`` where they cannot be had.
    gaps
        What the page lacks, and why: one sentence each.
    encoding
        How the columns of a table become the tree's features; ``None`` if the run found no tree.
    settings
        The rows of ``tuning.csv``, text by column; empty if the run is of no tuning.
    card
        The score card, where the run found one instead of a tree.
    trees
        The trees near the optimum, where the run lists them.
    """

    result: Mapping[str, Any]
    fitted: FittedTree | None
    samples: LoadedData | None
    gaps: Sequence[str]
    encoding: Encoding | None = None
    settings: Sequence[Mapping[str, str]] = ()
    card: SavedCard | None = None
    trees: TreeSet | None = None


def content_of(run: Run, *, network: bool = False) -> Content:
    """Collect what a page shows; the samples are loaded again.

    Parameters
    ----------
    run
        The run.
    network
        Whether samples that are not here may be fetched from the network.

    Raises
    ------
    RunError
        If the numbers of samples in ``tree.json`` contradict each other.
    """
    if run.saved is None:
        return Content(run.result, None, None, [])
    fitted, card, found = None, None, run.saved.fitted
    features, classes = _names(found.features), _names(found.classes)
    levels = tuple(renamed(meaning, short) for meaning in found.levels)
    if isinstance(run.saved, SavedCard):
        shown = replace(run.saved.card, features=features, classes=classes, levels=levels)
        card = replace(run.saved, card=shown)
    elif isinstance(run.saved, SavedTree):
        statistics = run.saved.statistics
        _check_counts(run, statistics)
        tree = replace(run.saved.tree, features=features, classes=classes, levels=levels)
        fitted = FittedTree(tree, statistics, reachable_tree(tree))
    samples, reason = samples_of(run, network=network)
    gaps = []
    if samples is None:
        gaps = [
            f"The samples could not be loaded again: {reason}. What follows rests on what the run noted down; "
            + _without_samples(found, run.result)
        ]
    elif samples.test is not None and samples.test.sha256 != _test_sha256(run.result):
        samples = replace(samples, test=None)
        gaps = ["The test samples have changed since the run; nothing is drawn of them."]
    settings, absent = _settings(run)
    trees, missing = (None, []) if fitted is None else _trees(run, fitted.tree)
    gaps += absent + missing
    return Content(run.result, fitted, samples, gaps, run.saved.encoding, settings, card, trees)


def _trees(run: Run, like: Tree) -> tuple[TreeSet | None, list[str]]:
    """Read the trees near the optimum, or say why the page lacks them."""
    if not run.result.get("trees"):
        return None, []
    try:
        return TreeSet.from_dict(read_json_object(run.path / TREES), like), []
    except (OSError, JsonFileError, ValueError, TypeError, LookupError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        return None, [
            f"{TREES} could not be read ({short(str(reason))}); missing: the trees near the optimum."
        ]


def _settings(run: Run) -> tuple[list[dict[str, str]], list[str]]:
    """Read the settings that a tuning tried, or say why the page lacks them."""
    if not run.result.get("tuning"):
        return [], []
    try:
        with (run.path / TUNING).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, restval=""))
        if not rows or not rows[0].keys() >= SCORES:
            raise ValueError("it has not the rows and columns of a tuning")
        return rows, []
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or error
        return [], [f"{TUNING} could not be read ({reason}); missing: the settings that were tried."]


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Shorten names that are too long for a page; what differs between them stays."""
    return tuple(name if name == short(name) else f"{short(name)} ({j})" for j, name in enumerate(names))


def _without_samples(tree: Predictor, result: Mapping[str, Any]) -> str:
    lacking = []
    if not tree.is_classifier:
        lacking.append("predicted against true values")
    elif result.get("test_data"):
        lacking.append("the confusion matrix of the test samples")
    if tree.is_tree and tree.logistic:
        lacking.append("the confidence at each node")
    return f"missing: {' and '.join(lacking)}." if lacking else "nothing is missing for that."


def _test_sha256(result: Mapping[str, Any]) -> object:
    return (result.get("test_data") or {}).get("sha256")


def _check_counts(run: Run, statistics: NodeStatistics) -> None:
    """Refuse numbers of samples that no samples have; later divisions rely on them."""
    samples, counts = statistics.samples, statistics.class_counts
    left, right = samples[1::2], samples[2::2]  # of all branch nodes, in heap order
    wrong = (samples < 0).any() or (samples[: len(left)] != left + right).any()
    if counts is not None:
        wrong |= (counts < 0).any() or (counts.sum(axis=1) != samples).any()
    if wrong:
        raise RunError(f"{run.path}/tree.json was changed: its numbers of samples do not add up; solve again")
