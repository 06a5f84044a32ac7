"""Trees in words: splits such as ``0.31 age - 1.2 chol >= 3.4``, predictions, and whole trees, indented."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor, log10

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.meanings import MISSING_LEFT, Condition, LevelSet, MissingEnd
from mipforest.trees.node_statistics import NodeStatistics
from mipforest.trees.reachable import ReachableNode, reachable_tree
from mipforest.trees.tree import Tree

#: Digits that tell all doubles apart.
MOST_DIGITS = 17


def to_text(
    tree: Tree,
    counts: NodeStatistics | None = None,
    *,
    max_terms: int = 6,
    root: ReachableNode | None = None,
) -> str:
    """Write a tree as text, one line per node, splits and linear leaves in original units.

    ``yes`` is the right branch (score >= 0), ``no`` the left one. Trivial nodes (no weight) and the branches that no
    sample can enter are left out. Numbers have four
    significant digits, so read routes off :meth:`Tree.apply`, not off the text. Below a split of several
    features stands how much each of them moves its score over the samples that pass it, if known (see
    :func:`~mipforest.trees.node_statistics.feature_influence`).

    Parameters
    ----------
    tree
        The tree.
    counts
        Samples per node, from :func:`node_statistics`, to be written behind each node.
    max_terms
        Most terms of an oblique split, its influences or a linear leaf to show; the rest is counted,
        ``+ 12 more``.
    root
        The part to write, from :func:`~mipforest.trees.reachable.shown_tree`: a last line names the splits that it
        leaves out. ``None`` for all that a sample can reach.

    Examples
    --------
    >>> tree = Tree(1, [[1.0]], [-2.5], [0, 1], classes=("low", "high"), features=("age",))
    >>> print(to_text(tree))
    n0: age >= 2.5
      no:  n1: low
      yes: n2: high
    """
    lines: list[str] = []
    root = reachable_tree(tree) if root is None else root
    _write(tree, root, "", "", counts, max_terms, lines)
    hidden = [f"n{t}" for t in splits_left_out(tree, root)]
    if hidden:
        lines.append(f"not shown: {', '.join(hidden)}, where all samples go one way")
    return "\n".join(lines)


def splits_left_out(tree: Tree, root: ReachableNode) -> list[int]:
    """Return the numbers of the splits that are left out above the nodes that are shown."""
    below = [t for child in root.children for t in splits_left_out(tree, child)]
    return sorted([t for t in root.passed if not tree.is_trivial(t)] + below)


def path_to_text(tree: Tree, x: FloatArray, *, max_terms: int = 6) -> str:
    """Write the path of one sample through a tree, as :func:`to_text` does, nodes without a split left out.

    Parameters
    ----------
    tree
        The tree.
    x
        (1, p) the sample, in original units.
    max_terms
        As for :func:`to_text`.

    Examples
    --------
    >>> tree = Tree(1, [[1.0]], [-2.5], [0, 1], classes=("low", "high"), features=("age",))
    >>> print(path_to_text(tree, np.array([[3.0]])))
    n0: age >= 2.5
      yes: n2: high
    """
    goes_right = tree.scores(x)[0] >= 0
    lines: list[str] = []
    indent, answer = "", ""
    for node in np.flatnonzero(tree.decision_path(x)[0]).tolist():
        if node >= tree.topology.n_branches:
            lines.append(f"{indent}{answer}n{node}: {leaf_text(tree, node, max_terms)}")
        elif not tree.is_trivial(node):
            lines.append(f"{indent}{answer}n{node}: {describe_split(tree, node, max_terms=max_terms)}")
            indent, answer = indent + "  ", "yes: " if goes_right[node] else "no:  "
    return "\n".join(lines)


def explanations(tree: Tree, X: FloatArray, *, max_terms: int = 6) -> list[str]:
    """Write the path of each sample on one line: the conditions that hold, then the prediction of the leaf.

    Behind the condition of a split of one feature stands the value of the sample. Nodes without a split are left out.

    Parameters
    ----------
    tree
        A tree whose samples reach one leaf each; of a randomised one, the path along the likelier sides.
    X
        (n, p) samples, in original units.
    max_terms
        As for :func:`to_text`.

    Examples
    --------
    >>> tree = Tree(1, [[1.0]], [-52.5], [0, 1], classes=("low", "high"), features=("age",))
    >>> explanations(tree, np.array([[60.0], [31.0]]))
    ['age >= 52.5 (60): high', 'age < 52.5 (31): low']
    """
    X = np.asarray(X, dtype=np.float64)
    splits = {
        t: describe_split(tree, t, max_terms=max_terms) for t in np.flatnonzero(tree.w.any(axis=1)).tolist()
    }
    leaves = {t: leaf_text(tree, t, max_terms) for t in set(tree.apply(X).tolist())}
    passed = tree.decision_path(X)
    found = []
    for x, nodes in zip(X, passed, strict=True):
        *above, leaf = np.flatnonzero(nodes).tolist()
        conditions = []
        for t, below in zip(above, [*above[1:], leaf], strict=True):
            if t in splits:
                says = splits[t].without_note if below == tree.topology.right(t) else splits[t].negated()
                used = np.flatnonzero(tree.w[t])
                value = _value_text(tree, used, float(x[used[0]])) if says.compares else ""
                conditions.append(f"{says} ({value})" if value else str(says))
        found.append(f"{', '.join(conditions)}: {leaves[leaf]}" if conditions else leaves[leaf])
    return found


def _value_text(tree: Tree, used: IntArray, value: float) -> str:
    """Return the value of the only feature of a split as a path shows it; empty where there are several features."""
    if len(used) > 1:
        return ""
    meaning = tree.levels[used[0]] if tree.levels else None
    missing = isinstance(meaning, MissingEnd) and meaning.is_missing(value)
    return "missing" if missing else format_number(value)


def _write(
    tree: Tree,
    node: ReachableNode,
    indent: str,
    answer: str,
    counts: NodeStatistics | None,
    max_terms: int,
    lines: list[str],
) -> None:
    content = (
        str(describe_split(tree, node.number, max_terms=max_terms))
        if node.children
        else leaf_text(tree, node.number, max_terms)
    )
    lines.append(f"{indent}{answer}n{node.number}: {content}{samples_text(tree, node.number, counts)}")
    if node.children:
        lines += _influences(tree, node.number, indent, counts, max_terms)
    for child, reply in zip(node.children, ("no:  ", "yes: "), strict=False):
        _write(tree, child, indent + "  ", reply, counts, max_terms, lines)


def _influences(tree: Tree, t: int, indent: str, counts: NodeStatistics | None, max_terms: int) -> list[str]:
    """Return the line of influences of a split of several features; no line if they are unknown."""
    if counts is None or counts.influence is None or np.count_nonzero(tree.w[t]) < 2:
        return []
    terms, n_hidden = strongest(tree, counts.influence[t], max_terms)
    parts = [f"{name} {value}" for name, value in terms] + ([f"{n_hidden} more"] if n_hidden else [])
    return [f"{indent}    influence: {', '.join(parts)}"] if parts else []


def samples_text(tree: Tree, node: int, counts: NodeStatistics | None) -> str:
    """Return the number of samples at a node in brackets: by class, absent ones omitted, or with their mean."""
    if counts is None:
        return ""
    samples = int(counts.samples[node])
    if samples == 0:
        return "  [no samples]"
    if counts.class_counts is not None:
        # A class that is a number would run into its count: "3: 10".
        colon = ":" if any(name[-1:].isdigit() for name in tree.classes) else ""
        present = zip(tree.classes, counts.class_counts[node], strict=True)
        return f"  [{', '.join(f'{name}{colon} {count}' for name, count in present if count)}]"
    if counts.mean is not None:
        return f"  [{samples}, mean {format_number(float(counts.mean[node]))}]"
    return f"  [{samples}]"


_OPPOSITE = {">=": "<", "<=": ">", "<": ">=", ">": "<="}


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
        ``">="`` or ``"<="``, negated ``"<"`` or ``">"``; ``"is"``, ``"is not"``, ``"in"`` or ``"not in"`` of a feature
        that tells levels of a column, or missing values.
    threshold
        Right-hand side: a number, or these levels, and whether missing values are among them.
    otherwise
        The condition under which a sample goes left, where it is not the opposite comparison.
    """

    terms: tuple[str, ...]
    n_hidden: int
    relation: str
    threshold: str
    otherwise: Condition | None = None

    @property
    def compares(self) -> bool:
        """Whether numbers are compared."""
        return self.relation[0] in "<>"

    def __str__(self) -> str:
        more = [f"+ {self.n_hidden} more"] if self.n_hidden else []
        return " ".join([*self.terms, *more, self.relation, self.threshold])

    @property
    def without_note(self) -> SplitText:
        """The same for a sample that goes right: where others that lack the value go is of no interest."""
        return replace(self, threshold=self.threshold.removesuffix(MISSING_LEFT))

    def negated(self) -> SplitText:
        """Return the condition under which a sample goes left."""
        if self.otherwise is None:
            return replace(self, relation=_OPPOSITE[self.relation])
        column, relation, threshold = self.otherwise
        there = Condition(self.terms[0], self.relation, self.threshold)
        return SplitText((column,), 0, relation, threshold, there)


def describe_split(
    tree: Tree, t: int, *, digits: int = 4, max_terms: int = 6, influence: FloatArray | None = None
) -> SplitText:
    """Describe the split of branch node t in original units.

    A univariate split is divided by its weight (``age >= 52.5``, or ``<=`` where the weight is negative). One of a
    feature that tells levels of a column asks for them (``city is Roma``, ``colour in {red, blue}``). Where the split
    decides where missing values go, it says so (``age >= 52.5 or missing``). An oblique one keeps its scale: left minus
    right side is the score. Its terms are ordered by the size of their weight over scaled features, so the feature that
    moves the score most over its range comes first.

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
    influence
        (p,) influence of the features at the node, to order the terms by instead.
    """
    weights, intercepts = tree.original_units()
    order = np.argsort(-np.abs(tree.w[t] if influence is None else influence), kind="stable")
    order = order[tree.w[t][order] != 0]
    names = tree.feature_names
    if len(order) == 1:
        j = int(order[0])
        upwards, threshold = bool(tree.w[t, j] > 0), float(-intercepts[t] / weights[t, j])
        meaning, relation = tree.levels[j] if tree.levels else None, ">=" if upwards else "<="
        text = format_number(threshold, _telling(digits, threshold, tree, j))
        if isinstance(meaning, LevelSet) and (0 < threshold <= 1 if upwards else 0 <= threshold < 1):
            return _split_text(
                meaning.condition(holds=upwards, note=True), meaning.condition(holds=not upwards)
            )
        if isinstance(meaning, MissingEnd):
            return _split_text(
                meaning.condition(relation, threshold, text, note=True),
                meaning.condition(_OPPOSITE[relation], threshold, text),
            )
        return SplitText((names[j],), 0, relation, text)
    shown = order[:max_terms]
    terms = tuple(
        signed_term(weights[t, j], names[j], digits, first=position == 0) for position, j in enumerate(shown)
    )
    return SplitText(terms, len(order) - len(shown), ">=", format_number(-intercepts[t], digits))


def _telling(digits: int, threshold: float, tree: Tree, j: int) -> int:
    """Return how many digits a threshold takes to have so many in the range of its feature: more if far from 0."""
    if tree.scale is None or not (threshold and 0 < tree.scale[j] < abs(threshold) < np.inf):
        return digits
    return min(digits + ceil(log10(abs(threshold) / tree.scale[j])), MOST_DIGITS)


def _split_text(right: Condition, left: Condition) -> SplitText:
    return SplitText((right.column,), 0, right.relation, right.value, left)


def format_number(value: float, digits: int = 4) -> str:
    """Write a number with ``digits`` significant digits, no trailing zeros, and its integer part in full.

    Beyond ten million, unless that many digits are asked for, and below 0.0001 it is written as ``1.234e-5``.

    >>> format_number(52.5), format_number(12345.6), format_number(-0.000012345)
    ('52.5', '12346', '-1.234e-5')
    """
    if value == 0 or not np.isfinite(value):
        return f"{abs(value):g}" if value == 0 else f"{value:g}"
    magnitude = floor(log10(abs(value)))
    if not -4 <= magnitude < max(7, digits):
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


@dataclass(frozen=True)
class LinearText:
    """A linear prediction, in original units.

    Attributes
    ----------
    constant
        ``"y = 3.2"``.
    terms
        Signed terms, the most influential first: ``("+ 0.41 rooms", "- 1.2 age")``.
    n_hidden
        Number of further terms that are left out.
    """

    constant: str
    terms: tuple[str, ...]
    n_hidden: int

    def __str__(self) -> str:
        more = [f"+ {self.n_hidden} more"] if self.n_hidden else []
        return " ".join([self.constant, *self.terms, *more])


def describe_linear_leaf(tree: Tree, leaf: int, *, digits: int = 4, max_terms: int = 6) -> LinearText:
    """Describe the function that a leaf of a regression tree predicts, in original units.

    Terms are ordered by the size of their coefficient over scaled features, so the feature that moves the
    prediction most over its range comes first; zero coefficients are left out.

    Parameters
    ----------
    tree
        A regression tree.
    leaf
        Number of the leaf.
    digits
        Significant digits; integer parts are written out in full.
    max_terms
        Most terms to show; at least 1.
    """
    position = leaf - tree.topology.n_branches
    coefficients, constants = (part[position] for part in tree.leaves_in_original_units())
    influence = np.zeros(tree.n_features) if tree.leaf_w is None else np.abs(tree.leaf_w[position])
    order = np.argsort(-influence, kind="stable")
    order = order[influence[order] != 0]
    terms = tuple(signed_term(coefficients[j], tree.feature_names[j], digits) for j in order[:max_terms])
    constant = f"y = {format_number(float(constants), digits)}"
    return LinearText(constant, terms, len(order) - len(terms))


def leaf_text(tree: Tree, leaf: int, max_terms: int = 6) -> str:
    """Return the prediction of a leaf: the name of its class, its value or its linear function, with four digits.

    Of a prescriptive tree, the treatment, and what it estimates under each: ``B (A: 3.1, B: 2.4)``. Of several targets,
    each with its prediction: ``weight 162.3, waist 32``.
    """
    if tree.targets:
        return ", ".join(f"{name} {said}" for name, said in vector_text(tree, leaf))
    if tree.has_linear_leaves:
        return str(describe_linear_leaf(tree, leaf, max_terms=max_terms))
    value = tree.leaf_value[leaf - tree.topology.n_branches]
    if tree.prescribes:
        return f"{tree.classes[value]} ({', '.join(estimates_text(tree, leaf, max_terms))})"
    return tree.classes[value] if tree.is_classifier else format_number(float(value))


def vector_text(tree: Tree, leaf: int, digits: int = 4) -> list[tuple[str, str]]:
    """Return names of several targets with what a leaf predicts of each: the name of a class, or a value."""
    values = tree.leaf_value[leaf - tree.topology.n_branches].tolist()
    if tree.target_classes:
        said = [names[k] for names, k in zip(tree.target_classes, values, strict=True)]
    else:
        said = [format_number(float(value), digits) for value in values]
    return list(zip(tree.targets, said, strict=True))


def estimates_text(tree: Tree, leaf: int, max_terms: int = 6, digits: int = 4) -> list[str]:
    """Return what a leaf of a prescriptive tree estimates under each treatment, ``"A: 3.1"``, in original units."""
    position = leaf - tree.topology.n_branches
    coefficients, constants = (part[position] for part in tree.leaves_in_original_units())
    scaled = coefficients if tree.outcome_w is None else tree.outcome_w[position]
    said = []
    for k, name in enumerate(tree.classes):
        order = np.argsort(-np.abs(scaled[k]), kind="stable")
        order = order[scaled[k][order] != 0]
        terms = [signed_term(coefficients[k, j], tree.feature_names[j], digits) for j in order[:max_terms]]
        more = [f"+ {len(order) - len(terms)} more"] if len(order) > len(terms) else []
        said.append(" ".join([f"{name}: {format_number(float(constants[k]), digits)}", *terms, *more]))
    return said


def strongest(
    tree: Tree, influence: FloatArray, most: int, digits: int = 2
) -> tuple[list[tuple[str, str]], int]:
    """Write the strongest influences at one node: ``[("age", "+0.81"), ("chol", "-0.5")]``.

    Parameters
    ----------
    tree
        The tree.
    influence
        (p,) influences at the node.
    most
        Most features to name.
    digits
        Significant digits.

    Returns
    -------
    terms
        Name and signed influence; features of influence 0 are left out.
    n_hidden
        Number of further features.
    """
    order = np.argsort(-np.abs(influence), kind="stable")[: np.count_nonzero(influence)]
    terms = [(tree.feature_names[j], _signed(float(influence[j]), digits)) for j in order[:most]]
    return terms, len(order) - len(terms)


def _signed(value: float, digits: int) -> str:
    return ("+" if value > 0 else "") + format_number(value, digits)
