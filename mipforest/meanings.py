"""What a feature of a model says of a column of the table it was made of: which levels, and where missing values go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple


class Condition(NamedTuple):
    """A condition on a column, ``colour in {red, blue}``.

    Attributes
    ----------
    column
        Name of the column.
    relation
        ``"is"``, ``"is not"``, ``"in"``, ``"not in"``, ``">="``, ``"<="``, ``">"`` or ``"<"``.
    value
        What stands behind it, ``"{red, blue}"``, ``"40 or missing"``.
    """

    column: str
    relation: str
    value: str

    def __str__(self) -> str:
        return " ".join(self)


#: What a condition says of rows where it holds, and of those where it does not, missing ones among either.
OR_MISSING, MISSING_LEFT = " or missing", " (missing goes left)"


@dataclass(frozen=True)
class LevelSet:
    """A feature that is 1 where a column has one of some levels, else 0.

    Attributes
    ----------
    column
        Name of the column.
    levels
        The levels; none where the feature tells missing values alone.
    other
        The only level besides these, so that 0 reads ``smoker is no``; ``None`` where there are several, or none.
    missing
        Whether a missing value counts as 1 or as 0; ``None`` where none is taken.
    """

    column: str
    levels: tuple[str, ...]
    other: str | None = None
    missing: bool | None = None

    def condition(self, *, holds: bool, note: bool = False) -> Condition:
        """Return what 1 (``holds``) or 0 says of the column.

        Parameters
        ----------
        holds
            Whether the feature is 1.
        note
            Whether to say that missing values go left, where they do not meet the condition.
        """
        if not self.levels:
            return Condition(self.column, "is", "missing" if holds else "not missing")
        end = ""
        if self.missing is not None:
            end = OR_MISSING if self.missing is holds else MISSING_LEFT if note else ""
        if holds or self.other is None:
            several = len(self.levels) > 1
            relation = ("in" if several else "is") if holds else ("not in" if several else "is not")
            text = f"{{{', '.join(self.levels)}}}" if several else self.levels[0]
            return Condition(self.column, relation, text + end)
        return Condition(self.column, "is", self.other + end)


@dataclass(frozen=True)
class MissingEnd:
    """A feature of numbers that counts a missing value as smaller, or as larger, than all known ones.

    Attributes
    ----------
    column
        Name of the column.
    low
        Whether a missing value counts as smaller.
    known
        Smallest known value, where ``low``, else the largest: what lies beyond it stands for a missing value.
    """

    column: str
    low: bool
    known: float

    def is_missing(self, value: float) -> bool:
        """Return whether a value of the feature stands for a missing one."""
        return value < self.known if self.low else value > self.known

    def tells_missing(self, relation: str, threshold: float) -> bool:
        """Return whether a comparison with a threshold separates missing values from all known ones."""
        if threshold == self.known:
            return self.low == (relation in (">=", "<"))
        return (threshold < self.known) == self.low

    def condition(self, relation: str, threshold: float, text: str, *, note: bool = False) -> Condition:
        """Return what a comparison of the feature with a threshold says of the column.

        Parameters
        ----------
        relation
            ``">="``, ``"<"``, ``"<="`` or ``">"``.
        threshold
            The threshold, in original units.
        text
            The same as it is shown.
        note
            Whether to say that missing values go left, where they do not meet the condition.
        """
        meets = self.low == relation.startswith("<")
        if self.tells_missing(relation, threshold):
            return Condition(self.column, "is", "missing" if meets else "not missing")
        return Condition(
            self.column, relation, text + (OR_MISSING if meets else MISSING_LEFT if note else "")
        )


#: What a feature says of a column; ``None`` for a column of numbers as it stands.
Meaning = LevelSet | MissingEnd | None


def meaning_of(given: Any) -> Meaning:
    """Return a meaning from a column's name and a level, or from what :func:`to_json` gives.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if given is None or isinstance(given, LevelSet | MissingEnd):
        return given
    refusal = ValueError(f"what a feature says of a column is null or two texts, or an object: {given!r:.60}")
    if isinstance(given, list | tuple):
        if len(given) != 2 or not all(isinstance(name, str) for name in given):
            raise refusal
        return LevelSet(given[0], (given[1],))
    if not isinstance(given, dict) or not isinstance(given.get("column"), str):
        raise refusal
    if "known" in given:
        known, low = given["known"], given.get("low")
        if not isinstance(low, bool) or isinstance(known, bool) or not isinstance(known, int | float):
            raise refusal
        return MissingEnd(given["column"], low, float(known))
    levels, other, missing = given.get("levels"), given.get("other"), given.get("missing")
    if (
        not isinstance(levels, list)
        or not all(isinstance(level, str) for level in levels)
        or not (other is None or isinstance(other, str))
        or not (missing is None or isinstance(missing, bool))
        or not (levels or missing)
    ):
        raise refusal
    return LevelSet(given["column"], tuple(levels), other, missing)


def renamed(meaning: Meaning, name: Callable[[str], str]) -> Meaning:
    """Return a meaning whose column and levels are written otherwise."""
    if meaning is None:
        return None
    if isinstance(meaning, MissingEnd):
        return replace(meaning, column=name(meaning.column))
    other = None if meaning.other is None else name(meaning.other)
    return replace(meaning, column=name(meaning.column), levels=tuple(map(name, meaning.levels)), other=other)


def to_json(meaning: Meaning) -> Any:
    """Return a meaning as JSON takes it; :func:`meaning_of` restores it."""
    if meaning is None:
        return None
    if isinstance(meaning, MissingEnd):
        return {"column": meaning.column, "low": meaning.low, "known": meaning.known}
    if len(meaning.levels) == 1 and meaning.other is None and meaning.missing is None:
        return [meaning.column, meaning.levels[0]]
    entry: dict[str, Any] = {"column": meaning.column, "levels": list(meaning.levels)}
    entry |= {} if meaning.other is None else {"other": meaning.other}
    return entry | ({} if meaning.missing is None else {"missing": meaning.missing})
