"""A labelled axis: the names of a data set's features, the ids of its samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

from mipforest.errors import DataError, did_you_mean, some_of


@dataclass(frozen=True)
class Axis(Sequence[str]):
    """A sequence of unique labels that knows the position of each.

    Parameters
    ----------
    labels
        The labels, in order.
    of
        What an entry is, for messages: ``"feature"``, ``"sample"``.

    Raises
    ------
    DataError
        If a label occurs twice.
    """

    labels: tuple[str, ...]
    of: str = "entry"

    def __post_init__(self) -> None:
        if len(self._positions) != len(self.labels):
            repeated = [label for label, count in Counter(self.labels).items() if count > 1]
            names = some_of([repr(label) for label in repeated])
            raise DataError(
                f"{self.of} names must differ, but these occur more than once: {names}; rename them"
            )

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {label: position for position, label in enumerate(self.labels)}

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self.labels[index]

    def __contains__(self, label: object) -> bool:
        return label in self._positions

    def position(self, label: str) -> int:
        """Return the position of a label.

        Raises
        ------
        DataError
            If there is no such label; names the nearest.
        """
        try:
            return self._positions[label]
        except KeyError:
            hint = did_you_mean(label, self.labels) or f"; there are: {some_of(self.labels)}"
            raise DataError(f"no {self.of} is called {label!r}{hint}") from None
