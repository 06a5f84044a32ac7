"""Trees as JSON: exact, versioned, and refused with a reason where malformed; as Graphviz text and Python code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.atomic import atomic_write
from mipforest.errors import MipforestError
from mipforest.formatting import printable
from mipforest.meanings import LevelSet, Meaning, MissingEnd, meaning_of, to_json
from mipforest.trees.node_statistics import NodeStatistics
from mipforest.trees.randomized import Curve, FunctionalTree, RandomizedTree
from mipforest.trees.reachable import ReachableNode, reachable_tree
from mipforest.trees.sides import exact_cuts
from mipforest.trees.text import describe_split, leaf_text, samples_text
from mipforest.trees.tree import Tree

FORMAT = "mipforest-tree"
VERSION = 1


class TreeFileError(MipforestError, ValueError):
    """The file or dictionary is not a tree; the message says where and why."""


def to_dict(tree: Tree) -> dict[str, Any]:
    """Return a tree as plain lists, strings and numbers; :func:`from_dict` restores it exactly.

    Keys: ``format``, ``version``, ``depth``, ``features``, ``classes``, ``offset`` and ``scale`` (lists of p
    numbers, or null), ``w`` (one list of p weights per branch node), ``b``, ``leaf_value`` (class numbers, or
    real values where ``classes`` is empty), ``leaf_w`` (one list of p coefficients per linear leaf, or null),
    ``logistic`` (true or false), ``targets`` and ``target_classes`` where leaves predict several targets (then
    ``leaf_value`` has a list for each leaf), and ``levels`` where there are any (per feature null, a column's name and
    a level, or an object: see :func:`mipforest.meanings.to_json`).
    A randomised tree also has ``gamma`` and ``leaf_proba`` (one list of K probabilities per leaf, or null), one of
    curves also ``curves``, ``intervals``, ``heights`` and ``leaf_heights`` (see
    :class:`~mipforest.trees.randomized.FunctionalTree`), a prescriptive one ``outcomes`` (per leaf m numbers) and
    ``outcome_w`` (per leaf m lists of p, or null).
    """
    estimates: dict[str, Any] = {}
    if tree.outcomes is not None:
        slopes = None if tree.outcome_w is None else tree.outcome_w.tolist()
        estimates = {"outcomes": tree.outcomes.tolist(), "outcome_w": slopes}
    randomized: dict[str, Any] = {}
    if isinstance(tree, RandomizedTree):
        proba = tree.leaf_proba
        randomized = {"gamma": tree.gamma, "leaf_proba": None if proba is None else proba.tolist()}
    if isinstance(tree, FunctionalTree):
        randomized |= tree.to_json()
    return {
        "format": FORMAT,
        "version": VERSION,
        "depth": tree.depth,
        "features": list(tree.features),
        "classes": list(tree.classes),
        "offset": None if tree.offset is None else tree.offset.tolist(),
        "scale": None if tree.scale is None else tree.scale.tolist(),
        "w": tree.w.tolist(),
        "b": tree.b.tolist(),
        "leaf_value": tree.leaf_value.tolist(),
        "leaf_w": None if tree.leaf_w is None else tree.leaf_w.tolist(),
        "logistic": tree.logistic,
        **({"levels": [to_json(meaning) for meaning in tree.levels]} if tree.levels else {}),
        **({"targets": list(tree.targets)} if tree.targets else {}),
        **({"target_classes": [list(names) for names in tree.target_classes]} if tree.target_classes else {}),
        **randomized,
        **estimates,
    }


def from_dict(content: Mapping[str, Any]) -> Tree:
    """Return the tree that :func:`to_dict` described.

    Raises
    ------
    TreeFileError
        If a key is missing or holds something else than it should, or the parts do not fit together.
    """
    if not isinstance(content, Mapping):
        raise TreeFileError(f"a tree is a JSON object, got {type(content).__name__}")
    if content.get("format") != FORMAT:
        raise TreeFileError(f"not a tree: its format is {content.get('format')!r}, not {FORMAT!r}")
    if content.get("version") != VERSION:
        raise TreeFileError(
            f"version {content.get('version')!r} of the tree format is not known, only {VERSION}; "
            f"a newer mipforest may read it"
        )
    depth = content.get("depth")
    if isinstance(depth, bool) or not isinstance(depth, int):
        raise TreeFileError(f"'depth' must be an integer, got {depth!r}")
    for key in ("logistic", "offset", "scale", "leaf_w"):
        if key not in content:
            raise TreeFileError(f"key {key!r} is missing")
    logistic = content["logistic"]
    if not isinstance(logistic, bool):
        raise TreeFileError(f"'logistic' must be true or false, got {logistic!r}")
    try:
        targets = _names(content, "targets") if content.get("targets") else ()
        parts: dict[str, Any] = {
            "depth": depth,
            "w": _numbers(content, "w", 2),
            "b": _numbers(content, "b", 1),
            "leaf_value": _numbers(content, "leaf_value", 2 if targets else 1),
            "classes": _names(content, "classes"),
            "features": _names(content, "features"),
            "offset": _optional_numbers(content, "offset", 1),
            "scale": _optional_numbers(content, "scale", 1),
            "leaf_w": _optional_numbers(content, "leaf_w", 2),
            "logistic": logistic,
            "levels": _levels(content.get("levels") or []),
            "outcomes": _optional_numbers(content, "outcomes", 2),
            "outcome_w": _tables(content, "outcome_w"),
            "targets": targets,
            "target_classes": _lists_of_names(content, "target_classes"),
        }
        if content.get("gamma") is None:
            return Tree(**parts)
        gamma = _numbers({"gamma": [content["gamma"]]}, "gamma", 1)[0]
        parts |= {"gamma": gamma, "leaf_proba": _optional_numbers(content, "leaf_proba", 2)}
        return (
            RandomizedTree(**parts)
            if content.get("curves") is None
            else FunctionalTree(**parts, **_functional(content))
        )
    except TreeFileError:
        raise
    except ValueError as error:
        raise TreeFileError(f"the parts of the tree do not fit together: {error}") from error


def _levels(given: Any) -> tuple[Meaning, ...]:
    if not isinstance(given, list):
        raise TreeFileError(f"'levels' must be a list, got {type(given).__name__}")
    try:
        return tuple(map(meaning_of, given))
    except ValueError as error:
        raise TreeFileError(f"'levels': {error}") from error


def save(tree: Tree, path: str | PathLike[str]) -> None:
    """Write a tree to a JSON file, whole or not at all.

    Numbers are written in the shortest form that reads back to the same double.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    text = json.dumps(to_dict(tree), indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_write(path, "w") as file:
        file.write(text + "\n")


def load(path: str | PathLike[str]) -> Tree:
    """Read a tree that :func:`save` wrote.

    Raises
    ------
    OSError
        If the file cannot be read.
    TreeFileError
        If it holds no tree; the message names the file and the reason.
    """
    try:
        return from_dict(json.loads(Path(path).read_bytes(), parse_constant=_refuse_constant))
    except TreeFileError as error:
        raise TreeFileError(f"{path}: {error}") from error
    except RecursionError as error:
        raise TreeFileError(f"{path}: not a tree, its lists are nested too deeply") from error
    except ValueError as error:  # malformed JSON, bytes that are not UTF-8, integers of thousands of digits
        raise TreeFileError(f"{path}: not a JSON file: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise TreeFileError(f"it holds {name}; every number of a tree is finite")


def _numbers(content: Mapping[str, Any], key: str, dimensions: int) -> FloatArray:
    """Return a (nested) list of numbers as an array; strings, booleans and ragged lists are refused."""
    if key not in content:
        raise TreeFileError(f"key {key!r} is missing")
    kind = "list of numbers" if dimensions == 1 else "list of equally long lists of numbers"
    problem = TreeFileError(f"{key!r} must be a {kind}")
    rows = content[key] if dimensions == 2 else [content[key]]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise problem
    if any(isinstance(x, bool) or not isinstance(x, int | float) for row in rows for x in row):
        raise problem
    if len({len(row) for row in rows}) > 1:
        raise problem
    try:
        return np.array(content[key], dtype=np.float64)
    except OverflowError as error:
        raise TreeFileError(f"{key!r} holds an integer beyond the range of doubles") from error


def _optional_numbers(content: Mapping[str, Any], key: str, dimensions: int) -> FloatArray | None:
    return None if content.get(key) is None else _numbers(content, key, dimensions)


def _tables(content: Mapping[str, Any], key: str) -> FloatArray | None:
    """Read one list of lists of numbers per node."""
    given = content.get(key)
    if given is None:
        return None
    if not isinstance(given, list):
        raise TreeFileError(f"{key!r} must be a list, one entry per node")
    nodes = [_numbers({key: node}, key, 2) for node in given]
    if len({node.shape for node in nodes}) > 1:
        raise TreeFileError(f"{key!r} must have as many numbers for every node")
    return np.array(nodes)


def _functional(content: Mapping[str, Any]) -> dict[str, Any]:
    """Read what a functional tree has besides the rest: its curves, and what it sees of them."""
    given = content["curves"]
    if not isinstance(given, list) or not all(isinstance(entry, Mapping) for entry in given):
        raise TreeFileError("'curves' must be a list of objects")
    curves = []
    for entry in given:
        name, columns = entry.get("name"), entry.get("columns")
        whole = isinstance(columns, list) and all(
            isinstance(column, int) and not isinstance(column, bool) for column in columns
        )
        if not isinstance(name, str) or not whole:
            raise TreeFileError(
                f"a curve needs a 'name' and a list of 'columns' by their positions, got {entry!r:.60}"
            )
        scaling = [float(_numbers({key: [entry.get(key)]}, key, 1)[0]) for key in ("offset", "scale")]
        curves.append(Curve(name, tuple(columns), tuple(_numbers(entry, "at", 1).tolist()), *scaling))
    heights = {key: _tables(content, key) for key in ("heights", "leaf_heights")}
    return {"curves": curves, "intervals": _numbers(content, "intervals", 2), **heights}


def _names(content: Mapping[str, Any], key: str) -> tuple[str, ...]:
    if key not in content:
        raise TreeFileError(f"key {key!r} is missing")
    names = content[key]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TreeFileError(f"{key!r} must be a list of strings")
    return tuple(names)


def _lists_of_names(content: Mapping[str, Any], key: str) -> tuple[tuple[str, ...], ...]:
    """Read a list of lists of names, () where there is none."""
    lists = content.get(key) or []
    if not isinstance(lists, list):
        raise TreeFileError(f"{key!r} must be a list of lists of strings")
    return tuple(_names({key: names}, key) for names in lists)


def to_dot(
    tree: Tree,
    statistics: NodeStatistics | None = None,
    *,
    max_terms: int = 6,
    root: ReachableNode | None = None,
) -> str:
    """Write a tree in the language of Graphviz; ``dot -Tpdf`` draws it.

    Parameters
    ----------
    tree
        The tree.
    statistics
        Samples per node, from :func:`~mipforest.trees.node_statistics.node_statistics`, to stand at each node.
    max_terms
        Most terms of a split or a linear leaf to show.
    root
        The part to write, from :func:`~mipforest.trees.reachable.shown_tree`; all that a sample can reach unless given.
    """
    lines = ['  node [shape=box, fontname="sans-serif"];', '  edge [fontname="sans-serif"];']

    def write(node: ReachableNode) -> None:
        t = node.number
        says = (
            str(describe_split(tree, t, max_terms=max_terms))
            if node.children
            else leaf_text(tree, t, max_terms)
        )
        says = " ".join(f"{says}{samples_text(tree, t, statistics)}".split())
        says = printable(says).replace("\\", "\\\\").replace('"', '\\"').replace(" [", "\\n[")
        style = "rounded" if node.children else "rounded,bold"
        lines.append(f'  n{t} [label="{says}", style="{style}"];')
        for child, answer in zip(node.children, ("no", "yes"), strict=False):
            lines.append(f'  n{t} -> n{child.number} [label="{answer}"];')
            write(child)

    write(reachable_tree(tree) if root is None else root)
    return "\n".join(["digraph tree {", *lines, "}", ""])


def to_python(tree: Tree) -> str:
    """Write a tree as a Python function without dependencies, ``predict(x)`` of a mapping from features to values.

    The function takes features in original units and scales them as the tree does. Scores of several features are
    summed from left to right, so that a sample within a rounding error of a split may go to its other side. A split
    on a set of levels, or on a column whose missing values it sends to a side, reads the column itself.

    Raises
    ------
    ValueError
        If the tree is randomised: its predictions are means over all leaves, no chain of conditions.
    """
    if isinstance(tree, RandomizedTree):
        raise ValueError(
            f"{tree!r} predicts a mean over all its leaves, which no chain of conditions is: keep tree.json"
        )
    of_class = "the name of the treatment" if tree.prescribes else "the name of its class"
    returns = of_class if tree.is_classifier else "its value"
    if tree.targets:
        what = "names of classes" if tree.target_classes else "values"
        returns = f"the {what} of {', '.join(map(ascii, tree.targets))}, a tuple"
    read = _columns_read(tree)
    lines = [f'"""A decision tree of depth {reachable_tree(tree).depth}, written by mipforest."""', "", ""]
    if read:
        lines += ["def missing(value):", "    return value is None or value != value", "", ""]
    lines += ["def predict(x):", f'    """Return {returns}; x maps the names of features to numbers."""']
    used = tree.features_used().overall if tree.levels else ()
    coded = [
        (tree.feature_names[j], meaning)
        for j in used
        if isinstance(meaning := tree.levels[j], LevelSet) and meaning.column not in read
    ]
    for name, meaning in coded[:1]:
        says = str(meaning.condition(holds=True))
        lines.append(f"    # Levels of text are features: x[{name!a}] is 1 where {says!a}, else 0.")
    if read:
        lines.append(
            "    # Of these columns x has the values themselves, texts of levels, None or NaN where missing:"
        )
        lines.append(f"    # {', '.join(map(ascii, read))}.")

    def linear(weights: FloatArray, constant: float, indent: str) -> str:
        terms = [_term(tree, j, weights[j]) for j in np.flatnonzero(weights).tolist()]
        parts = [*terms, repr(float(constant))]
        return (
            " + ".join(parts)
            if len(terms) < 2
            else f"(\n{indent}    " + f"\n{indent}    + ".join(parts) + f"\n{indent})"
        )

    def write(node: ReachableNode, indent: str) -> None:
        t, k = node.number, node.number - tree.topology.n_branches
        if node.children:
            split = str(describe_split(tree, t, max_terms=1))
            comment = " ".join(split.split()) if np.count_nonzero(tree.w[t]) == 1 else ""
            condition = _condition_on_column(tree, t, read)
            if condition is None:
                lines.append(f"{indent}score = {linear(tree.w[t], tree.b[t], indent)}")
                condition = "score >= 0"
            lines.append(f"{indent}if {condition}:  # n{t}{comment and f': {comment!a}'}")
            write(node.children[1], indent + "    ")
            write(node.children[0], indent)
        elif tree.targets:
            values = tree.leaf_value[k].tolist()
            if tree.target_classes:
                values = [names[one] for names, one in zip(tree.target_classes, values, strict=True)]
            lines.append(f"{indent}return ({', '.join(map(ascii, values))},)  # n{t}")
        elif tree.is_classifier:
            lines.append(f"{indent}return {tree.classes[int(tree.leaf_value[k])]!a}  # n{t}")
        else:
            slopes = np.zeros(tree.n_features) if tree.leaf_w is None else tree.leaf_w[k]
            lines.append(f"{indent}return {linear(slopes, tree.leaf_value[k], indent)}  # n{t}")

    write(reachable_tree(tree), "    ")
    return "\n".join([*lines, ""])


def _columns_read(tree: Tree) -> list[str]:
    """Return the columns that are read in place of their features: they have a feature for each of many sets."""
    used = [tree.levels[j] for j in np.flatnonzero((tree.w != 0).any(axis=0)).tolist()] if tree.levels else []

    def many(meaning: Meaning) -> bool:
        if isinstance(meaning, LevelSet):
            return len(meaning.levels) != 1 or meaning.missing is not None
        return isinstance(meaning, MissingEnd)

    return sorted({meaning.column for meaning in used if meaning is not None and many(meaning)})


def _condition_on_column(tree: Tree, t: int, read: list[str]) -> str | None:
    """Write the condition for going right of a split on one of the columns that are read; else ``None``."""
    used = np.flatnonzero(tree.w[t])
    meaning = tree.levels[used[0]] if len(used) == 1 and tree.levels else None
    if meaning is None or meaning.column not in read:
        return None
    j = used[:1]
    offset = np.zeros(1) if tree.offset is None else tree.offset[j]
    scale = np.ones(1) if tree.scale is None else tree.scale[j]
    weight = tree.w[t, j]
    cut, upwards = float(exact_cuts(weight, tree.b[[t]], offset, scale)[0]), bool(weight[0] > 0)
    value = f"x[{meaning.column!a}]"
    if isinstance(meaning, MissingEnd):
        if meaning.tells_missing(">=", cut):
            return f"{'not ' if meaning.low == upwards else ''}missing({value})"
        compared = f"{value} {'>=' if upwards else '<'} {cut!r}"
        return (
            f"missing({value}) or {compared}"
            if meaning.low != upwards
            else f"not missing({value}) and {compared}"
        )
    if not meaning.levels:
        return f"{'' if upwards else 'not '}missing({value})"
    several = len(meaning.levels) > 1
    levels = f"({', '.join(map(ascii, meaning.levels))})" if several else ascii(meaning.levels[0])
    has = f"{value} {'in' if several else '=='} {levels}"
    if meaning.missing:
        has = f"missing({value}) or {has}"
    return has if upwards else f"not ({has})"


def _term(tree: Tree, j: int, weight: float) -> str:
    """Write a weight times a scaled feature as Python code."""
    feature = f"x[{tree.feature_names[j]!a}]"
    if tree.offset is not None and tree.scale is not None:
        feature = f"({feature} - {float(tree.offset[j])!r}) / {float(tree.scale[j])!r}"
        return f"{float(weight)!r} * ({feature})"
    return f"{float(weight)!r} * {feature}"
