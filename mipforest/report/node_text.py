"""All about one node: its samples, its split in full, what it predicts."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.formatting import number, percent
from mipforest.report.content import FittedTree
from mipforest.report.markup import Part, description_list, element, short, table
from mipforest.trees.reachable import ReachableNode
from mipforest.trees.text import SplitText, describe_split, format_number, leaf_text

#: Most rows of weights on a page, all nodes together, and on the page of a deep tree, of one node.
MOST_WEIGHTS = 20_000
FEWEST_WEIGHTS = 12

#: Significant digits of weights and thresholds.
DIGITS = 6

#: Most classes that a node lists, those of most samples first.
MOST_CLASSES = 40


@dataclass(frozen=True, eq=False)
class NodeTexts:
    """Writes nodes.

    Attributes
    ----------
    fitted
        The tree.
    confidence
        (n_nodes,) mean confidence at each node of a logistic tree, or ``None``.
    """

    fitted: FittedTree
    confidence: FloatArray | None

    def headline(self, node: ReachableNode) -> str:
        """Return one line on a node: its split, or what it predicts."""
        tree = self.fitted.tree
        if node.children:
            return self._split(node.number, digits=4, max_terms=3)
        return (
            f"{'prescribes' if tree.prescribes else 'predicts'} {leaf_text(tree, node.number, max_terms=3)}"
        )

    def samples(self, node: ReachableNode) -> str:
        """Return the number of samples, their classes or their mean."""
        statistics, t = self.fitted.statistics, node.number
        n = int(statistics.samples[t])
        told = f"{n} sample{'' if n == 1 else 's'}"
        if n and statistics.class_counts is not None:
            present = [f"{short(self._class(k))} {statistics.class_counts[t, k]}" for k in self._classes(t)]
            return f"{told}: {', '.join(present)}"
        if n and statistics.mean is not None:
            return f"{told}, mean {number(float(statistics.mean[t]))}"
        return told

    def everything(self, node: ReachableNode) -> Element:
        """Return everything known of a node."""
        parts: list[Part] = [description_list(self._descriptions(node))]
        if self.fitted.statistics.class_counts is not None and self.fitted.statistics.samples[node.number]:
            parts.append(self._class_table(node.number))
        parts += self._weights(node)
        return element("div", *parts, id=f"all-{node.number}", class_="all")

    def _descriptions(self, node: ReachableNode) -> list[tuple[str, Part]]:
        t = node.number
        found: list[tuple[str, Part]] = [("Node", f"n{t}, {'split' if node.children else 'leaf'}")]
        found += [("Before it", f"n{above} has no split: all pass") for above in node.passed]
        if node.children:
            full = self._split(t, digits=DIGITS, max_terms=self._most_weights)
            found.append(("Goes right (yes) where", element("code", full)))
        else:
            found.append(
                ("Prescribes" if self.fitted.tree.prescribes else "Predicts", self._prediction(node))
            )
        n, whole = int(self.fitted.statistics.samples[t]), int(self.fitted.statistics.samples[0])
        found.append(("Training samples", f"{n} ({percent(n / whole)} of all)" if whole else "0"))
        return [*found, *self._target_descriptions(t), *self._confidence_descriptions(node)]

    def _split(self, t: int, *, digits: int, max_terms: int) -> str:
        """Return a split, its terms in the order of the picture: by influence, where it is known."""
        known = self.fitted.statistics.influence
        influence = known[t] if known is not None and known[t].any() else None
        tree = self.fitted.tree
        return _condition(describe_split(tree, t, digits=digits, max_terms=max_terms, influence=influence))

    def _prediction(self, node: ReachableNode) -> Part:
        text = leaf_text(self.fitted.tree, node.number, max_terms=self._most_weights)
        return element("code" if self.fitted.tree.has_linear_leaves else "strong", text)

    def _target_descriptions(self, t: int) -> list[tuple[str, Part]]:
        """Return mean and errors of a regression."""
        statistics = self.fitted.statistics
        named = (
            ("Mean target", statistics.mean),
            ("MSE", statistics.mse),
            ("MAE", statistics.mae),
            ("R²", statistics.r2),
        )
        return [(name, number(float(values[t]))) for name, values in named if values is not None]

    def _confidence_descriptions(self, node: ReachableNode) -> list[tuple[str, Part]]:
        if self.confidence is None:
            return []
        name = "Mean confidence" if node.children else "Mean probability of that class"
        return [(name, percent(float(self.confidence[node.number])))]

    def _class_table(self, t: int) -> Element:
        counts = self.fitted.statistics.class_counts
        assert counts is not None
        rows: list[list[Part]] = [
            [self._class(k), str(counts[t, k]), percent(float(counts[t, k] / counts[t].sum()))]
            for k in self._classes(t)
        ]
        kind = ("Treatment", "Treatments") if self.fitted.tree.prescribes else ("Class", "Classes")
        return table([kind[0], "Samples", "Share"], rows, f"{kind[1]} of the training samples at n{t}")

    def _weights(self, node: ReachableNode) -> list[Part]:
        """Return the table of weights or coefficients; no table if the line above says it all."""
        tree, statistics = self.fitted.tree, self.fitted.statistics
        if node.children:
            t = node.number
            influence = None if statistics.influence is None else statistics.influence[t]
            if influence is None and np.count_nonzero(tree.w[t]) < 2:
                return []
            return self._table(
                f"Weights of the split n{t}", tree.w[t], tree.original_units()[0][t], influence
            )
        if tree.leaf_w is None:
            return []
        leaf = node.number - tree.topology.n_branches
        original = tree.leaves_in_original_units()[0][leaf]
        return self._table(f"Coefficients of the leaf n{node.number}", tree.leaf_w[leaf], original)

    def _table(
        self, caption: str, scaled: FloatArray, original: FloatArray, influence: FloatArray | None = None
    ) -> list[Part]:
        """Return a table of (p,) weights, the largest of scaled features first."""
        columns = [original, scaled, *([] if influence is None else [influence])]
        head: list[Part] = [
            "Feature",
            "Weight in original units",
            "Weight of the scaled feature",
            "Influence",
        ]
        order = np.argsort(-np.abs(scaled), kind="stable")[: np.count_nonzero(scaled)]
        rows: list[list[Part]] = [
            [
                self.fitted.tree.feature_names[j],
                *(format_number(float(column[j]), DIGITS) for column in columns),
            ]
            for j in order[: self._most_weights]
        ]
        hidden = len(order) - len(rows)
        rest = [element("p", f"{hidden} smaller ones are left out.", class_="faint")] if hidden else []
        return [table(head[: len(columns) + 1], rows, caption), *rest]

    @property
    def _most_weights(self) -> int:
        return max(FEWEST_WEIGHTS, MOST_WEIGHTS // len(self.fitted.statistics.samples))

    def _classes(self, t: int) -> list[int]:
        """Return the numbers of the classes at a node; if there are very many, of the most frequent ones."""
        counts = self.fitted.statistics.class_counts
        assert counts is not None
        present = np.flatnonzero(counts[t])
        if len(present) > MOST_CLASSES:
            present = present[np.argsort(-counts[t][present], kind="stable")[:MOST_CLASSES]]
        return [int(k) for k in present]

    def _class(self, k: int) -> str:
        return self.fitted.tree.classes[k]


def _condition(split: SplitText) -> str:
    hidden = [f"+ {split.n_hidden} more"] if split.n_hidden else []
    relation = {">=": "≥", "<=": "≤"}.get(split.relation, split.relation)
    return " ".join([*split.terms, *hidden, relation, split.threshold])
