"""Score cards: rules that give integer points, whose total stands for a risk. Knows no model and no solver.

The picture is loaded on first use, so that everything else does not wait for matplotlib.

Source: T. Aldinucci, *Optimization Methods for Interpretable Machine Learning*, PhD thesis, chapter 4.
"""

from typing import TYPE_CHECKING, Any

from mipforest.cards.score_card import (
    CardFileError,
    PointRule,
    RiskTable,
    ScoreCard,
    calibration_of_totals,
    card_from_dict,
    card_to_text,
    risk_table,
)

if TYPE_CHECKING:
    from mipforest.cards.picture import plot_card

__all__ = [
    "CardFileError",
    "PointRule",
    "RiskTable",
    "ScoreCard",
    "calibration_of_totals",
    "card_from_dict",
    "card_to_text",
    "plot_card",
    "risk_table",
]


def __getattr__(name: str) -> Any:
    if name == "plot_card":
        from mipforest.cards.picture import plot_card

        return plot_card
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
