"""The risks of a card by total, the samples behind them, measures of totals, and the card as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mipforest.arrays import FloatArray, IntArray
from mipforest.cards.score_card import CardFileError, ScoreCard
from mipforest.formatting import percent


@dataclass(frozen=True, eq=False)
class RiskTable:
    """What each total of a card stands for.

    Attributes
    ----------
    totals
        (k,) totals that the card can give, ascending.
    risks
        (k,) risks.
    samples, positives
        (k,) training samples with this total, and those of them of the second class, weighted where they have weights.
    """

    totals: IntArray
    risks: FloatArray
    samples: FloatArray
    positives: FloatArray

    @property
    def rates(self) -> FloatArray:
        """(k,) shares of the second class among the samples, NaN where there are none."""
        rates = np.full(len(self.totals), np.nan)
        seen = self.samples > 0
        rates[seen] = self.positives[seen] / self.samples[seen]
        return rates

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON takes it."""
        return {
            "totals": self.totals.tolist(),
            "risks": self.risks.tolist(),
            "samples": self.samples.tolist(),
            "positives": self.positives.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RiskTable:
        """Return the table that :meth:`to_dict` described.

        Raises
        ------
        CardFileError
            If its columns are not of one length, or numbers of samples contradict each other.
        """
        found = cls(
            np.array(content["totals"], dtype=np.int64),
            *(np.array(content[name], dtype=np.float64) for name in ("risks", "samples", "positives")),
        )
        columns = (found.totals, found.risks, found.samples, found.positives)
        if found.totals.ndim != 1 or len({column.shape for column in columns}) != 1:
            raise CardFileError("the columns of 'risk_table' are not of one length; solve again")
        counts = np.concatenate([found.samples, found.positives, found.samples - found.positives])
        if not np.isfinite(counts).all() or (counts < 0).any():
            raise CardFileError("the numbers of samples in 'risk_table' do not add up; solve again")
        return found


def risk_table(
    card: ScoreCard, X: Any = None, y: npt.ArrayLike | None = None, weights: FloatArray | None = None
) -> RiskTable:
    """Return the risks of every attainable total, with samples counted if some are given.

    Parameters
    ----------
    card
        The card, as it is to be shown.
    X, y, weights
        (n, p) samples in original units, (n,) class numbers, and (n,) weights or ``None``.
    """
    totals = card.attainable_totals()
    counts = np.zeros((2, len(totals)))
    if X is not None and y is not None:
        at, classes = np.searchsorted(totals, card.totals(X)), np.asarray(y)
        ones = np.ones(len(classes)) if weights is None else weights
        for k in (0, 1):
            counts[k] = np.bincount(at, ones * (classes == k), minlength=len(totals))
    return RiskTable(totals, card.risk_of(totals), counts.sum(axis=0), counts[1])


# ---------------------------------------------------------------------- measures


def calibration_of_totals(table: RiskTable) -> tuple[float, float]:
    """Return how far risks are from the shares observed: the mean over samples, and the root of the mean square.

    Samples of one total have one risk, so no binning is needed.
    """
    seen = table.samples > 0
    share = table.samples[seen] / table.samples.sum()
    error = np.abs(table.risks - table.rates)[seen]
    return float(share @ error), float(np.sqrt(share @ error**2))


# ---------------------------------------------------------------------- text


def card_to_text(card: ScoreCard, table: RiskTable | None = None) -> str:
    """Write a card as two tables: the points, and the risk of each total.

    Parameters
    ----------
    card
        As it is to be shown; :meth:`ScoreCard.nonnegative` is the usual form.
    table
        Its :func:`risk_table`; without samples unless given.
    """
    table = risk_table(card) if table is None else table
    order = np.argsort(-np.abs(card.points), kind="stable")
    rows = [(card.rule_text(k), f"{card.points[k]:+d}") for k in order]
    rows = rows or [("no rule: every sample has the same risk", "0")]
    wide = max(len(text) for text, _ in rows)
    lines = [*(f"  {text:<{wide}}  {points:>7}" for text, points in rows)]
    totals = f"{table.totals[0]} to {table.totals[-1]}" if len(table.totals) > 1 else f"{table.totals[0]}"
    lines = [f"  {'Rule':<{wide}}  {'Points':>7}", *lines, f"  {'Total':<{wide}}  {totals:>7}", ""]
    counted = bool(table.samples.sum())
    heads = ["Total", f"Risk of {card.outcome}", *(("Samples", "Observed") if counted else ())]
    widths = [len(head) for head in heads]
    lines.append("  " + "   ".join(heads))
    for k, total in enumerate(table.totals):
        cells = [f"{total}", percent(table.risks[k])]
        if counted:
            cells += [f"{table.samples[k]:g}", percent(table.rates[k]) if table.samples[k] else "not seen"]
        lines.append("  " + "   ".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)))
    lines += ["", f"  Risk = {card.formula}"]
    return "\n".join(lines)
