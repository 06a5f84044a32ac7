"""The score card as people use it: points, the risk of each total, and how well risks agree with what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.formatting import percent
from mipforest.report.content import Content
from mipforest.report.markup import PARTS, Part, details, element, plain, section, short, table
from mipforest.report.quality import calibration, confusion_table, counts_of, measures_table
from mipforest.report.tree_section import shaded, try_card
from mipforest.runs import SavedCard
from mipforest.solvers.solution import gap_in_words


def card_sections(content: Content, saved: SavedCard) -> list[Element]:
    """Return the sections of a score card: the card, and its quality."""
    return [_card_section(content, saved), _quality_section(content, saved)]


def _card_section(content: Content, saved: SavedCard) -> Element:
    card = saved.card
    outcome = short(card.outcome)
    text = (
        "Add the points of every line that applies, and look the total up below: there stands the risk of "
        f"{outcome}. All numbers are in original units."
    )
    return section(
        "Score card",
        element("p", text),
        _points(saved),
        element("h3", f"Risk of {outcome} by total"),
        _risks(saved),
        element(
            "p",
            f"Risk = {card.formula}. Beside it stand the training samples with this total, and the share of them for "
            "which it came true.",
            class_="faint",
        ),
        *_proof(content.result),
        *try_card(content, saved),
        *_other_forms(saved),
        id_="card",
    )


def _proof(result: Mapping[str, Any]) -> list[Element]:
    """Say in words what is proven of the card, if it is proven to be the best."""
    if result["status"] != "optimal" or result.get("proven_for") != "definition" or not result["verified"]:
        return []
    rules, least, most = (plain(result["parameters"][name]) for name in ("rules", "min_points", "max_points"))
    text = (
        f"Proven: no other card of at most {rules} rules with {least} to {most} points each fits the training samples "
        f"better (log-loss, gap {gap_in_words(result['objective'], result['bound'])})."
    )
    return [element("p", text)]


def _points(saved: SavedCard) -> Element:
    card = saved.card
    order = np.argsort(-np.abs(card.points), kind="stable")
    rows: list[list[Part]] = [[card.rule_text(k), str(card.points[k])] for k in order]
    least, most = card.attainable_totals()[[0, -1]]
    rows = rows or [["no rule: every sample has the same risk", "0"]]
    rows.append([element("strong", "Total"), element("strong", f"{least} to {most}")])
    return table(["If", "Points"], rows, "Points of the card")


def _risks(saved: SavedCard) -> Element:
    risks = saved.table
    rows: list[list[Part]] = [
        [
            str(total),
            shaded(percent(risk), risk),
            f"{n:g}",
            percent(rate) if n else "not seen",
        ]
        for total, risk, n, rate in zip(
            risks.totals.tolist(), risks.risks, risks.samples, risks.rates, strict=True
        )
    ]
    heads: list[Part] = ["Total", "Risk", "Training samples", "Observed"]
    return table(heads, rows, "Risk of each total that the card can give", "shaded risks")


def _other_forms(saved: SavedCard) -> list[Element]:
    """Show the same risks with rules of one direction: a rule turned round moves its points to the intercept."""
    card = saved.card
    if not any(rule.below for rule in card.rules):
        return []
    turned = card.one_direction()
    rows: list[list[Part]] = [
        [turned.rule_text(k), f"{points:+d}"] for k, points in enumerate(turned.points.tolist())
    ]
    text = f"The same risks with all rules in one direction, at the intercept {turned.intercept:.4f}."
    return [
        details(
            "The card with rules in one direction",
            table(["If", "Points"], rows, "The same card, turned"),
            text,
        )
    ]


def _in_words(result: Mapping[str, Any]) -> list[Element]:
    """Say what the AUC and the calibration error mean."""
    texts = []
    for part, words in PARTS:
        auc, error = result.get(f"{part}_auc"), result.get(f"{part}_calibration_error")
        if auc is not None and error is not None:
            texts.append(
                f"{words} samples: of two, one for which it came true and one for which it did not, the former has the "
                f"higher total in {percent(auc)} of all pairs (AUC; equal totals count half). The mean calibration "
                f"error is {100 * error:.1f} percentage points."
            )
    return [element("p", text) for text in texts]


def _quality_section(content: Content, saved: SavedCard) -> Element:
    parts: list[Element] = [
        *measures_table(content),
        *_in_words(content.result),
        *calibration(content.result),
    ]
    matrices = []
    if content.samples is not None:
        for words, data in (("Training", content.samples.train), ("Test", content.samples.test)):
            if data is not None:
                predicted = saved.card.predict(data.X_raw)
                counts = counts_of(data.y, predicted, 2)
                matrices.append(confusion_table(saved.card.classes, counts, f"{words} samples"))
    if matrices:
        parts += [element("h3", "Confusion matrix"), element("div", *matrices, class_="beside")]
    return section("Quality", *parts, id_="quality")
