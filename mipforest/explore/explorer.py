"""What the page of ``mipforest explore`` shows and does: a session of edits, and one thread that searches for it.

Every edit stops the search that runs and begins one for all edits that hold. The best tree so far is shown at once, and
what is proven of it. What a node could split on instead, and which other trees are nearly as good, is searched by the
same thread, when it is asked for.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, RLock
from typing import Any, Protocol, TypeVar

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.data.columns import column_of_features, features_of_columns
from mipforest.deployment import to_sql
from mipforest.edits import Alternative, EditSession, split_of
from mipforest.errors import MipforestError
from mipforest.formatting import finite, number, percent
from mipforest.meanings import LevelSet
from mipforest.problem.constraints import KINDS, Constraint
from mipforest.problem.result import Price, Result
from mipforest.report.content import FittedTree
from mipforest.report.markup import fragment, short
from mipforest.report.tree_section import NodeTexts, tree_picture
from mipforest.solvers.solution import Event as Told
from mipforest.solvers.solution import Progress
from mipforest.time_budget import Stopped
from mipforest.trees import Tree, TreeSet, to_python, to_text
from mipforest.trees.measures import LabelMeasures, measures_of_targets, regression_measures
from mipforest.trees.node_statistics import node_statistics
from mipforest.trees.reachable import ReachableNode, reachable_tree
from mipforest.trees.tree import class_numbers

#: Alternatives and points of a curve that a node is asked for, and near-optimal trees.
ALTERNATIVES, POINTS, NEAR = 8, 15, 30

#: Most classes of which a table is shown, and most groups of a column whose rates are.
MAX_CLASSES, MAX_GROUPS = 8, 12

#: Columns that may be named for a split.
MAX_COLUMNS = 500

#: Columns of a split on several features that may be forbidden by a button.
SHOWN_COLUMNS = 4

Answer = TypeVar("Answer")


class Refused(MipforestError, ValueError):
    """The page asked for what there is not."""


@dataclass(frozen=True)
class Shown:
    """What is known of the best tree within the edits.

    Attributes
    ----------
    busy
        Whether it is searched for.
    result
        The best tree and its bound, once the search has ended.
    objective, bound
        Those of the search that runs.
    error
        Why it could not be searched for, empty where it could.
    """

    busy: bool = True
    result: Result | None = None
    objective: float = math.inf
    bound: float = -math.inf
    error: str = ""


class Writer(Protocol):
    """Writes what is found where the command was told to."""

    def report(self, result: Result) -> str:
        """Return a report page."""

    def run(self, result: Result, session: EditSession) -> str:
        """Write a run folder, and say where."""


class Explorer:
    """A session that pages show and edit.

    Parameters
    ----------
    session
        The session; nobody else uses it.
    test
        Test samples, whose errors are shown beside those of the training samples.
    file
        Where the edits are written after each one; ``None`` for nowhere.
    writer
        Writes reports and runs; without one, neither is offered.
    """

    def __init__(
        self,
        session: EditSession,
        test: Dataset | None = None,
        *,
        file: Path | None = None,
        writer: Writer | None = None,
    ) -> None:
        self._session, self._test, self._file, self._writer = session, test, file, writer
        self._lock, self._stop = RLock(), Event()
        self._searches = ThreadPoolExecutor(1, "explore")
        self._shown, self._version = Shown(), 0
        #: Changes of what is known at the end of searches.
        self._changes = 0
        self._free: Result | None = None
        #: The result whose tree was drawn last, and its picture; and those of the best tree without edits.
        self._drawn_for: Result | None = None
        self._picture: dict[str, Any] = {}
        self._free_picture: dict[str, Any] = {}
        #: The near-optimal trees that were listed last.
        self._near: TreeSet | None = None
        self._groups = _groups_of_columns(session.problem.data)
        self._begin()

    def close(self) -> None:
        """Stop what runs."""
        self._stop.set()
        self._searches.shutdown(cancel_futures=True)

    # ------------------------------------------------------------------ searches

    def _begin(self) -> None:
        """Search for the best tree within the edits; what ran for others is stopped."""
        with self._lock:
            self._stop.set()
            self._stop, self._version, self._shown = Event(), self._version + 1, Shown()
            version = self._version
            future = self._searches.submit(self._search, version, self._stop)
            future.add_done_callback(lambda ended: self._note_failure(version, ended))

    def _note_failure(self, version: int, ended: Future[None]) -> None:
        """Show what went wrong, where a search did not come to its end."""
        if ended.cancelled() or (error := ended.exception()) is None:
            return
        with self._lock:
            if version == self._version:
                said = str(error) if isinstance(error, MipforestError) else f"{type(error).__name__}: {error}"
                self._shown = Shown(busy=False, error=said)

    def _search(self, version: int, stop: Event) -> None:
        def told(event: Told) -> bool:
            with self._lock:
                if version == self._version:
                    self._shown = replace(self._shown, objective=event.objective, bound=event.bound)
            return stop.is_set()

        if stop.is_set():
            return
        with self._lock:
            session = self._session.copy()
        result = session.best(on_progress=told)
        with self._lock:
            self._session.learn(session)
            if version == self._version:
                self._shown, self._changes = Shown(busy=False, result=result), self._changes + 1
        # What edits cost is a difference from the best tree without them; their search may have stopped that one.
        free = session.free(on_progress=lambda _: stop.is_set())
        with self._lock:
            self._session.learn(session)
            self._free, self._changes = free, self._changes + 1

    def _ask(self, question: Callable[[EditSession, Progress], Answer]) -> Answer:
        """Answer a question on the edits that hold, after the search that runs; the next edit stops it."""
        with self._lock:
            session, stop = self._session.copy(), self._stop

        def answered() -> Answer:
            found = question(session, lambda _: stop.is_set())
            with self._lock:
                self._session.learn(session)
            return found

        try:
            return self._searches.submit(answered).result()
        except (Stopped, CancelledError):
            raise Refused("the edits have changed since; ask again") from None

    # ------------------------------------------------------------------ edits

    def act(self, action: str, entries: Mapping[str, Any]) -> None:
        """Make an edit, or take one back.

        Parameters
        ----------
        action
            ``pin``, ``forbid``, ``leaf``, ``label``, ``limit``, ``load``, ``undo`` or ``redo``.
        entries
            Its ``node``, ``feature``, ``threshold`` and ``label``; the ``text`` of a limit, as after an option; the
            ``number`` of a near-optimal tree.

        Raises
        ------
        MipforestError
            If there is no such action, or the session refuses it.
        """
        node, feature = _node(entries), entries.get("feature")
        if feature is not None and not isinstance(feature, str):
            raise Refused(f"the feature is {feature!r:.60}, and has to be a name")
        with self._lock:
            session = self._session
            if action == "pin" and node is not None:
                session.pin(node, feature, _threshold(entries))
            elif action == "forbid" and feature is not None:
                session.forbid(feature, node)
            elif action == "leaf" and node is not None:
                session.leaf(node)
            elif action == "label" and node is not None:
                session.label(node, str(entries.get("label")))
            elif action == "limit":
                session.limit(*_constraints(str(entries.get("text", ""))))
            elif action == "load":
                session.adopt(self._listed(entries.get("number")))
            elif action in ("undo", "redo"):
                (session.undo if action == "undo" else session.redo)()
            else:
                raise Refused(f"there is no edit {action!r:.40} of node {node} and feature {feature!r:.60}")
            self._begin()
            if self._file is not None:
                try:
                    session.save(self._file)
                except OSError as error:
                    raise Refused(
                        f"the edit holds, and could not be written to {self._file}: {error}"
                    ) from None

    def _listed(self, k: Any) -> Tree:
        near = self._near
        if near is None or isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < len(near):
            raise Refused(f"there is no near-optimal tree {k!r:.20}; list them first")
        return near[k]

    # ------------------------------------------------------------------ what is shown

    def state(self, entries: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what the page shows, as JSON takes it; without a picture where the page has it (``version``)."""
        with self._lock:
            session, shown, version, free = self._session, self._shown, self._changes, self._free
            edits = [{"words": edit.words, "node": edit.node} for edit in session.edits]
            can_redo = bool(session.undone)
        problem, result = session.problem, shown.result
        if result is not None and entries and entries.get("version") == version:
            return {"version": version, "busy": False}
        objective = shown.objective if result is None else result.objective
        bound = shown.bound if result is None else result.bound
        found = {
            "version": version,
            "title": f"{problem.name_in_words}, {problem.data.name}",
            "busy": shown.busy,
            "edits": edits,
            "redo": can_redo,
            "objective": finite(objective),
            "bound": finite(bound),
            "proven": result is not None and result.status in ("optimal", "infeasible"),
            "status": "searching" if result is None else result.status,
            "error": shown.error,
            "price": None,
            "svg": None,
            "nodes": [],
            "measures": [],
            "confusion": [],
            "labels": [str(one) for one in problem.data.classes][:MAX_CLASSES],
            "columns": list(self._groups),
            "features": [column.name for column in problem.data.encoding.columns][:MAX_COLUMNS],
            "writes": self._writer is not None,
            "free": None,
        }
        if result is not None and free is not None and edits:
            price = Price.of(result, free)
            found["price"] = [price.least, price.most]
            if isinstance(free.tree, Tree):
                with self._lock:
                    self._free_picture = self._free_picture or self._drawn(free.tree)
                found["free"] = {**self._free_picture, "objective": finite(free.objective)}
        if result is not None and isinstance(result.tree, Tree):
            with self._lock:  # many pages ask for one picture
                if self._drawn_for is not result:
                    self._drawn_for, self._picture = result, self._drawn(result.tree)
                found |= self._picture
        return found

    def _drawn(self, tree: Tree) -> dict[str, Any]:
        """Return a picture of a tree, its nodes in words, and its errors."""
        data = self._session.problem.data
        statistics = node_statistics(tree, data.X_raw, None if tree.prescribes else data.y, data.weights)
        fitted = FittedTree(tree, statistics, reachable_tree(tree))
        texts = NodeTexts(fitted, None)
        return {
            "svg": fragment(tree_picture(fitted, texts)),
            "nodes": [_in_words(node, texts, data) for node in fitted.nodes],
            "measures": [
                [name, text]
                for name, samples in (("training", data), ("test", self._test))
                if samples is not None and (text := _measure(tree, samples))
            ],
            "confusion": [
                {"name": name, "counts": counts}
                for name, samples in (("training", data), ("test", self._test))
                if samples is not None and (counts := _confusion(tree, samples))
            ],
        }

    def alternatives(self, entries: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the best other splits of a node, each with the best tree that has it."""
        node = _node(entries)
        if node is None:
            raise Refused("no node is named")
        found = self._ask(lambda session, told: session.alternatives(node, ALTERNATIVES, told))
        return list(map(_alternative, found))

    def curve(self, entries: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the best trees by the threshold of a node's split on a feature."""
        node, feature = _node(entries), entries.get("feature")
        if node is None or not isinstance(feature, str):
            raise Refused("no node and feature are named")
        found = self._ask(lambda session, told: session.curve(node, feature, POINTS, told))
        return list(map(_alternative, found))

    def near(self, entries: Mapping[str, Any]) -> dict[str, Any]:
        """Return the trees whose objective is within a share of the best one, with the features that differ."""
        within = _threshold({"threshold": entries.get("within")})
        if within is None or not 0.0 <= within <= 1.0:
            raise Refused("the share is no number from 0 to 1; write it as in 2%")
        near = self._ask(lambda session, told: session.near(within, NEAR, told))
        with self._lock:
            self._near, shown = near, self._shown.result
        if near is None or shown is None or not isinstance(shown.tree, Tree):
            raise Refused("there is no tree yet; wait for the search, or undo an edit")
        own, trees = _names_used(shown.tree), []
        for tree, value in zip(near, near.objectives.tolist(), strict=True):
            names = _names_used(tree)
            trees.append(
                {
                    "objective": finite(value),
                    "splits": tree.n_splits,
                    "more": [short(name) for name in names if name not in own],
                    "less": [short(name) for name in own if name not in names],
                }
            )
        return {"trees": trees, "complete": near.complete, "found": near.found}

    def groups(self, entries: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return, of the groups of a column, how many training samples each has, and how they fare."""
        of, names = self._groups.get(str(entries.get("column")), (np.zeros(0, np.int64), []))
        with self._lock:
            result, data = self._shown.result, self._session.problem.data
        if not names or result is None or not isinstance(result.tree, Tree):
            raise Refused("there is no such column, or no tree yet")
        tree = result.tree
        found = []
        for k, name in enumerate(names):
            here = of == k
            one: dict[str, Any] = {"group": name, "samples": int(here.sum())}
            if tree.is_classifier and not tree.prescribes:
                labels = class_numbers(tree.classes, tree.predict_labels(data.X_raw[here]), int(here.sum()))
                one["shares"] = [float((labels == c).mean()) for c in range(len(data.classes))][:MAX_CLASSES]
                if data.rewards is None:
                    one["wrong"] = int((labels != data.y[here]).sum())
            elif not tree.targets:  # no one number stands for several
                one["mean"] = float(np.asarray(tree.predict(data.X_raw[here]), dtype=float).mean())
            found.append(one)
        return found

    def written(self, entries: Mapping[str, Any]) -> dict[str, str]:
        """Return the tree in a form, or the ``edits`` as options of the command line.

        Forms are ``text``, ``python``, ``sql``, a ``report`` page, and a ``run`` folder, which is written where the
        command was told to.

        Raises
        ------
        Refused
            If there is no such form, or no tree.
        """
        form = entries.get("form")
        with self._lock:
            session, result = self._session, self._shown.result
            if form == "edits":
                options, table = session.options()
                lines = [f"--{name} {shlex.quote(value)}" for name, value in options]
                return {"text": "\n".join([*lines, *(["# --constraints", table] if table else [])])}
        tree = None if result is None else result.tree
        if not isinstance(tree, Tree):
            raise Refused("there is no tree yet; wait for the search, or undo an edit")
        data = session.problem.data
        if form == "text":
            return {"text": to_text(tree)}
        if form == "python":
            return {"text": to_python(tree)}
        if form == "sql" and tree.targets:
            raise Refused(
                "an expression of SQL has one value, and the leaves predict several; take Python or the text"
            )
        if form == "sql":
            statistics = node_statistics(tree, data.X_raw, None if tree.prescribes else data.y, data.weights)
            return {"text": to_sql(tree, statistics, encoding=data.encoding)}
        if form in ("report", "run") and self._writer is not None and result is not None:
            if form == "report":
                return {"text": self._writer.report(result), "name": "report.html"}
            return {"text": self._writer.run(result, session)}
        raise Refused(f"the tree is written as text, python or sql, and not as {form!r:.40}")


def _in_words(node: ReachableNode, texts: NodeTexts, data: Dataset) -> dict[str, Any]:
    t, tree = node.number, texts.fitted.tree
    split = split_of(tree, t) if node.children and not tree.is_oblique else (None, math.nan)
    # A leaf stands for the highest node above it from which all samples come here: there it could be split.
    at = node.passed[0] if node.passed and not node.children else t
    return {
        "node": t,
        "at": at,
        "leaf": not node.children,
        "last": at >= len(tree.w),
        "feature": split[0],
        "column": None if split[0] is None else _column(split[0], data),
        "name": None if split[0] is None else short(_column(split[0], data)),
        "others": _others(tree, t, data) if node.children and tree.is_oblique else [],
        "threshold": finite(split[1]),
        "headline": texts.headline(node),
        "samples": texts.samples(node),
    }


def _others(tree: Tree, t: int, data: Dataset) -> list[dict[str, str]]:
    """Return the columns that a split on several features uses most."""
    largest = np.argsort(-np.abs(tree.w[t]), kind="stable")[:SHOWN_COLUMNS]
    columns = dict.fromkeys(_column(tree.feature_names[j], data) for j in largest.tolist() if tree.w[t, j])
    return [{"column": column, "short": short(column)} for column in columns]


def _column(feature: str, data: Dataset) -> str:
    """Return the column of the table that a feature stands for, or for part of which."""
    j = data.features.labels.index(feature)
    return data.encoding.columns[int(column_of_features(data)[j])].name


def _names_used(tree: Tree) -> list[str]:
    return [tree.feature_names[j] for j in tree.features_used().overall]


def _groups_of_columns(data: Dataset) -> dict[str, tuple[IntArray, list[str]]]:
    """Return, by column of few values, the (n,) number of each sample's group, and what the groups are called."""
    found = {}
    for column, features in zip(data.encoding.columns, features_of_columns(data), strict=True):
        if column.levels is None:  # the first feature tells missing values, too
            values, of = np.unique(data.X_raw[:, features[0]], return_inverse=True)
            below = -np.inf if column.ends is None else column.ends[0]
            names = [
                "missing" if value == below else number(value + column.base)  # exact: a copy
                for value in values[: MAX_GROUPS + 1].tolist()
            ]
        else:
            rows, of = np.unique(data.X_raw[:, features], axis=0, return_inverse=True)
            names = [_level(column.levels, column.meanings, row) for row in rows[: MAX_GROUPS + 1]]
        if 1 < len(names) <= MAX_GROUPS:
            found[column.name] = of.ravel(), names
    return found


def _level(levels: Sequence[str], meanings: Sequence[Any], row: FloatArray) -> str:
    """Return the levels that a column may have where its features have some values."""
    left = set(levels)
    for meaning, value in zip(meanings, row.tolist(), strict=True):
        assert isinstance(meaning, LevelSet)
        left = left & set(meaning.levels) if value > 0.0 else left - set(meaning.levels)
    return ", ".join(sorted(left)) or "missing"


def _confusion(tree: Tree, samples: Dataset) -> list[list[int]]:
    """Return the (K, K) counts of samples by class and prediction; nothing of many classes, decisions or numbers."""
    K = len(samples.classes)
    if not tree.is_classifier or tree.prescribes or samples.rewards is not None or not 1 < K <= MAX_CLASSES:
        return []
    labels = class_numbers(tree.classes, tree.predict_labels(samples.X_raw), samples.n)
    counts: list[list[int]] = np.bincount(samples.y * K + labels, minlength=K * K).reshape(K, K).tolist()
    return counts


def _constraints(text: str) -> list[Constraint]:
    """Read a constraint as its option and what stands after it."""
    kind, _, rest = text.strip().removeprefix("--").partition(" ")
    if kind not in KINDS or not rest.strip():
        raise Refused(
            f"{text!r:.60} is no constraint; write one as in 'recall yes=90%', of {', '.join(KINDS)}"
        )
    return list(KINDS[kind].parse(rest.strip()))


def _alternative(one: Alternative) -> dict[str, Any]:
    return {
        "feature": one.feature,
        "name": short(one.feature),
        "threshold": finite(one.threshold),
        "objective": finite(one.objective),
        "proven": one.is_proven,
    }


def _measure(tree: Tree, samples: Dataset) -> str:
    """Return the errors of a classifier, the R2 of a regression tree, or the mean reward of decisions.

    Of a tree that prescribes treatments, nothing.
    """
    if tree.prescribes:
        return ""
    if samples.rewards is not None:
        chosen = class_numbers(tree.classes, tree.predict_labels(samples.X_raw), samples.n)
        value = number(float(samples.rewards[np.arange(samples.n), chosen].mean()))
        shares = np.bincount(chosen, minlength=len(tree.classes)) / samples.n
        told = ", ".join(
            f"{short(str(name))} {share:.1%}"
            for name, share in zip(tree.classes, shares.tolist(), strict=True)
            if share
        )
        return f"mean reward {value} ({told})"
    if tree.targets:
        of_labels = bool(tree.target_classes)
        found = measures_of_targets(samples.y, tree.predict(samples.X_raw), samples.weights, labels=of_labels)
        if isinstance(found, LabelMeasures):
            return f"{percent(found.label_accuracy)} of the labels right"
        return f"mean R² {number(found.r2)}"
    if tree.is_classifier:
        labels = class_numbers(tree.classes, tree.predict_labels(samples.X_raw), samples.n)
        return f"{int((labels != samples.y).sum())} of {samples.n} wrong"
    y, predicted = (np.asarray(one, dtype=np.float64) for one in (samples.y, tree.predict(samples.X_raw)))
    return f"R² {number(regression_measures(y, predicted, samples.weights).r2)}"


def _node(entries: Mapping[str, Any]) -> int | None:
    node = entries.get("node")
    if node is None or (isinstance(node, int) and not isinstance(node, bool)):
        return node
    raise Refused(f"the node is {node!r:.60}, and has to be a number")


def _threshold(entries: Mapping[str, Any]) -> float | None:
    value = entries.get("threshold")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Refused(f"the threshold is {value!r:.60}, and has to be a number")
    return float(value)
