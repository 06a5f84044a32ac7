"""A constraint as an object: its words, its rows in a model, and its definition on a tree."""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self

from mipforest.data import Dataset
from mipforest.errors import DataError
from mipforest.heuristics.thresholds import Thresholds
from mipforest.model import Model
from mipforest.problem.operations import Instance, Operations
from mipforest.problem.restrictions import Restrictions
from mipforest.trees import Predictor, Topology, Tree


class Built(Protocol):
    """A formulation declared in a model: a problem, or a part of a larger model."""

    @property
    def formulation(self) -> Operations:
        """What was declared."""

    @property
    def instance(self) -> Instance:
        """What it knows of the data set."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def data(self) -> Dataset:
        """Training samples."""

    @property
    def topology(self) -> Topology:
        """Index sets of the tree."""

    def free_name(self, name: str) -> str:
        """Return a name that no block has yet."""


class Holding(NamedTuple):
    """What a constraint is on a tree.

    Attributes
    ----------
    value, limit
        What the tree has on the training samples, and what it may or has to have.
    binds
        Whether the value is at its limit: one sample or one feature more would break it. ``None`` where the value can
        have no other, as that of a forbidden feature: what such a constraint does is in its price.
    met
        Whether the tree satisfies it.
    """

    value: float
    limit: float
    binds: bool | None
    met: bool = True


#: Far above the rounding of shares, far below the share of one sample.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Constraint(ABC):
    """One constraint on a tree; a subclass for each kind."""

    #: Name of its option on the command line, without the dashes, and of its key in a file.
    kind: ClassVar[str]
    #: Whether value and limit are shares, shown in percent.
    _shares: ClassVar[bool] = False
    #: Whether rows of a model say it; without, only searches that list trees keep it.
    has_rows: ClassVar[bool] = True
    #: Whether a search keeps it by completing each tree that it lists to a point of the model.
    by_completion: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> list[Self]:
        """Read what stands after the option: one constraint, or several.

        Raises
        ------
        DataError
            If it is none.
        """

    @property
    @abstractmethod
    def words(self) -> str:
        """What stands after the option for this constraint."""

    @abstractmethod
    def rows(self, problem: Built) -> None:
        """Add its rows to a model.

        Raises
        ------
        DataError
            If it names what there is not, or cannot hold.
        NotExpressed
            If the model cannot express it.
        """

    @abstractmethod
    def holds(self, tree: Predictor, data: Dataset) -> Holding:
        """Return its value on a tree (for samples in original units) and the training samples, beside its limit."""

    def admits(self, tree: Predictor, data: Dataset) -> bool:
        """Return whether a tree (for samples in original units) is one that its rows leave in a model."""
        return self.holds(tree, data).met

    def restrict(self, own: Restrictions, problem: Built, thresholds: Thresholds) -> Restrictions:  # noqa: ARG002
        """Return restrictions of univariate trees with this constraint among them.

        It is asked of every tree where a subclass does not say what it leaves. Then it has to hold for a tree without a
        split between two leaves of one label where it holds for the tree with that split.

        Parameters
        ----------
        own
            Restrictions by other constraints.
        problem
            What was built.
        thresholds
            All thresholds of its data.
        """
        return replace(own, asked=(*own.asked, self.asked_of_scaled(problem)))

    def asked_of_scaled(self, problem: Built) -> Callable[[Tree], bool]:
        """Return whether it admits a tree, of trees for scaled features."""
        encoding = problem.data.encoding

        def admits(tree: Tree) -> bool:
            return self.admits(tree.with_scaling(encoding.offset, encoding.scale), problem.data)

        return admits

    @property
    def is_of_whole_tree(self) -> bool:
        """Whether it limits which features the whole tree uses, and nothing else: any search keeps it then."""
        return False

    @property
    def of_shares(self) -> bool:
        """Whether value and limit are shares, shown in percent."""
        return self._shares

    def __str__(self) -> str:
        return f"{self.kind} {self.words}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        given = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.init and field.metadata.get("kept", True)
        }
        entries = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in given.items()
            if value is not None
        }
        return {"kind": self.kind, **entries}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> Self:
        """Restore it from the entries of :meth:`to_dict`, without the kind.

        Raises
        ------
        DataError
            If an entry is unknown, absent or none of its kind.
        """
        known = {field.name for field in fields(cls) if field.init and field.metadata.get("kept", True)}
        if unknown := sorted(entries.keys() - known):
            raise DataError(f"{cls.kind} has no entry {unknown[0]!r}; it has {', '.join(sorted(known))}")
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in entries.items()}
        try:
            return cls(**given)
        except TypeError as error:
            raise DataError(f"{cls.kind}: {dict(entries)!r:.80} does not say what it is: {error}") from None

    def at_most(self, value: float, limit: float, step: float) -> Holding:
        """Return a value that may be at most a limit, and changes by at most a step."""
        return Holding(value, limit, value + step > limit + ROUNDING, value <= limit + ROUNDING)

    def at_least(self, value: float, limit: float, step: float) -> Holding:
        """Return a value that has to be at least a limit, and changes by at most a step."""
        return Holding(value, limit, value - step < limit - ROUNDING, value >= limit - ROUNDING)


class Named(Constraint):
    """A constraint that is stated in Python, and known by the name of its rows."""

    name: str

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Refuse: it has no words on the command line."""
        raise DataError(f"{text!r}: {cls.kind} are stated in Python, by problem.model.add or a helper")

    @property
    def words(self) -> str:
        """The name."""
        return self.name

    def __str__(self) -> str:
        return self.name

    def to_dict(self) -> dict[str, Any]:
        """Return its name: it is stated in Python."""
        return {"kind": self.kind, "name": self.name}


@dataclass(frozen=True)
class Condition(Constraint):
    """Any condition on the tree, as a function of Python: a search lists trees by objective until one satisfies it.

    Attributes
    ----------
    text
        What it says, for messages and reports.
    function
        Takes the tree for samples in original units, and returns whether it will do. Where it will do with a split
        between two leaves of one label, it has to without that split.
    """

    text: str
    function: Callable[[Any], bool] = field(metadata={"kept": False})

    kind: ClassVar[str] = "condition"
    has_rows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise DataError(f"condition {self.text!r}: {self.function!r:.60} is no function of a tree")

    @classmethod
    def parse(cls, text: str) -> list[Self]:
        """Refuse: a function has no words."""
        raise DataError(f"condition {text!r}: a function of the tree is stated in Python, by problem.require")

    @property
    def words(self) -> str:
        """What it says."""
        return self.text

    def rows(self, problem: Built) -> None:
        """Add nothing."""

    def holds(self, tree: Predictor, data: Dataset) -> Holding:  # noqa: ARG002
        """Return 1 where it holds, else 0."""
        met = bool(self.function(tree))
        return Holding(float(met), 1.0, None, met)


def listed(text: str) -> list[str]:
    """Read texts with commas between them; one with a comma in it stands in double quotes."""
    found = [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]
    if not found or not all(found):
        raise DataError(f"{text!r} is no list of names; write them with commas between, as in age,sex")
    return found


def joined(texts: Sequence[str]) -> str:
    """Write texts with commas between them, as :func:`listed` reads them."""
    return ",".join(f'"{text}"' if "," in text else text for text in texts)


def share(kind: str, text: str | float) -> float:
    """Read a share from 0 to 1, ``5%`` or ``0.05``."""
    try:
        given = (
            float(text[:-1]) / 100 if isinstance(text, str) and text.strip().endswith("%") else float(text)
        )
    except (TypeError, ValueError):
        raise DataError(f"{kind}: {text!r} is no share; write one as 5% or 0.05") from None
    if not 0 <= given <= 1:
        raise DataError(f"{kind}: {text} is no share from 0% to 100%; write one as 5% or 0.05")
    return given


def percent(value: float) -> str:
    """Write a share, as :func:`share` reads it."""
    return f"{100 * value:.10g}%"


def named_share(kind: str, text: str) -> tuple[str, float]:
    """Read ``NAME=5%``; the name may hold equals signs."""
    name, equals, value = text.rpartition("=")
    if not equals or not name.strip():
        raise DataError(f"{kind}: {text!r} is not NAME=SHARE; write it as in {kind} NAME=5%")
    return name.strip(), share(kind, value.strip())


def name(kind: str, given: Any) -> str:
    """Return a name that was given as a text."""
    if not isinstance(given, str) or not given:
        raise DataError(f"{kind}: {given!r:.60} is no name; give a text")
    return given


def names(kind: str, given: Any) -> tuple[str, ...]:
    """Return one name, or several, as a tuple."""
    several = (given,) if isinstance(given, str) else tuple(given)
    if not several:
        raise DataError(f"{kind}: no name is given; give one at least")
    return tuple(name(kind, one) for one in several)


def count(kind: str, value: Any, least: int = 0) -> int:
    """Read a whole number of at least some size."""
    try:
        number = int(value)
        if isinstance(value, bool) or number != float(value) or number < least:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{kind}: {value!r} is no whole number of {least} or more") from None
    return number
