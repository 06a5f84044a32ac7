"""A data set as models see it, with what is needed to speak of it in original units."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mipforest.arrays import BoolArray, FloatArray, IntArray
from mipforest.data import table as tables
from mipforest.data.convention import PLAIN, Convention, DateOrder, Dates, read_columns
from mipforest.data.encoding import Column, Encoding, Scaling, UnseenLevelError
from mipforest.data.table import Axis, Label, Missing, fingerprint
from mipforest.data.target import (
    SEVERAL,
    ClassMapping,
    Target,
    Task,
    are_class_numbers,
    binarised,
    class_names,
    read_class_numbers,
    read_rewards,
    read_target,
    read_target_like,
    read_targets,
    read_targets_like,
    refuse_more_classes,
    relabelled,
    require_classification,
    signs,
    split_rows,
)
from mipforest.errors import DataError, some_of
from mipforest.survival import StepFunction, relative_risks

#: What the target of a data set of rewards is called.
DECISION = "decision"

#: What the target of a data set of times is called, and how the note on their events begins.
HAZARD_RATIO, EVENTS = "hazard ratio", "events"

#: What a column of events says, in lower case, where it says the same of all samples, and all had theirs.
SEEN = ("1", "true", "yes")


def targets_of(y: Any, n: int, names: Sequence[str] | None, kept: Any, task: Task | None) -> Target:
    """Read several targets (n, T) of samples of which some are kept.

    Raises
    ------
    DataError
        If y has another shape, or as :func:`~mipforest.data.target.read_targets` does.
    """
    import pandas as pd

    shape = np.shape(y)
    if len(shape) != 2 or shape[0] != n or not shape[1]:
        raise DataError(f"y has shape {shape}, and X has {n} rows; give (n, T): a column for each target")
    given = (
        [str(name) for name in y.columns]
        if isinstance(y, pd.DataFrame)
        else [f"y{t}" for t in range(shape[1])]
    )
    called = given if names is None else list(map(str, names))
    if len(called) != shape[1] or len(set(called)) < len(called):
        raise DataError(
            f"{len(called)} names of targets ({some_of(called)}) for the {shape[1]} columns of y; give one for each, "
            "no two alike"
        )
    if task == "regression" and isinstance(y, np.ndarray) and y.dtype == np.float64 and np.isfinite(y).all():
        values = y[kept]
        if len(values) and (values != values[0]).any():  # else refused below
            return Target(SEVERAL, values, targets=tuple(called))
    table = y if isinstance(y, pd.DataFrame) else pd.DataFrame(np.asarray(y))
    columns = [table.iloc[:, t].to_numpy() for t in range(shape[1])]
    read = {name: tables.target_column(one, n, name)[kept] for name, one in zip(called, columns, strict=True)}
    return read_targets(pd.DataFrame(read), task)


def _fitted(
    encoding: Encoding,
    scaling: Scaling,
    X_raw: FloatArray,
    weights: FloatArray,
    unlabelled: FloatArray | None,
) -> Encoding:
    """Fit a scaling to samples with weights, and to those without a label, which count once."""
    if unlabelled is None:
        return encoding.fit_scaling(scaling, X_raw, weights)
    both = np.vstack([X_raw, unlabelled])
    return encoding.fit_scaling(scaling, both, np.concatenate([weights, np.ones(len(unlabelled))]))


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples, their features and what is to be predicted.

    Made by :func:`mipforest.data.load`, :meth:`from_arrays` or :meth:`from_frame`. Arrays are read-only.

    Attributes
    ----------
    X
        (n, p) float64 features, scaled by ``encoding``: what models see.
    X_raw
        (n, p) float64 features in original units.
    y
        (n,) class indices 0..K-1 (int64) for a classification, values (float64) for a regression, outcomes (float64)
        for a prescription, decisions with the highest reward (int64) for a policy; (n, T) class indices or values of
        several targets.
    task
        ``"classification"``, ``"regression"``, ``"prescription"``, ``"decision"``, or ``"multi-output"`` of several
        targets.
    features
        Names of the p features.
    samples
        Ids of the n samples: the rows' labels in their source, kept when samples are selected or split.
    classes
        Names of the K classes, of a prescription the treatments, of a policy the decisions, as text; empty for a
        regression.
    class_values
        Their labels as the user wrote them, for predictions; empty for a regression.
    encoding
        How columns became features and how these were scaled.
    weights
        (n,) weights of the samples, above 0: an objective charges a sample's loss this many times.
    treatments
        (n,) index (int64) of the treatment that each sample had; ``None`` unless the task is a prescription.
    rewards
        (n, K) reward of each decision for each sample; ``None`` unless the task is a policy.
    followed, baseline_hazard
        (n, 3) time of each sample, 1 where its event was seen then, and its weight beside its exposure, with the
        cumulative hazard that the targets are relative to; ``None`` unless targets are hazard ratios
        (:meth:`with_hazards`).
    targets, target_classes
        Names of several targets, and of the classes of each, as text, ``()`` where targets are numbers; both are ``()``
        for one target, and ``classes`` is for several.
    name, target, weight, treatment
        Name of the data set, and of the columns of its target, weights and treatments (``None``: it has none).
    notes
        What was done to the data on the way, in sentences.
    convention
        How the values of its table were written, as found.
    unlabelled
        (m, p) features, in original units, of further samples without a label; ``None`` where there are none. They are
        no samples in all else: n, weights and classes do not count them. The scaling counts them.
    """

    X: FloatArray
    X_raw: FloatArray
    y: IntArray | FloatArray
    task: Task
    features: Axis
    samples: Axis
    classes: tuple[str, ...]
    class_values: tuple[Label, ...]
    encoding: Encoding
    weights: FloatArray
    name: str = "data"
    target: str = "target"
    weight: str | None = None
    notes: tuple[str, ...] = ()
    treatments: IntArray | None = None
    treatment: str | None = None
    rewards: FloatArray | None = None
    followed: FloatArray | None = None
    baseline_hazard: StepFunction | None = None
    targets: tuple[str, ...] = ()
    target_classes: tuple[tuple[str, ...], ...] = ()
    convention: Convention = PLAIN
    unlabelled: FloatArray | None = None

    def __post_init__(self) -> None:
        own = (self.X, self.X_raw, self.y, self.weights, self.labels, self.rewards, self.followed)
        for array in (*own, self.unlabelled):
            if array is not None:
                array.setflags(write=False)

    def __repr__(self) -> str:
        kinds = {"prescription": "treatments", "decision": "decisions"}
        what = f"{self.n_classes} {kinds.get(self.task, 'classes')}" if self.classes else self.task
        if self.targets:
            what = f"{len(self.targets)} targets"
        return f"Dataset({self.name!r}: {self.n} samples, {self.p} features, {what})"

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of all labels that are predicted: the classes; of several targets ``target=label``, one after another.

        Empty where numbers are predicted.
        """
        each = zip(self.targets, self.target_classes, strict=False)
        return tuple(f"{name}={label}" for name, of in each for label in of) if self.targets else self.classes

    def label_indicators(self, values: ArrayLike) -> BoolArray:
        """Return (m, K) which of all labels, as of :attr:`label_names`, samples or leaves have.

        Parameters
        ----------
        values
            (m,) numbers of classes; (m, T) of several targets.
        """
        numbers = np.asarray(values, dtype=np.int64)
        if not self.targets:
            found: BoolArray = numbers[:, None] == np.arange(len(self.classes))
            return found
        of_targets = zip(numbers.T, self.target_classes, strict=True)
        return np.column_stack([own[:, None] == np.arange(len(of)) for own, of in of_targets])

    @property
    def sizes(self) -> FloatArray:
        """(n, p) sizes of the numbers that scaled features are the differences of: what rounding errors go with."""
        sizes: FloatArray = (np.abs(self.X_raw) + np.abs(self.encoding.offset)) / self.encoding.scale
        return sizes

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        features: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        name: str = "data",
        target: str = "target",
        task: Task | None = None,
        scaling: Scaling = "minmax",
        weights: ArrayLike | None = None,
        treatments: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        event: ArrayLike | None = None,
        targets: Sequence[str] | None = None,
        unlabelled: ArrayLike | None = None,
        notes: Sequence[str] = (),
    ) -> Dataset:
        """Make a data set of a feature matrix and a target, several targets, or the rewards of decisions.

        Parameters
        ----------
        X
            (n, p) finite numbers, original units.
        y
            (n,) labels or values; see :func:`mipforest.data.target.read_target` for what they mean. (n, T) of several
            targets, an array or a DataFrame: all values, or all labels, each target with its own. Left out where there
            are rewards.
        features
            Names of the p features; ``x0, x1, ...`` if not given.
        classes
            Names of the classes or treatments, in the order of their sorted labels; these if not given. Of decisions,
            in the order of their columns.
        name, target
            Name of the data set and of what is predicted.
        task
            ``"classification"``, ``"regression"``, or ``None`` to infer it from ``y``.
        scaling
            ``"minmax"``, ``"standard"`` or ``"none"``.
        weights
            (n,) weights of the samples, 1 unless given; samples of weight 0 are left out.
        treatments
            (n,) labels of the treatments that led to the outcomes y, for a prescription.
        rewards
            (n, K) reward of each decision for each sample, for a policy; finite, of any sign, higher is better.
        event
            (n,) whether the event of a sample was seen at its time y, or it was censored, for survival trees.
        targets
            Names of the T columns of y, those of a DataFrame or ``y0, y1, ...`` unless given; they make y several
            targets also where it has one column.
        unlabelled
            (m, p) features, as those of X, of samples without a label, for semi-supervised trees.
        notes
            What was done to the data before.

        Raises
        ------
        DataError
            If shapes do not fit, values are missing or not finite, a weight is negative, or the target has one class
            only.
        """
        X_raw = tables.feature_matrix(X)
        n, p = X_raw.shape
        names = tuple(f"x{j}" for j in range(p)) if features is None else tuple(map(str, features))
        if len(names) != p:
            raise DataError(f"{len(names)} feature names for the {p} columns of X; give one name per column")
        kept, weight, remarks = tables.positive_weights(weights, n)
        task = task if event is None else "regression"
        shape = () if y is None else np.shape(y)
        if targets is not None or (len(shape) == 2 and shape[1] > 1):
            if treatments is not None or rewards is not None or event is not None or classes is not None:
                raise DataError(
                    "several targets go with no treatments, rewards, event or classes; leave these out"
                )
            read = targets_of(y, n, targets, kept, task)
            target = ", ".join(read.targets)
        else:
            read = cls._target(y, n, kept, target, task, treatments, rewards, classes)
        X_raw, samples = X_raw[kept], tuple(map(str, np.flatnonzero(kept)))
        others = None if unlabelled is None else tables.feature_matrix(unlabelled)
        if others is not None and others.shape[1] != p:
            raise DataError(
                f"the samples without a label have {others.shape[1]} features, and X has {p}; give the same columns"
            )
        encoding = _fitted(Encoding.unscaled(list(map(Column, names))), scaling, X_raw, weight, others)
        named = {"weights": weight, "name": name, "target": target if rewards is None else DECISION}
        named |= {"unlabelled": others}
        found = cls._of(X_raw, read, encoding, samples, classes, (*notes, *remarks), **named)
        if event is None:
            return found
        seen = np.asarray(event)
        if seen.shape != (n,):
            raise DataError(
                f"event has shape {seen.shape}, and X has {n} rows; give one value for each sample"
            )
        return found.with_hazards(found.y, seen[kept])

    @staticmethod
    def _target(
        y: ArrayLike | None,
        n: int,
        kept: Any,
        name: str,
        task: Task | None,
        treatments: ArrayLike | None,
        rewards: ArrayLike | None,
        decisions: Sequence[str] | None,
    ) -> Target:
        """Read what is given of n samples, of which some are kept: a target, with treatments or without, or rewards."""
        if (y is None) == (rewards is None) or (rewards is not None and treatments is not None):
            raise DataError(
                "what is to be predicted is not clear: give y, y and treatments, or rewards; rewards can be estimated "
                "of y and treatments by mipforest.reward_scores"
            )
        if rewards is not None:
            read = read_rewards(rewards, decisions)
            if len(read.y) != n:
                raise DataError(
                    f"rewards have {len(read.y)} rows, and X has {n}; give one row for each sample"
                )
            assert read.rewards is not None
            return replace(read, y=read.y[kept], rewards=read.rewards[kept])
        assert y is not None
        if task == "classification" and treatments is None and are_class_numbers(y, n):
            return read_class_numbers(np.asarray(y)[kept], name)
        treated = None if treatments is None else tables.target_column(treatments, n, "treatment")[kept]
        return read_target(tables.target_column(y, n, name)[kept], task, treated)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        target: str | None = None,
        *,
        name: str = "data",
        task: Task | None = None,
        scaling: Scaling = "minmax",
        missing: Missing = "error",
        weight: str | None = None,
        treatment: str | None = None,
        rewards: Sequence[str] = (),
        targets: Sequence[str] = (),
        notes: Sequence[str] = (),
        drop: Collection[str] = (),
        keep: Collection[str] = (),
        fill_from: Collection[str] | None = None,
        dates: Dates | None = None,
        categorical: str | Collection[str] = (),
        decimal: str = ".",
        thousands: str | None = None,
        missing_values: Collection[str] = (),
        date_order: DateOrder | None = None,
        names: Sequence[str] | None = None,
        unlabelled: bool = False,
    ) -> Dataset:
        """Make a data set of a table.

        Columns of numbers are features; every other column is one-hot encoded (all levels, sorted, of two levels the
        second; see :class:`~mipforest.data.encoding.Column`), unless it is ``categorical``. What was done is said in
        ``notes``.

        Parameters
        ----------
        frame
            pandas DataFrame of n rows.
        target
            Name of the column to predict; ``None`` where there are rewards, or several targets.
        rewards
            Names of the columns of rewards, one for each decision, which is called as its column.
        targets
            Names of the columns of several targets: all numbers, or all labels.
        missing
            ``"error"`` refuses missing values, ``"drop"`` drops the rows that have some, ``"impute"`` fills them in, as
            learned from the samples ``fill_from`` (their ids; all if ``None``), ``"branch"`` lets each split send
            those of its column to a side: for models whose splits have one feature.
        name, task, scaling, notes
            As for :meth:`from_arrays`.
        weight, treatment, drop, keep
            As for :func:`~mipforest.data.table.read_table`; with treatments, the target holds their outcomes.
        decimal, thousands, missing_values, dates, date_order
            How values are written in columns of text; see :class:`~mipforest.data.convention.Convention`.
        names
            New names of all columns, in order; theirs if ``None``.
        unlabelled
            Whether rows without a value of the target are samples without a label (:attr:`unlabelled`), which count
            once each; otherwise they are missing values.
        categorical
            Names of columns, of numbers too, of which a split sends a set of levels to each side, or ``"all"`` for all
            columns of text; at most :data:`~mipforest.data.encoding.MAX_SET_LEVELS` levels each, and for models whose
            splits have one feature.

        Raises
        ------
        DataError
            If the table or the target cannot be used; see :func:`mipforest.data.table.read_table`.
        """
        convention = Convention(
            decimal=decimal,
            thousands=thousands,
            missing_values=tuple(map(str, missing_values)),
            dates=dates,
            date_order=date_order,
        )
        table = tables.read_table(
            frame if names is None else tables.renamed(frame, names),
            target,
            missing,
            weight,
            treatment=treatment,
            rewards=rewards,
            targets=targets,
            drop=drop,
            keep=keep,
            convention=convention,
            categorical=categorical,
            task=task,
            unlabelled=unlabelled,
        )
        filling = frozenset(table.samples if fill_from is None else fill_from)
        known = np.array([id in filling for id in table.samples])
        encoding = Encoding.fit(
            table.features,
            fill_from=known if missing == "impute" else None,
            branch=missing == "branch",
            categorical=categorical,
        )
        X_raw, weights, samples, others = encoding.encode(table.features), table.weights, table.samples, None
        remarks = (*notes, *table.notes, *encoding.notes)
        column = table.target
        if unlabelled and target is not None and column.isna().any():
            has_label = column.notna().to_numpy()
            if not has_label.any():
                raise DataError(f"no row has a value of {target!r}; give some samples a label")
            once = "" if weight is None else f", which count once, whatever {weight!r} says"
            lack = (
                f"{(~has_label).sum()} of {len(X_raw)} rows have no {target!r}: samples without a label{once}"
            )
            remarks, column, others = (*remarks, lack), column[has_label].infer_objects(), X_raw[~has_label]
            X_raw, weights = X_raw[has_label], weights[has_label]
            samples = tuple(id for id, kept in zip(samples, has_label, strict=True) if kept)
        encoding = _fitted(encoding, scaling, X_raw, weights, others)
        read = (
            read_rewards(table.rewards, rewards)
            if table.rewards is not None
            else read_targets(column, task)
            if targets
            else read_target(column, task, table.treatment)
        )
        called = target or ", ".join(targets) or DECISION
        named = {"weights": weights, "name": name, "target": called, "weight": weight}
        named |= {"convention": table.convention, "unlabelled": others}
        return cls._of(X_raw, read, encoding, samples, None, remarks, **named)

    @classmethod
    def from_frame_like(
        cls, train: Dataset, frame: Any, *, name: str | None = None, missing: Missing = "error"
    ) -> Dataset:
        """Make a data set of a table as ``train`` was made: its columns, levels, scaling and classes.

        This is how a separate test file is read; one class only, and no column of weights, are fine here.

        Parameters
        ----------
        train
            The data set whose encoding and classes to use.
        frame
            pandas DataFrame with the feature columns and the target column of ``train``.
        name, missing
            Name of the new data set (that of ``train`` if not given); as for :meth:`from_frame`.

        Raises
        ------
        DataError
            If columns are absent, or a level or class does not occur in the training data.
        """
        frame = tables.with_text_names(frame)
        weight = train.weight if train.weight in frame.columns else None
        rewards = train.classes if train.rewards is not None else ()
        target = None if rewards or train.targets else train.target
        frame = train.encoding.as_written(
            frame, train.convention, (target, weight, train.treatment, *rewards, *train.targets)
        )
        numeric = {train.target} if train.task == "regression" else set[str]()
        if not train.target_classes:
            numeric |= {*train.targets}
        if numeric and numeric <= set(frame.columns):
            texts = [name for name in frame.columns if name not in numeric]
            frame = read_columns(frame, train.convention, texts=texts, known=sorted(numeric)).frame
        features = (column.name for column in train.encoding.columns)
        known = {*features, target, weight, train.treatment, *rewards, *train.targets}
        frame = frame[[column for column in frame if column in known]]
        table = tables.read_table(
            frame,
            target,
            missing,
            weight,
            treatment=train.treatment,
            rewards=rewards,
            targets=train.targets,
            keep=None,
            task="classification" if train.target_classes else None,
        )
        lacks = () if weight == train.weight else (f"no column {train.weight!r}: every sample counts once",)
        try:
            X_raw = train.encoding.encode(table.features)
        except UnseenLevelError as error:  # what `unseen` offers is for prediction alone
            raise DataError(error.message, hint="correct it or leave out the row") from None
        read = (
            read_rewards(table.rewards, rewards)
            if table.rewards is not None
            else read_targets_like(table.target, train.target_classes)
            if train.targets
            else read_target_like(train.task, train.class_values, table.target, table.treatment)
        )
        named = {"weights": table.weights, "name": name or train.name, "target": train.target}
        named |= {"convention": train.convention}
        remarks = (*table.notes, *lacks)
        return cls._of(
            X_raw, read, train.encoding, table.samples, train.classes, remarks, weight=weight, **named
        )

    @classmethod
    def _of(
        cls,
        X_raw: FloatArray,
        read: Target,
        encoding: Encoding,
        samples: tuple[str, ...],
        classes: Sequence[str] | None,
        notes: tuple[str, ...],
        **named: Any,
    ) -> Dataset:
        """Put the parts together; ``classes`` renames the classes, other attributes are given as they are."""
        return cls(
            X=encoding.to_scaled(X_raw),
            X_raw=X_raw,
            y=read.y,
            treatments=read.treatments,
            treatment=read.treatment,
            rewards=read.rewards,
            targets=read.targets,
            target_classes=read.target_classes,
            task=read.task,
            features=Axis(encoding.features, "feature"),
            samples=Axis(samples, "sample"),
            classes=Axis(class_names(read, classes), "class").labels,
            class_values=read.class_values,
            encoding=encoding,
            notes=(*notes, *read.notes),
            **named,
        )

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.samples)

    @property
    def p(self) -> int:
        """Number of features."""
        return len(self.features)

    @property
    def n_classes(self) -> int:
        """Number of classes, K, or of treatments; 0 for a regression."""
        return len(self.classes)

    @property
    def labels(self) -> IntArray | FloatArray:
        """What the samples are counted by at the nodes of a tree: the treatments of a prescription, else ``y``."""
        return self.y if self.treatments is None else self.treatments

    @property
    def class_counts(self) -> IntArray:
        """(K,) number of samples of each class."""
        require_classification(self.task, self.name, self.target)
        return np.bincount(self.y.astype(np.int64), minlength=self.n_classes).astype(np.int64)

    @property
    def weighted(self) -> bool:
        """Whether some weight is not 1."""
        return bool((self.weights != 1).any())

    @property
    def sign(self) -> FloatArray:
        """(n,) -1.0 for the first of two classes, +1.0 for the second; a DataError unless there are two."""
        require_classification(self.task, self.name, self.target)
        return signs(self.y, self.classes, self.name)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of features in original units, target, weights where some are not 1, and names but the data set's."""
        names = [self.task, self.target, *self.features.labels, *self.samples.labels, *self.classes]
        names += [name for classes in self.target_classes for name in ("", *classes)]
        more = (
            self.treatments,
            self.rewards,
            self.followed,
            self.weights if self.weighted else None,
            self.unlabelled,
        )
        return fingerprint(names, self.X_raw, self.y, *(array for array in more if array is not None))

    def require_classes(self, maximum: int, model: str = "this model") -> None:
        """Refuse data of more classes than a model takes, or of none, with a DataError."""
        require_classification(self.task, self.name, self.target)
        refuse_more_classes(self.classes, maximum, self.name, model)

    def with_scaling(self, scaling: Scaling) -> Dataset:
        """Scale the features anew, fitted on these samples."""
        return self._with_encoding(_fitted(self.encoding, scaling, self.X_raw, self.weights, self.unlabelled))

    def with_weights(self, weights: ArrayLike) -> Dataset:
        """Give the samples other weights (n,), or refuse them; weight 0 leaves out. Features are scaled anew.

        Of samples with times, weights count beside their exposure, and hazards are estimated anew.
        """
        kept, given, remarks = tables.positive_weights(weights, self.n)
        chosen = replace(self.take(kept), weights=given, notes=(*self.notes, *remarks))
        if chosen.followed is not None:
            followed = np.column_stack([chosen.followed[:, :2], given])
            chosen = replace(chosen, followed=followed)._with_hazards_anew()
        return chosen.with_scaling(self.encoding.scaling)

    def with_hazards(self, time: ArrayLike, event: ArrayLike, *, like: Dataset | None = None) -> Dataset:
        """Give the samples hazard ratios as targets and exposures as weights, for survival trees.

        See :func:`mipforest.survival.relative_risks`.

        Parameters
        ----------
        time, event
            (n,) time of each sample, and whether its event was seen then; else the sample was followed no longer.
        like
            Training samples whose baseline hazard counts for these; their own unless given.

        Returns
        -------
        Dataset
            Task ``"regression"``, with :attr:`followed`.

        Raises
        ------
        DataError
            If a time is negative or no number, or no event was seen.
        """
        known = None if like is None else like.baseline_hazard
        y, weight, baseline = relative_risks(time, event, self.weights, known)
        seen = np.asarray(event, dtype=bool)
        found = replace(
            self,
            y=y,
            weights=weight,
            task="regression",
            target=HAZARD_RATIO,
            classes=(),
            class_values=(),
            treatments=None,
            treatment=None,
            rewards=None,
            followed=np.column_stack([np.asarray(time, dtype=np.float64), seen, self.weights]),
            baseline_hazard=baseline,
            notes=(*self.notes, f"{EVENTS}: {int(seen.sum())} of {self.n} samples, the others were censored"),
        )
        return found.with_scaling(found.encoding.scaling) if like is None else found

    def with_events_of_labels(self, like: Dataset | None = None) -> Dataset:
        """Return samples whose outcomes are times, and whose treatments say whether the event was seen, with hazards.

        Of two labels, such as 0 and 1, the second is that of an event, and so is a single one of :data:`SEEN`; ``like``
        as for :meth:`with_hazards`.

        Raises
        ------
        DataError
            If there are not two labels; otherwise as for :meth:`with_hazards`.
        """
        if self.treatments is not None and self.n_classes == 1 and self.classes[0].lower() in SEEN:
            return self.with_hazards(
                np.asarray(self.y, dtype=np.float64), np.ones(self.n, dtype=bool), like=like
            )
        if self.treatments is None or self.n_classes != 2:
            raise DataError(
                f"the column that tells events has the values {some_of(self.classes)}; it needs two, such as 0 for a "
                "sample that was censored and 1 for one with its event"
            )
        noted = self._with_note(f"{self.treatment} is {self.classes[1]} where its event was seen")
        return noted.with_hazards(np.asarray(self.y, dtype=np.float64), self.treatments == 1, like=like)

    def _with_hazards_anew(self, like: Dataset | None = None) -> Dataset:
        """Return samples with times, whose targets are relative to the hazard of these, or of training samples."""
        assert self.followed is not None
        time, event, weight = self.followed.T
        notes = tuple(note for note in self.notes if not note.startswith(EVENTS))
        return replace(self, weights=weight, notes=notes).with_hazards(time, event, like=like)

    def take(self, rows: ArrayLike) -> Dataset:
        """Select samples by position (or a (n,) mask); encoding, classes and the samples' ids and weights stay.

        Samples without a label are all kept.
        """
        chosen = np.arange(self.n)[np.asarray(rows)]
        samples = Axis(tuple(self.samples[row] for row in chosen.tolist()), "sample")
        X, X_raw, y, weights = (array[chosen] for array in (self.X, self.X_raw, self.y, self.weights))
        treatments, rewards, followed = (
            None if array is None else array[chosen]
            for array in (self.treatments, self.rewards, self.followed)
        )
        return replace(
            self,
            X=X,
            X_raw=X_raw,
            y=y,
            weights=weights,
            samples=samples,
            treatments=treatments,
            rewards=rewards,
            followed=followed,
        )

    def relabel(self, mapping: Mapping[Label, Label]) -> Dataset:
        """Rename or merge classes; a DataError if a class is unknown or one class only would be left.

        Parameters
        ----------
        mapping
            New label of each class, by its label or name; classes not named keep theirs. New ones are sorted.
        """
        require_classification(self.task, self.name, self.target)
        mapped = relabelled(self.classes, self.class_values, mapping)
        return self._merged(mapped, f"classes relabelled: {dict(mapping)}")

    def binarise(self, positive: Label | Sequence[Label]) -> Dataset:
        """Merge the classes into two: the positive one(s) become class 1 (+1), all others class 0 (-1).

        A merged class is called after its members, joined by ``|``. A DataError if none or all are positive.

        Parameters
        ----------
        positive
            A class, or several, by label or name; a DataError if one is unknown.
        """
        require_classification(self.task, self.name, self.target)
        chosen: Any = [positive] if isinstance(positive, str | Real) else positive
        mapped = binarised(self.classes, self.class_values, list(chosen))
        return self._merged(mapped, "classes merged into two: {} (-1), {} (+1)".format(*mapped.names))

    def split(self, test_size: float, seed: int = 0, stratify: bool = True) -> tuple[Dataset, Dataset]:
        """Split at random into a training and a test part.

        The rows are those of scikit-learn's ``train_test_split`` with the same arguments. The scaling is fitted anew
        on the training part and applied to both, so test features may leave [0, 1]. Samples without a label are of the
        training part.

        Parameters
        ----------
        test_size, seed
            Share (between 0 and 1) or number (an int) of test samples, and seed of the shuffle.
        stratify
            Keep the classes' shares in both parts; of no effect on a regression.

        Raises
        ------
        DataError
            If the sizes are impossible, or a class has too few samples to be in both parts.
        """
        stratified = stratify and self.task == "classification"
        strata = self.y.astype(np.int64) if stratified else None
        train, test = map(self.take, split_rows(self.n, test_size, seed, strata, self.classes))
        if train.followed is not None and test.followed is not None:
            train = train._with_hazards_anew()  # hazards are relative to those of training samples
            test = test._with_hazards_anew(like=train)
        test = replace(test, unlabelled=None)
        scaling = self.encoding.scaling
        encoding = _fitted(self.encoding, scaling, train.X_raw, train.weights, train.unlabelled)
        how = f"part of a {'stratified ' if stratified else ''}split, test_size={test_size}, seed={seed}"
        train, test = train._with_encoding(encoding), test._with_encoding(encoding)
        return train._with_note(f"training {how}"), test._with_note(f"test {how}")

    def _with_encoding(self, encoding: Encoding) -> Dataset:
        return replace(self, X=encoding.to_scaled(self.X_raw), encoding=encoding)

    def _with_note(self, note: str) -> Dataset:
        return replace(self, notes=(*self.notes, note))

    def _merged(self, mapped: ClassMapping, note: str) -> Dataset:
        y = mapped.code[self.y.astype(np.int64)]
        return replace(self, y=y, class_values=mapped.values, classes=mapped.names)._with_note(note)
