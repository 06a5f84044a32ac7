"""``card.json``: a score card with what it takes to predict from a table in original units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mipforest.cards import (
    CardFileError,
    RiskTable,
    ScoreCard,
    card_from_dict,
    card_to_text,
    risk_table,
)
from mipforest.data import DataError, Encoding
from mipforest.runs.data_source import LoadedData
from mipforest.runs.saved_tree import Saved, SavedTree, labels_of, target_of
from mipforest.runs.text_files import read_json_object
from mipforest.trees import Predictor, Tree, TreeFileError


@dataclass(frozen=True, eq=False)
class SavedCard(Saved):
    """A score card that takes tables as they are in files.

    Attributes
    ----------
    card
        The card, without negative points.
    encoding, target, labels
        As for :class:`~mipforest.runs.saved_tree.Saved`.
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
    try:
        content = read_json_object(path)
        card = card_from_dict(content)
        return SavedCard(
            card,
            Encoding.from_dict(content["encoding"]),
            target_of(content["target"]),
            labels_of(content["labels"], card),
            RiskTable.from_dict(content["risk_table"]),
        )
    except KeyError as absent:
        raise CardFileError(
            f"{path}: the entry {absent} is absent: a card without the encoding of its data; use the card.json of a run"
        ) from None
    except (CardFileError, TreeFileError, DataError) as error:
        raise CardFileError(f"{path}: {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise CardFileError(f"{path}: not a score card of a run: {error}") from error


def saved_of(found: Predictor, data: LoadedData) -> SavedTree | SavedCard:
    """Join what a solve has found with the data that it was fitted on."""
    if isinstance(found, ScoreCard):
        return SavedCard.of(found, data)
    if isinstance(found, Tree):
        return SavedTree.of(found, data)
    raise TypeError(f"a run keeps trees and score cards, and this is a {found.noun}")
