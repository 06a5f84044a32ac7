"""A finished run, read back: its result, its tree or card, its samples, and its status in words.

``tree.json`` and ``card.json`` hold what it takes to predict from a table in original units. Solutions made elsewhere
are checked, decoded, and reported as if a solver had given them here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray
from mipforest.cards import (
    CardFileError,
    RiskTable,
    ScoreCard,
    card_from_dict,
    card_to_text,
    risk_table,
)
from mipforest.data import DataError, Encoding
from mipforest.data.encoding import Unseen
from mipforest.data.table import numbers, text
from mipforest.errors import MipforestError, did_you_mean
from mipforest.files.solutions import Point, SolutionFile, point_in, read_solution
from mipforest.model.matrix import MatrixForm
from mipforest.problem.problem import Problem
from mipforest.problem.result import Result
from mipforest.runs.data_source import DataSource, LoadedData
from mipforest.runs.folder import CARD, RESULT, TREE, RunError, check_digests
from mipforest.runs.instance import Metadata, read_metadata, sha256_of_model
from mipforest.runs.text_files import JsonFileError, read_json_object
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings
from mipforest.solvers.base import get_solver
from mipforest.solvers.convexity import QUADRATIC_SOLVER
from mipforest.solvers.outer_approximation import Tangents, with_best_rest
from mipforest.solvers.solution import Solution, Status
from mipforest.trees import (
    NodeStatistics,
    Predictor,
    RandomizedTree,
    Tree,
    TreeFileError,
    from_dict,
    leaf_shares,
    node_statistics,
    shown_tree,
    to_dict,
    to_text,
)


@dataclass(frozen=True, eq=False)
class Run:
    """What a run folder holds.

    Attributes
    ----------
    path
        The folder.
    result
        The content of ``result.json``.
    saved
        The tree or score card, or ``None`` if no solution was found.
    """

    path: Path
    result: dict[str, Any]
    saved: Saved | None

    @property
    def found(self) -> Saved:
        """The tree or score card.

        Raises
        ------
        RunError
            If no solution was found.
        """
        if self.saved is None:
            status = self.result.get("status")
            raise RunError(f"{self.path} has no tree: its run ended without a solution (status {status})")
        return self.saved

    @property
    def found_tree(self) -> SavedTree:
        """The tree.

        Raises
        ------
        RunError
            If no solution was found, or it is a score card.
        """
        if not isinstance(self.found, SavedTree):
            raise RunError(f"{self.path} has a {self.found.fitted.noun}, and this is for trees")
        return self.found


def read_run(path: str | Path) -> Run:
    """Read a run folder.

    Raises
    ------
    RunError
        If there is none, its ``result.json`` is malformed, or a file is not the one that the run wrote.
    TreeFileError
        If its ``tree.json`` is malformed.
    OSError
        If a file cannot be read.
    """
    folder = Path(path)
    if not folder.is_dir():
        kind = "is a file, not a run folder" if folder.exists() else f"does not exist{_nearest(folder)}"
        raise RunError(f"{folder} {kind}; give a folder that 'mipforest solve --out' wrote")
    if not (folder / RESULT).is_file():
        raise RunError(f"{folder} has no {RESULT}; give a folder that 'mipforest solve --out' wrote")
    result = _read_result(folder / RESULT)
    present = [name for name in (TREE, CARD) if (folder / name).exists()]
    # First what a file lacks to be a tree or a card: that says more than that it was changed.
    saved: Saved | None = load_saved_tree(folder / TREE) if TREE in present else None
    saved = load_saved_card(folder / CARD) if CARD in present else saved
    check_digests(folder, result, {name: read_json_object(folder / name) for name in present})
    return Run(folder, result, saved)


def _read_result(path: Path) -> dict[str, Any]:
    try:
        result = read_json_object(path)
    except JsonFileError as error:
        raise RunError(f"{error}; solve again") from error
    if "status" not in result:
        raise RunError(f"{path} holds no result of a run; solve again")
    return result


def _nearest(folder: Path) -> str:
    parent = folder.parent
    return (
        did_you_mean(folder.name, [entry.name for entry in parent.iterdir() if entry.is_dir()])
        if parent.is_dir()
        else ""
    )


def network_data(run: Run) -> str | None:
    """Return the data of a run that only the network has, as in ``openml:NAME``; ``None`` where they are elsewhere."""
    try:
        source = DataSource.from_dict(run.result["data_source"])
    except (KeyError, TypeError, DataError):
        return None  # loading says why
    return source.data if source.needs_network else None


def samples_of(run: Run, *, network: bool = False) -> tuple[LoadedData | None, str]:
    """Load the samples of a run again, or say why that is not possible.

    Parameters
    ----------
    run
        The run.
    network
        Whether they may be fetched from the network: a run may be from others, and says what is fetched.

    Returns
    -------
    data
        The samples; ``None`` if they cannot be loaded or the training samples are not those of the run.
    reason
        Why there are none; empty if there are.
    """
    if not network and (named := network_data(run)):
        return None, f"{named} would be fetched from the network, which was not allowed"
    try:
        data = DataSource.from_dict(run.result["data_source"]).load()
        if data.train.sha256 == run.result["data"]["sha256"]:
            return data, ""
        return None, f"{data.train.name} has changed since the run"
    except (KeyError, TypeError) as error:
        return None, f"result.json does not say where they are ({error})"
    except (DataError, OSError) as error:
        return None, f"they cannot be loaded ({error})"


#: Names and violations that a warning lists.
_LISTED = 3


@dataclass(frozen=True, eq=False)
class Imported:
    """An imported solution.

    Attributes
    ----------
    result
        The tree and its check; ``result.status`` is ``"imported"``, and nothing is proven about the optimum.
    source, data
        Where the data came from, and the data.
    """

    result: Result
    source: DataSource
    data: LoadedData


def import_solution(
    solution: Path,
    instance: Path,
    *,
    data: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    ensemble: str | None = None,
) -> Imported:
    """Turn a solution of an exported instance into a tree.

    The metadata beside the instance say how to build its model again; the solution is checked against that
    model. Columns are matched by name.

    Parameters
    ----------
    solution
        Solution file of any solver that :func:`~mipforest.files.solutions.read_solution` reads.
    instance
        The instance, with the metadata that ``mipforest export`` wrote beside it.
    data
        Where the data are, if elsewhere than the metadata say; to be named where they are fetched from the network.
    parameters
        Parameters that count instead of the recorded ones.
    ensemble
        Ensemble to mimic, for formulations that have one.

    Raises
    ------
    PointError
        If the solution is malformed or of another instance.
    RunError
        If the metadata are absent, malformed, or of another file, or the data are others.
    DataError, ParameterError, UnknownFormulation
        If the data cannot be loaded, or the formulation not be made.
    OSError
        If a file cannot be read.
    """
    given = read_solution(solution)
    metadata = read_metadata(instance)
    source = metadata.source if data is None else replace(metadata.source, data=data)
    if data is None and source.needs_network:
        raise RunError(
            f"the metadata of {instance} name data that are fetched from the network, and files of others fetch "
            f"nothing unasked: allow it by naming them, --data {source.data}"
        )
    formulation = metadata.formulation(parameters or {}, ensemble)
    loaded = source.load()
    if loaded.train.sha256 != metadata.data_sha256:
        raise RunError(
            f"the data {source.data} are not those of {instance} (other checksum): they were changed, or are "
            "others; give the right ones with --data"
        )
    problem = formulation.build(loaded.train, metadata.depth)
    problem.constrain(*source.with_groups(metadata.constraints, loaded.train))
    return Imported(_checked(problem, given, metadata), source, loaded)


def _checked(problem: Problem, given: SolutionFile, metadata: Metadata) -> Result:
    form = problem.model.matrix()
    point, warnings = _point_of_tangents(form, given) if metadata.tangents else (point_in(form, given), [])
    objective = form.objective(point.x)
    violations = problem.model.violations(point.x)
    warnings = [*_rebuilt_otherwise(form, metadata), *(warnings or _other_objective(given, objective))]
    if point.absent and not given.sparse:
        few = ", ".join(point.absent[:_LISTED]) + (", ..." if len(point.absent) > _LISTED else "")
        warnings.append(
            f"{len(point.absent)} of {form.n_columns} columns are not in {given.path.name} and count as 0: {few}"
        )
    if violations.max > FEASIBILITY_TOLERANCE:
        worst = ", ".join(f"{name} by {amount:.3g}" for name, amount in violations.worst(_LISTED))
        warnings.append(f"the solution is infeasible; it violates {worst}")
    solution = Solution(
        status=Status.IMPORTED,
        x=point.x,
        values=form.to_values(point.x),
        objective=objective,
        bound=float("inf") if form.maximize else float("-inf"),
        nodes=0,
        seconds=0.0,
        solver=given.writer or "a file",
        solver_version="",
        warnings=tuple(warnings),
    )
    return problem.checked(solution)


def _point_of_tangents(form: MatrixForm, given: SolutionFile) -> tuple[Point, list[str]]:
    """Return the point of a model for one of its tangents: the same integers, and the best rest for the objective."""
    linear = point_in(Tangents(form).linear_form(), given)
    x, settings = linear.x[: form.n_columns], SolveSettings()
    best = with_best_rest(form, x, get_solver(QUADRATIC_SOLVER), settings)
    if best is not None and form.objective(best) < form.objective(x):
        x = best
    warning = (
        "the instance has tangents for the quadratic objective: the numbers here are by the objective itself"
    )
    return replace(linear, x=x), [warning]


def _rebuilt_otherwise(form: MatrixForm, metadata: Metadata) -> list[str]:
    """Warn if the model is not the one that was written, to the last bit."""
    if sha256_of_model(form) == metadata.model_sha256:
        return []
    return [
        f"the model built here is not exactly that of {metadata.instance} (written with mipforest "
        f"{metadata.version}, or on another machine); the solution was checked against the one built here"
    ]


def _other_objective(given: SolutionFile, objective: float) -> list[str]:
    """Warn if the file states another objective than its values have."""
    if given.agrees_with(objective):
        return []
    return [f"{given.path.name} states the objective {given.objective:.9g}, its values have {objective:.9g}"]


#: Statistics of a regression tree: one number per node, absent where no sample passes.
_VALUES = ("mean", "r2", "mse", "mae")


class Saved(ABC):
    """What a run has found, with what it takes to predict from tables as they are in files.

    Attributes
    ----------
    encoding
        How the columns of a table become features.
    target
        Name of the target column.
    labels
        Class number by label; see :class:`~mipforest.runs.data_source.LoadedData`.
    treatment
        Name of the column of treatments that the outcomes in the target column rest on; ``None`` without one.
    """

    encoding: Encoding
    target: str
    labels: Mapping[str, int]
    treatment: str | None = None

    @property
    @abstractmethod
    def fitted(self) -> Predictor:
        """The tree or score card, for features in original units."""

    @abstractmethod
    def text(self, max_terms: int) -> str:
        """Write it in words, with the training samples counted; splits with at most some terms."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""

    @property
    def needed(self) -> tuple[int, ...] | None:
        """Numbers of the features that predictions read; ``None`` for all."""
        # A randomised tree sends every sample to all leaves; one of curves reads columns that its weights do not name.
        return None if isinstance(self.fitted, RandomizedTree) else self.fitted.features_used().overall

    def encode(self, frame: Any, *, unseen: Unseen = "error") -> FloatArray:
        """Turn a table into (n, p) features in original units; columns that predictions do not read may be absent.

        Parameters and errors are those of :meth:`predict`.
        """
        return self.encoding.encode(frame, unseen=unseen, needed=self.needed)

    def missing_notes(self, frame: Any) -> list[str]:
        """Return, for each of n rows, which values that predictions read are missing; ``""`` where none is."""
        return self.encoding.missing_notes(frame, self.needed)

    def predict(self, frame: Any, *, unseen: Unseen = "error") -> IntArray | FloatArray:
        """Predict (n,) class numbers or values for the rows of a table.

        Parameters
        ----------
        frame
            pandas DataFrame of n rows.
        unseen
            As for :meth:`Encoding.encode <mipforest.data.encoding.Encoding.encode>`.

        Raises
        ------
        DataError
            If a column is absent, or a value is missing or unknown.
        """
        return self.fitted.predict(self.encode(frame, unseen=unseen))

    def predict_proba(self, frame: Any, *, unseen: Unseen = "error") -> FloatArray:
        """Predict (n, K) probabilities of the classes for the rows of a table.

        Raises
        ------
        DataError
            As for :meth:`predict`.
        ValueError
            If there are none.
        """
        return self.fitted.predict_proba(self.encode(frame, unseen=unseen))

    def predict_outcomes(self, frame: Any, *, unseen: Unseen = "error") -> FloatArray:
        """Estimate (n, m) outcomes under each treatment; as for :meth:`predict`, and a ValueError of other trees."""
        return self.fitted.predict_outcomes(self.encode(frame, unseen=unseen))

    def classes_of(self, column: Any, name: str) -> IntArray:
        """Read (n,) class or treatment numbers that a column of that name states; a DataError for an unknown label."""
        stated = [text(value) for value in column]
        unknown = [label for label in stated if label not in self.labels]
        if unknown:
            kind = "treatment" if self.fitted.prescribes else "class"
            raise DataError(
                f"column {name!r} holds {unknown[0]!r}, which is no {kind} of the training data "
                f"({', '.join(self.labels)}); correct the label or remove the column"
            )
        return np.array([self.labels[label] for label in stated], dtype=np.int64)

    def targets(self, column: Any) -> IntArray | FloatArray:
        """Read (n,) class numbers, values or outcomes that a target column states.

        Raises
        ------
        DataError
            If the column holds a label that the training data do not have, or no number for a regression.
        """
        if not self.fitted.is_classifier or self.fitted.prescribes:
            import pandas as pd

            return numbers(pd.Series(column, name=self.target))
        return self.classes_of(column, self.target)

    @property
    def target_columns(self) -> tuple[str, ...]:
        """Names of the columns of the targets: one, or several that are predicted at once."""
        fitted = self.fitted
        return fitted.targets if isinstance(fitted, Tree) and fitted.targets else (self.target,)


@dataclass(frozen=True, eq=False)
class SavedTree(Saved):
    """A tree that takes tables as they are in files.

    Attributes
    ----------
    tree
        The tree, for features in original units.
    encoding, target, labels, treatment
        As for :class:`Saved`.
    statistics
        Training samples by node, and the influence of features on splits.
    """

    tree: Tree
    encoding: Encoding
    target: str
    labels: Mapping[str, int]
    statistics: NodeStatistics
    treatment: str | None = None

    @classmethod
    def of(cls, tree: Tree, data: LoadedData) -> SavedTree:
        """Join a tree with the data that it was fitted on."""
        train = data.train
        statistics = node_statistics(tree, train.X_raw, train.labels, train.weights)
        return cls(tree, train.encoding, train.target, data.labels, statistics, train.treatment)

    @property
    def fitted(self) -> Tree:
        """The tree."""
        return self.tree

    def text(self, max_terms: int) -> str:
        """Write the tree, with the training samples at each node."""
        root = shown_tree(self.tree, self.statistics)
        return to_text(self.tree, self.statistics, max_terms=max_terms, root=root)

    def predict_proba(self, frame: Any, *, unseen: Unseen = "error") -> FloatArray:
        """Predict (n, K) probabilities of the classes for the rows of a table.

        Those of a logistic or randomised tree's model; of any other classifier the shares of the classes among the
        training samples in the leaf (see :func:`~mipforest.trees.node_statistics.leaf_shares`).

        Raises
        ------
        DataError
            As for :meth:`predict`.
        ValueError
            If the tree is a regression tree, or has no classes of its training samples.
        """
        X = self.encode(frame, unseen=unseen)
        if self.tree.gives_probabilities:
            return self.tree.predict_proba(X)
        shares: FloatArray = leaf_shares(self.tree, self.statistics)
        return shares[self.tree.apply(X) - self.tree.topology.n_branches]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it; :func:`mipforest.trees.from_dict` reads the tree alone."""
        counts, influence = self.statistics.class_counts, self.statistics.influence
        weights = self.statistics.class_weights
        by_weight = {} if weights is None else {"class_weights": weights.tolist()}
        return to_dict(self.tree) | {
            "target": self.target,
            **({} if self.treatment is None else {"treatment": self.treatment}),
            "labels": dict(self.labels),
            "encoding": self.encoding.to_dict(),
            "training_samples": {
                "samples": self.statistics.samples.tolist(),
                "class_counts": None if counts is None else counts.tolist(),
                "influence": None if influence is None else influence.tolist(),
                **by_weight,
                **{name: _with_gaps(getattr(self.statistics, name)) for name in _VALUES},
            },
        }


def _with_gaps(values: FloatArray | None) -> list[float | None] | None:
    """Return values as JSON takes them, ``None`` in place of NaN."""
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
    with _refusing(path, TreeFileError, "tree", "tree"):
        content = read_json_object(path)
        tree = from_dict(content)
        return SavedTree(
            tree,
            Encoding.from_dict(content["encoding"]),
            _target_of(content["target"]),
            _labels_of(content["labels"], tree),
            _statistics(content["training_samples"], tree),
            _target_of(content["treatment"]) if "treatment" in content else None,
        )


@contextmanager
def _refusing(path: Path, refusal: type[MipforestError], short: str, noun: str) -> Iterator[None]:
    """Turn whatever a changed file causes into its refusal."""
    try:
        yield
    except KeyError as absent:
        raise refusal(
            f"{path}: the entry {absent} is absent: a {short} without the encoding of its data; "
            f"use the {short}.json of a run"
        ) from None
    except (TreeFileError, CardFileError, DataError) as error:
        raise refusal(f"{path}: {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise refusal(f"{path}: not a {noun} of a run: {error}") from error


def _target_of(name: object) -> str:
    """Return the name of the target column as a file states it; TreeFileError if it is none."""
    if not isinstance(name, str):
        raise TreeFileError(f"'target' is {name!r:.60}; it must be the name of a column")
    return name


def _labels_of(labels: object, tree: Predictor) -> dict[str, int]:
    """Return the class number of every label as a file states them; TreeFileError if they are none."""
    if not isinstance(labels, dict):
        raise TreeFileError(f"'labels' is {labels!r:.60}; it must give the class number of every label")
    for label, number in labels.items():
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(tree.classes):
            raise TreeFileError(
                f"'labels' has {str(number)[:40]!r} for {label!r:.60}; class numbers are 0 to {len(tree.classes) - 1}; "
                "solve again"
            )
    return labels


def _statistics(entries: Mapping[str, Any], tree: Tree) -> NodeStatistics:
    """Read what ``to_dict`` wrote."""
    nodes, classes = tree.topology.n_nodes, len(tree.classes)
    counts = _array(entries, "class_counts", (nodes, classes), np.int64)
    values = {name: _array(entries, name, (nodes,)) for name in _VALUES}
    samples = _array(entries, "samples", (nodes,), np.int64)
    if samples is None:
        raise TreeFileError("'training_samples' has no 'samples'; solve again")
    influence = _array(entries, "influence", tree.w.shape)
    if influence is not None and not np.isfinite(influence).all():
        raise TreeFileError("'influence' of 'training_samples' holds what is no finite number; solve again")
    weights = _array({"class_weights": None, **entries}, "class_weights", (nodes, classes))
    if weights is not None and not (np.isfinite(weights) & (weights >= 0)).all():
        raise TreeFileError("'class_weights' of 'training_samples' holds what is no weight; solve again")
    return NodeStatistics(samples, counts, **values, influence=influence, class_weights=weights)


def _array(
    entries: Mapping[str, Any], name: str, shape: tuple[int, ...], dtype: type = np.float64
) -> npt.NDArray[Any] | None:
    if name not in entries:
        raise TreeFileError(f"'training_samples' has no {name!r}; solve again")
    if entries[name] is None:
        return None
    array: npt.NDArray[Any] = np.array(entries[name], dtype=dtype)
    if array.shape != shape:
        raise TreeFileError(
            f"{name!r} of 'training_samples' has shape {array.shape}, the tree needs {shape}; solve again"
        )
    return array


@dataclass(frozen=True, eq=False)
class SavedCard(Saved):
    """A score card that takes tables as they are in files.

    Attributes
    ----------
    card
        The card, without negative points.
    encoding, target, labels
        As for :class:`~mipforest.runs.run.Saved`.
    table
        Risks by total, and the training samples behind them.
    """

    card: ScoreCard
    encoding: Encoding
    target: str
    labels: Mapping[str, int]
    table: RiskTable

    @classmethod
    def of(cls, card: ScoreCard, data: LoadedData) -> SavedCard:
        """Join a card with the data that it was fitted on."""
        train, shown = data.train, card.nonnegative()
        table = risk_table(shown, train.X_raw, train.y, train.weights if train.weighted else None)
        return cls(shown, train.encoding, train.target, data.labels, table)

    @property
    def fitted(self) -> ScoreCard:
        """The card."""
        return self.card

    def text(self, max_terms: int) -> str:  # noqa: ARG002 - rules have one term
        """Write the points, and the risks with the training samples."""
        return card_to_text(self.card, self.table)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it; :func:`mipforest.cards.card_from_dict` reads the card alone."""
        return self.card.to_dict() | {
            "target": self.target,
            "labels": dict(self.labels),
            "encoding": self.encoding.to_dict(),
            "risk_table": self.table.to_dict(),
        }


def load_saved_card(path: Path) -> SavedCard:
    """Read a ``card.json`` of a run.

    Raises
    ------
    CardFileError
        If it is none.
    OSError
        If it cannot be read.
    """
    with _refusing(path, CardFileError, "card", "score card"):
        content = read_json_object(path)
        card = card_from_dict(content)
        return SavedCard(
            card,
            Encoding.from_dict(content["encoding"]),
            _target_of(content["target"]),
            _labels_of(content["labels"], card),
            RiskTable.from_dict(content["risk_table"]),
        )


def saved_of(found: Predictor, data: LoadedData) -> SavedTree | SavedCard:
    """Join what a solve has found with the data that it was fitted on."""
    if isinstance(found, ScoreCard):
        return SavedCard.of(found, data)
    if isinstance(found, Tree):
        return SavedTree.of(found, data)
    raise TypeError(f"a run keeps trees and score cards, and this is a {found.noun}")
