"""Where the data of a run come from: enough to load them again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from mipforest.data import DataError, Dataset, load, reward_scores
from mipforest.data.convention import Convention, DateOrder, Dates
from mipforest.data.encoding import Scaling
from mipforest.data.loading import PLAIN, SUFFIXES, TextFormat, is_text_file, read_file
from mipforest.data.reward_scores import Scores
from mipforest.data.table import Missing, text
from mipforest.data.target import Task
from mipforest.errors import did_you_mean, some_of
from mipforest.problem.constraints import Constraint, Parity

#: Entries that the dictionary of a source has whatever they are.
STATED = ("data", "target", "task", "missing", "scaling", "seed", "positive", "test_size", "test")


@dataclass(frozen=True, eq=False)
class LoadedData:
    """The samples of a run.

    Attributes
    ----------
    train
        Training samples; the scaling was fitted on them.
    test
        Samples kept apart, or ``None``.
    labels
        Number of the class, or treatment, by label as it stands in the source, and by name; empty for a regression.
    """

    train: Dataset
    test: Dataset | None
    labels: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """What to load and how to treat it.

    Attributes
    ----------
    data, target, task, missing, scaling, weight, treatment, rewards, drop, keep, sep, decimal, encoding, dates,
    categorical, date_order, thousands, missing_values, keep_words, header, names, skip_lines
        As for :func:`mipforest.data.load`.
    seed
        Seed of generated data, and of the split.
    positive
        Classes that are merged into the positive one, all others into the negative one; empty to merge none.
    test_size
        Share of samples to keep apart for testing, or ``None``.
    test
        File of test samples, or ``None``.
    event
        Column that tells, of times in the target column, at which the event was seen; targets are hazard ratios then
        (:meth:`mipforest.data.Dataset.with_hazards`).
    scores, better
        How rewards are estimated of treatments and outcomes, and which outcomes are better; see
        :func:`mipforest.data.reward_scores.reward_scores`. ``None`` to estimate none.
    rarer_positive
        Whether the rarer of two classes is the positive one where ``positive`` names none.
    unlabelled
        Whether rows without a value of the target are samples without a label; see :func:`mipforest.data.load`.
    balanced
        Whether every class gets the same weight: a sample's weight is multiplied by W / (K W_k), with the weight W_k of
        its class k among the training samples, as scikit-learn's ``class_weight="balanced"``.
    """

    data: str
    target: str | None = None
    task: Task | None = None
    missing: Missing = "error"
    scaling: Scaling = "minmax"
    seed: int = 0
    positive: tuple[str, ...] = ()
    test_size: float | None = None
    test: str | None = None
    weight: str | None = None
    treatment: str | None = None
    event: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    sep: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    dates: Dates | None = None
    rewards: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    scores: Scores | None = None
    better: str = "lower"
    categorical: tuple[str, ...] = ()
    date_order: DateOrder | None = None
    thousands: str | None = None
    missing_values: tuple[str, ...] = ()
    keep_words: tuple[str, ...] = ()
    header: bool = True
    names: tuple[str, ...] | None = None
    skip_lines: int = 0
    balanced: bool = False
    rarer_positive: bool = False
    unlabelled: bool = False

    @property
    def written(self) -> TextFormat:
        """How text files of data are written."""
        return TextFormat(**{field.name: getattr(self, field.name) for field in fields(TextFormat)})

    @property
    def convention(self) -> Convention:
        """How values are written, in text files and in tables."""
        return Convention(**{field.name: getattr(self, field.name) for field in fields(Convention)})

    def as_found(self, data: Dataset) -> DataSource:
        """Return the source with what its data told: how values are written, so that new files are read alike."""
        if self.rarer_positive:
            positive = self.positive or data.classes[1:] if data.n_classes == 2 else self.positive
            return replace(self, positive=positive, rarer_positive=False).as_found(data)
        if not self.data.endswith(SUFFIXES):
            return self
        told = {name: getattr(data.convention, name) for name in ("decimal", "thousands", "date_order")}
        usual = Convention()
        return replace(self, **{name: value for name, value in told.items() if value != getattr(usual, name)})

    @property
    def needs_network(self) -> bool:
        """Whether the data are fetched from the network, unless a copy is kept here."""
        return str(self.data).startswith("openml:")  # files of others may hold anything

    def load(self, fill_from: Collection[str] | None = None) -> LoadedData:
        """Load the data, merge classes, and put test samples apart.

        Parameters
        ----------
        fill_from
            Ids of the samples that say what missing values are filled with; the training samples unless given.

        Raises
        ------
        DataError
            If anything about the data is not as it must be.
        """
        if self.missing == "impute" and self.test_size is not None and fill_from is None:
            # What is filled in is learned from the training samples alone: they are known once the data are read.
            train = replace(self, test_size=None).load().train.split(self.test_size, seed=self.seed)[0]
            return self.load(train.samples.labels)
        loaded = self._loaded(fill_from)
        whole = self._scored(loaded)
        positive = self._positive(whole)
        merged = whole.binarise(positive) if positive else whole
        labels = _labels(whole, merged)
        if self.test is not None:
            test = self._scored(self._test_file(loaded), like=whole)
            test = test.binarise(positive) if positive else test
            return self._balanced(LoadedData(merged, test, labels))
        if self.test_size is not None:
            train, test = merged.split(self.test_size, seed=self.seed)
            return self._balanced(LoadedData(train, test, labels))
        return self._balanced(LoadedData(merged, None, labels))

    def _loaded(self, fill_from: Collection[str] | None) -> Dataset:
        """Load the data as they are; the column of events is read as that of treatments is."""
        try:
            return load(
                self.data,
                target=self.target,
                seed=self.seed,
                scaling=self.scaling,
                task=self.task,
                missing=self.missing,
                weight=self.weight,
                treatment=self.treatment if self.event is None else self.event,
                rewards=self.rewards,
                targets=self.targets,
                drop=self.drop,
                keep=self.keep,
                fill_from=fill_from,
                categorical=self.categorical,
                dates=self.dates,
                date_order=self.date_order,
                unlabelled=self.unlabelled,
                **{field.name: getattr(self, field.name) for field in fields(TextFormat)},
            )
        except DataError as error:
            if self.event is None:
                raise
            words = {
                "column of treatments": "column of events",
                "--treatment": "--event",
                "treatment=": "event=",
            }
            told = [error.message, error.hint, error.option]
            for name, own in words.items():
                told = [text.replace(name, own) for text in told]
            raise DataError(told[0], hint=told[1], option=told[2]) from error

    def _balanced(self, loaded: LoadedData) -> LoadedData:
        """Weigh training and test samples by the classes' weights among the training samples."""
        if not self.balanced:
            return loaded
        train, test = loaded.train, loaded.test
        if train.task != "classification" or train.treatments is not None or train.rewards is not None:
            raise DataError(
                f"{train.name} has no classes to balance",
                hint="weigh the samples yourself",
                option="leave --balanced out",
            )
        sums = np.bincount(train.y.astype(np.int64), train.weights, minlength=train.n_classes)
        factors = train.weights.sum() / (train.n_classes * sums)
        weighed = [
            data and data.with_weights(data.weights * factors[data.y.astype(np.int64)])
            for data in (train, test)
        ]
        assert weighed[0] is not None
        return replace(loaded, train=weighed[0], test=weighed[1] and _scaled_like(weighed[1], weighed[0]))

    def with_groups(self, constraints: Sequence[Constraint], data: Dataset) -> tuple[Constraint, ...]:
        """Return constraints with the groups of the training samples, where these are no column of the model's table.

        Parameters
        ----------
        constraints
            Those on groups name a column of the table or of the file, dropped ones included.
        data
            The training samples, loaded from here.

        Raises
        ------
        DataError
            If there is no such column, or it lacks a value.
        """
        known = {column.name for column in data.encoding.columns} | set(data.features.labels)
        return tuple(
            own.with_groups(lambda name: self._column(name, data))
            if isinstance(own, Parity) and own.groups is None and own.column not in known
            else own
            for own in constraints
        )

    def _column(self, name: str, data: Dataset) -> npt.NDArray[Any]:
        """Return (n,) values of the training samples in a column of the file that is no feature, as text."""
        path = Path(self.data).expanduser()
        columns = [column.name for column in data.encoding.columns]
        if not self.data.endswith(SUFFIXES):
            raise DataError(
                f"{data.name} has no column {name!r}{did_you_mean(name, columns)}; it has {some_of(columns)}"
            )
        frame = read_file(path, self.written if is_text_file(path) else PLAIN)
        if list(frame.columns).count(name) != 1:
            columns = list(map(str, frame.columns))
            raise DataError(
                f"{self.data} has no column {name!r}, or several, to compare groups of"
                f"{did_you_mean(name, columns)}; it has {some_of(columns)}"
            )
        values = frame[name].iloc[[int(id) for id in data.samples.labels]]
        if lacking := int(values.isna().sum()):
            raise DataError(
                f"the column {name} lacks the group of {lacking} of {data.n} training samples; fill these in, or leave "
                "the rows out"
            )
        groups: npt.NDArray[Any] = values.astype(str).to_numpy()
        return groups

    def _scored(self, data: Dataset, like: Dataset | None = None) -> Dataset:
        if self.event is not None:
            return data.with_events_of_labels(like)
        if self.scores is None:
            return data
        return reward_scores(data, self.scores, better=self.better, seed=self.seed)

    def _positive(self, data: Dataset) -> tuple[str, ...]:
        """Return the classes that were named, or the first of two if it is the rarer one; empty to merge none."""
        two = data.task == "classification" and data.n_classes == 2
        if not self.rarer_positive or self.positive or not two:
            return self.positive
        first, second = data.class_counts
        return data.classes[:1] if first < second else ()

    def _test_file(self, train: Dataset) -> Dataset:
        path = Path(str(self.test)).expanduser()
        written = replace(
            self.written, decimal=train.convention.decimal, thousands=train.convention.thousands
        )
        frame = read_file(path, written if is_text_file(path) else PLAIN)
        try:
            return Dataset.from_frame_like(train, frame, name=path.name, missing=self.missing)
        except DataError as error:
            raise error.located(str(path)) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the source as JSON takes it; files with their absolute paths, to be found from elsewhere.

        Beside :data:`STATED` it has what is not as usual.
        """
        entries, usual = asdict(self), asdict(DataSource(data=""))
        entries |= {"data": _absolute(self.data), "test": self.test and _absolute(self.test)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in entries.items()
            if name in STATED or value != usual[name]
        }

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> DataSource:
        """Restore a source from :meth:`to_dict`'s dictionary; TypeError if it is none."""
        if not isinstance(entries, Mapping):
            raise TypeError(f"a data source is an object, not {type(entries).__name__}")
        if absent := [name for name in STATED if name not in entries]:
            raise TypeError(f"the entry {absent[0]!r} is absent")
        given = {field.name: entries[field.name] for field in fields(cls) if field.name in entries}
        lists = (
            "positive",
            "drop",
            "keep",
            "rewards",
            "targets",
            "categorical",
            "missing_values",
            "keep_words",
        )
        given |= {name: tuple(given[name]) for name in lists if name in given}
        if given.get("names") is not None:
            given["names"] = tuple(given["names"])
        source = cls(**given)
        source._check_types()
        return source

    def _check_types(self) -> None:
        """Refuse what a file may hold by mistake or malice."""
        optional = (self.target, self.task, self.test, self.weight, self.treatment, self.event)
        texts = (self.data, *(text or "" for text in optional), *self.positive, *self.drop, *self.keep)
        texts = (
            *texts,
            *self.categorical,
            self.sep or "",
            self.decimal,
            self.encoding,
            *self.rewards,
            *self.targets,
        )
        texts = (*texts, self.thousands or "", *self.missing_values, *self.keep_words, *(self.names or ()))
        if not all(isinstance(text, str) for text in (*texts, self.missing, self.scaling)):
            raise TypeError("one of its texts is none")
        if any("\0" in text for text in texts):
            raise TypeError("a text holds a zero byte")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise TypeError(f"the seed is {self.seed!r}")
        allowed = {
            "task": (None, *get_args(Task)),
            "missing": get_args(Missing),
            "scaling": get_args(Scaling),
            "dates": (None, *get_args(Dates)),
            "date_order": (None, *get_args(DateOrder)),
            "header": (True, False),
            "balanced": (True, False),
            "rarer_positive": (True, False),
            "unlabelled": (True, False),
            "scores": (None, *get_args(Scores)),
            "better": ("lower", "higher"),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise TypeError(f"{name} is {getattr(self, name)!r}")
        if isinstance(self.skip_lines, bool) or not isinstance(self.skip_lines, int) or self.skip_lines < 0:
            raise TypeError(f"the number of lines to skip is {self.skip_lines!r}")
        share = self.test_size
        if share is not None and not (isinstance(share, float) and 0 < share < 1):
            raise TypeError(f"the share of test samples is {share!r}")


def _scaled_like(test: Dataset, train: Dataset) -> Dataset:
    return replace(test, X=train.encoding.to_scaled(test.X_raw), encoding=train.encoding)


def _absolute(spec: str) -> str:
    path = Path(spec).expanduser()
    return str(path.absolute()) if spec.endswith(SUFFIXES) and path.is_file() else spec


def _labels(whole: Dataset, merged: Dataset) -> dict[str, int]:
    """Return the number of the merged class by every label and name of a class before and after merging.

    Of a prescription, the number of the treatment by its label; of a policy, that of the decision.
    """
    labels = {name: number for number, name in enumerate(merged.classes)}
    if whole.rewards is not None:
        return labels
    for k, (name, value) in enumerate(zip(whole.classes, whole.class_values, strict=True)):
        number = int(merged.labels[int(np.argmax(whole.labels == k))])
        labels |= {name: number, text(value): number}
    return labels
