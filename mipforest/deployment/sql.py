"""A tree or score card as a SQL expression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray
from mipforest.cards import ScoreCard
from mipforest.data.encoding import Column, Encoding, Unseen
from mipforest.deployment.cuts import Cuts, cuts_of, labels_by_target, leaf_probabilities
from mipforest.errors import did_you_mean
from mipforest.meanings import LevelSet, Meaning, MissingEnd
from mipforest.trees import NodeStatistics, Predictor, RandomizedTree, Tree


@dataclass(frozen=True)
class _Dialect:
    """How a database takes names and texts.

    Attributes
    ----------
    name
        What it is called.
    opening, closing
        Quotes of a name.
    backslashes
        Whether a backslash in a text escapes what follows.
    doubled
        Whether a quote in a text or name is doubled; else a backslash stands before it, and makes line ends.
    escaped_names
        Whether names are escaped as texts are.
    national
        Whether a text of more than ASCII needs an ``N``, and a backslash before a line end takes both away.
    """

    name: str
    opening: str = '"'
    closing: str = '"'
    backslashes: bool = False
    doubled: bool = True
    escaped_names: bool = False
    national: bool = False

    def quoted(self, name: str) -> str:
        """Write a name."""
        if self.escaped_names:
            return f"{self.opening}{self._escaped(name, self.closing)}{self.closing}"
        self._check(name)
        return f"{self.opening}{name.replace(self.closing, 2 * self.closing)}{self.closing}"

    def literal(self, value: str | float) -> str:
        """Write a number, or anything else as a text."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return repr(value)
        text = str(value)
        if self.national and ("\\\n" in text or "\\\r" in text):
            raise ValueError(
                f"the text {text!r} has a backslash before a line end, which {self.name} takes for one "
                "line that goes on; rename it in the data, or choose another dialect"
            )
        prefix = "N" if self.national and not text.isascii() else ""
        escaped = self._escaped(text, "'")
        return f"{prefix}'{escaped}'"

    def _escaped(self, text: str, quote: str) -> str:
        self._check(text)
        if self.backslashes:
            text = text.replace("\\", "\\\\")
        if self.doubled:
            return text.replace(quote, 2 * quote)
        return text.replace(quote, f"\\{quote}").replace("\n", "\\n").replace("\r", "\\r")

    def _check(self, text: str) -> None:
        """Refuse what no SQL text can hold."""
        for sign in text:
            if sign == "\0" or "\ud800" <= sign <= "\udfff":
                raise ValueError(
                    f"{text!r} has the character U+{ord(sign):04X}, which texts and names in SQL cannot have; "
                    "rename it in the data"
                )


#: Databases by name. Texts of ``standard`` have no escapes but the doubled quote; so do those of PostgreSQL
#: (``standard_conforming_strings`` on, as it is by default), SQLite, DuckDB and SQL Server.
DIALECTS = {
    dialect.name: dialect
    for dialect in (
        _Dialect("standard"),
        _Dialect("bigquery", "`", "`", backslashes=True, doubled=False, escaped_names=True),
        _Dialect("databricks", "`", "`", backslashes=True, doubled=False),
        _Dialect("duckdb"),
        _Dialect("mysql", "`", "`", backslashes=True),
        _Dialect("postgres"),
        _Dialect("snowflake", backslashes=True),
        _Dialect("sqlite"),
        _Dialect("sqlserver", "[", "]", national=True),
    )
}


def to_sql(
    fitted: Predictor,
    statistics: NodeStatistics | None = None,
    *,
    encoding: Encoding | None = None,
    unseen: Unseen = "error",
    classes: npt.ArrayLike | None = None,
    probability_of: Any = None,
    dialect: str = "standard",
) -> str:
    """Return a SQL expression that predicts a row of a table: ``SELECT <expression> AS prediction FROM patients``.

    The expression is ``CASE`` with comparisons and arithmetic alone; probabilities of logistic trees and cards also use
    ``EXP``. Its value is ``NULL`` where a column that it reads is ``NULL`` and nothing fills it in. Columns of numbers
    have to be floating-point ones: some databases compute with others in decimals.

    Of several targets there is an expression for each, named and with a comma before the next:
    ``CASE ... END AS prediction_weight,``.

    Parameters
    ----------
    fitted
        A tree, or a score card.
    statistics
        Training samples by node: they give the probabilities of a classifier that has none of its own. Without them
        a class is certain.
    encoding
        What the columns are. A missing value counts as what it is filled in with. Without it, the expression reads the
        tree's features, and a column by name and value where a feature stands for one.
    unseen
        With ``encoding``, a level that the training samples do not have: ``"error"`` makes the value ``NULL``,
        ``"none"`` takes it for none of theirs.
    classes
        (K,) labels in place of the names of the classes, in their order; a list of these of several targets.
    probability_of
        One of these labels: the expression is its probability, in place of the predicted label. Several targets have
        none.
    dialect
        The database, which decides how names and texts are quoted: one of :data:`DIALECTS`.

    Raises
    ------
    ValueError
        If the tree is randomised, there is no such class or dialect, or a name or level has a character that the
        dialect cannot write.
    """
    if isinstance(fitted, RandomizedTree):
        raise ValueError(
            "a randomised tree predicts a mean over all its leaves, and no CASE says that; use to_onnx"
        )
    if dialect not in DIALECTS:
        hint = did_you_mean(str(dialect), list(DIALECTS))
        raise ValueError(f"dialect is {dialect!r}; choose {', '.join(DIALECTS)}{hint}")
    writer = DIALECTS[dialect]
    if isinstance(fitted, Tree) and fitted.targets:
        if probability_of is not None:
            raise ValueError(
                f"probability_of is {probability_of!r}, and the tree predicts {len(fitted.targets)} targets at once, "
                "without probabilities; leave it out"
            )
        labels_of: list[Any] = [*labels_by_target(fitted, classes)] or [None] * len(fitted.targets)
        each = (
            to_sql(
                fitted.of_target(k), encoding=encoding, unseen=unseen, classes=labels_of[k], dialect=dialect
            )
            + f" AS {writer.quoted(f'prediction_{name}')}"
            for k, name in enumerate(fitted.targets)
        )
        return ",\n".join(each)
    labels = np.asarray(fitted.classes if classes is None else classes).tolist()
    wanted = None
    if probability_of is not None:
        known = [] if fitted.prescribes else labels
        if probability_of not in known:
            names = list(map(str, known))
            hint = did_you_mean(str(probability_of), names)
            raise ValueError(
                f"probability_of is {probability_of!r}, and the classes are {', '.join(names) or 'none'}{hint}"
            )
        wanted = known.index(probability_of)
    columns = _Columns(fitted, encoding, unseen, writer)
    if isinstance(fitted, ScoreCard):
        body = _of_card(fitted, columns, labels, wanted)
    elif isinstance(fitted, Tree):
        body = _of_tree(fitted, statistics, columns, labels, wanted)
    else:
        raise TypeError(f"{fitted!r} is neither a tree nor a score card")
    refused = columns.refused()
    return f"CASE WHEN {' OR '.join(refused)} THEN NULL ELSE\n{body}\nEND" if refused else body


class _Columns:
    """Writes features as expressions of columns, and remembers which columns are read."""

    def __init__(
        self, fitted: Predictor, encoding: Encoding | None, unseen: Unseen, dialect: _Dialect
    ) -> None:
        self.dialect, self._refuse_levels = dialect, encoding is not None and unseen == "error"
        self._of_feature: list[tuple[Column, Meaning]] = []
        if encoding is not None:
            for column in encoding.columns:
                self._of_feature += [(column, meaning) for meaning in column.meanings]
        else:
            meanings = fitted.levels or (None,) * fitted.n_features
            for name, meaning in zip(fitted.feature_names, meanings, strict=True):
                self._of_feature.append((_column_of(name, meaning), meaning))
        self._read: dict[str, Column] = {}

    def number(self, j: int) -> str:
        """Write feature j as a number."""
        column, meaning = self._of_feature[j]
        source = self._source(column)
        if isinstance(meaning, LevelSet):
            return f"(CASE WHEN {self._has(source, meaning)} THEN 1.0 ELSE 0.0 END)"
        return f"({source} - {column.base})" if column.base else source

    def compare(self, j: int, cut: float) -> str:
        """Write that feature j is at least a number."""
        column, meaning = self._of_feature[j]
        source = self._source(column)
        if isinstance(meaning, LevelSet) and 0 < cut <= 1:
            return self._has(source, meaning)
        comparison = f"{self.number(j)} >= {cut!r}"
        if not isinstance(meaning, MissingEnd):
            return comparison
        if meaning.tells_missing(">=", cut):
            return f"{source} IS {'NOT NULL' if meaning.low else 'NULL'}"
        # A comparison with NULL is not true: missing values are on the side of small ones.
        return comparison if meaning.low else f"({source} IS NULL OR {comparison})"

    def _has(self, source: str, meaning: LevelSet) -> str:
        """Write that a column has one of the levels of a feature."""
        if not meaning.levels:
            return f"{source} IS NULL"
        literal = self.dialect.literal
        several = f"IN ({', '.join(map(literal, meaning.levels))})"
        has = f"{source} {several if len(meaning.levels) > 1 else f'= {literal(meaning.levels[0])}'}"
        return f"({source} IS NULL OR {has})" if meaning.missing else has

    def refused(self) -> list[str]:
        """Return the conditions on which nothing can be predicted, after all columns are read."""
        found = []
        for column in self._read.values():
            if column.fill is None and not column.branch:
                found.append(f"{self.dialect.quoted(column.name)} IS NULL")
            if self._refuse_levels and column.levels is not None:
                known = ", ".join(map(self.dialect.literal, column.levels))
                found.append(f"{self._source(column)} NOT IN ({known})")
        return found

    def _source(self, column: Column) -> str:
        self._read[column.name] = column
        name = self.dialect.quoted(column.name)
        return name if column.fill is None else f"COALESCE({name}, {self.dialect.literal(column.fill)})"


def _column_of(name: str, meaning: Meaning) -> Column:
    """Return the column of a feature whose encoding is not known."""
    if meaning is None:
        return Column(name)
    if isinstance(meaning, MissingEnd):
        return Column(meaning.column, branch=True)
    return Column(meaning.column, levels=meaning.levels, branch=meaning.missing is not None)


def _of_tree(
    tree: Tree, statistics: NodeStatistics | None, columns: _Columns, labels: list[Any], wanted: int | None
) -> str:
    cuts = cuts_of(tree)
    shares = None
    if tree.is_classifier and not tree.prescribes:
        shares = leaf_probabilities(tree, statistics)

    def leaf(k: int, last: int) -> str:
        if wanted is not None and tree.logistic:
            score = _sum(tree, columns, tree.w[last], tree.b[last])
            return _sigmoid(score, second=wanted == 1)
        if wanted is not None and shares is not None:
            return repr(float(shares[k, wanted]))
        if tree.is_classifier:
            return columns.dialect.literal(labels[int(tree.leaf_value[k])])
        slopes = np.zeros(tree.n_features) if tree.leaf_w is None else tree.leaf_w[k]
        return _sum(tree, columns, slopes, tree.leaf_value[k])

    def write(t: int, last: int, indent: str) -> str:
        topology = tree.topology
        if t >= topology.n_branches:
            return indent + leaf(t - topology.n_branches, last)
        left, right = topology.left(t), topology.right(t)
        only = cuts.only_side(t) if np.count_nonzero(tree.w[t]) < 2 else None
        if only is not None:
            return write(right if only else left, t, indent)
        deeper = indent + "  "
        yes, no = (right, left) if cuts.upper_is_right[t] or _oblique(tree, t) else (left, right)
        condition = _condition(tree, cuts, columns, t)
        return (
            f"{indent}CASE WHEN {condition} THEN\n{write(yes, t, deeper)}\n"
            f"{indent}ELSE\n{write(no, t, deeper)}\n{indent}END"
        )

    return write(0, 0, "")


def _oblique(tree: Tree, t: int) -> bool:
    return int(np.count_nonzero(tree.w[t])) > 1


def _condition(tree: Tree, cuts: Cuts, columns: _Columns, t: int) -> str:
    """Write the condition of the upper side, of a split of several features of the right side."""
    if _oblique(tree, t):
        return f"{_sum(tree, columns, tree.w[t], tree.b[t])} >= 0"
    return columns.compare(int(cuts.feature[t]), float(cuts.cut[t]))


def _sum(tree: Tree, columns: _Columns, weights: FloatArray, constant: float) -> str:
    """Write a weighted sum of scaled features."""

    def scaled(j: int) -> str:
        if tree.offset is None or tree.scale is None:
            return columns.number(j)
        return f"(({columns.number(j)} - {_signed(float(tree.offset[j]))}) / {float(tree.scale[j])!r})"

    terms = [f"{_signed(float(weights[j]))} * {scaled(j)}" for j in np.flatnonzero(weights).tolist()]
    return " + ".join([*terms, _signed(float(constant))])


def _signed(value: float) -> str:
    """Write a number, in brackets where it is negative: ``--`` begins a comment."""
    return f"({value!r})" if math.copysign(1.0, value) < 0 else repr(value)


def _sigmoid(score: str, *, second: bool) -> str:
    return f"1.0 / (1.0 + EXP({'-' if second else ''}({score})))"


def _of_card(card: ScoreCard, columns: _Columns, labels: list[Any], wanted: int | None) -> str:
    parts = []
    for rule in card.rules:
        points = (0, rule.points) if rule.below else (rule.points, 0)
        parts.append(
            f"CASE WHEN {columns.compare(rule.feature, rule.threshold)} THEN {points[0]} ELSE {points[1]} END"
        )
    total = "\n  + ".join([*parts, _signed(card.intercept)])
    if wanted is not None:
        return _sigmoid(f"\n  {total}", second=wanted == 1)
    first, second = map(columns.dialect.literal, labels)
    return f"CASE WHEN\n  {total} >= 0 THEN {second} ELSE {first} END"
