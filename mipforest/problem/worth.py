"""What a tree or card is worth: its errors, beside one prediction for all samples and CART of the same depth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mipforest.arrays import FloatArray
from mipforest.data import Dataset
from mipforest.formatting import number, percent
from mipforest.trees import Predictor, Topology, Tree
from mipforest.trees.measures import prescription_measures
from mipforest.trees.randomized import RandomizedTree

#: A leaf of fewer training samples than this is named: the share of a class in it says little.
FEW = 5

#: Most entries of the feature matrix times levels for which CART is grown: about a second.
MOST_ENTRIES = 30_000_000

#: Most small leaves that are named.
NAMED_LEAVES = 5

#: Relative difference of sums and means up to which they are the same but for rounding.
SAME = 1e-9

#: Name of what speaks against a result.
MIND = "Mind"

PARTS = (("train", "training"), ("test", "the test"))


def worth_of(
    found: Predictor,
    depth: int,
    train: Dataset,
    test: Dataset | None = None,
    *,
    grow: bool = True,
    by_errors: bool = True,
) -> dict[str, Any]:
    """Compare predictions with those that need no search.

    Parameters
    ----------
    found
        The tree or card, for features in original units.
    depth
        Levels of CART.
    train, test
        Samples; the class of most weight, the mean, the best single decision and CART are those of the training
        samples.
    grow
        Whether to grow CART, which takes a second of large data.
    by_errors
        Whether numbers are predicted for the least squared error, so that they are compared by it.

    Returns
    -------
    dict
        ``measure`` is ``"wrong"``, the number of samples that are predicted wrong, or ``"rmse"``, the root of the mean
        squared error in the unit of the target. ``constant`` is the class of most weight, or the mean. ``train`` and
        ``test`` have the number of samples ``n``, and the measure of the prediction (``found``), of the ``constant``,
        and of ``cart`` (``None`` for large data). Where samples have weights, the entry ``weighted`` of each has the
        shares by weight, or the errors, which decide what is better. ``leaves`` maps the leaves of one to four training
        samples to their numbers. ``remarks`` are sentences on what speaks against the prediction.

        Several targets have no measure, nor have decisions and treatments, as the rest is said by outcomes. The latter
        are held against the best single one of the training samples. ``single`` has the name of that treatment, and
        the mean outcome where all samples have it, of ``train`` and ``test``: as it was where they had it, and as the
        tree estimates it elsewhere.
    """
    leaves = _small_leaves(found, train)
    result: dict[str, Any] = {"leaves": leaves}
    remarks = []
    if train.rewards is None and train.treatments is None and not train.targets and by_errors:
        result |= _compared(found, depth, train, test, grow=grow)
        remarks = list(_no_better(result, found.noun))
    elif train.rewards is not None:
        remarks = list(_no_better_decisions(found, train, test))
    elif isinstance(found, Tree) and found.outcomes is not None:
        result["single"], remarks = _single_treatment(found, train, test)
    return result | {"remarks": remarks + _on_leaves(leaves)}


def _compared(
    found: Predictor, depth: int, train: Dataset, test: Dataset | None, *, grow: bool
) -> dict[str, Any]:
    classes = train.task == "classification"
    constant = float(_most_frequent(train) if classes else np.average(train.y, weights=train.weights))
    grown = None
    if grow and train.n * train.p * depth <= MOST_ENTRIES:
        from mipforest.heuristics.cart import cart

        grown = cart(train, Topology(depth))
    result: dict[str, Any] = {
        "measure": "wrong" if classes else "rmse",
        "constant": train.classes[int(constant)] if classes else constant,
        "depth": depth,
    }
    for part, data in (("train", train), ("test", test)):
        if data is None:
            continue
        predictions = {
            "found": found.predict(data.X_raw),
            "constant": np.full(data.n, constant),
            "cart": None if grown is None else grown.predict(data.X),
        }
        result[part] = {"n": data.n, **{name: _measure(p, data) for name, p in predictions.items()}}
        if data.weighted:
            weighted = {name: _measure(p, data, data.weights) for name, p in predictions.items()}
            result[part]["weighted"] = weighted
    return result


def _most_frequent(data: Dataset) -> int:
    """Return the class of most weight; of those of equal weight the one of most samples."""
    weights = np.bincount(data.y.astype(np.int64), data.weights, data.n_classes)
    return int(np.where(weights >= weights.max() * (1 - SAME), data.class_counts, -1).argmax())


def _measure(predicted: Any, data: Dataset, weights: FloatArray | None = None) -> float | int | None:
    if predicted is None or not data.n:
        return None
    if data.task == "classification":
        wrong = np.asarray(predicted) != data.y
        return int(wrong.sum()) if weights is None else float(np.average(wrong, weights=weights))
    return math.sqrt(float(np.average((np.asarray(predicted) - data.y) ** 2, weights=weights)))


def _small_leaves(found: Predictor, train: Dataset) -> dict[str, int]:
    """Return the numbers of training samples of the leaves with few, by the name of the leaf."""
    if not isinstance(found, Tree) or isinstance(found, RandomizedTree):
        return {}
    leaves, counts = np.unique(found.apply(train.X_raw), return_counts=True)
    few = counts < FEW
    return {f"n{leaf}": int(count) for leaf, count in zip(leaves[few], counts[few], strict=True)}


def _on_leaves(leaves: Mapping[str, int]) -> list[str]:
    if not leaves:
        return []
    named = [f"{leaf} ({count})" for leaf, count in list(leaves.items())[:NAMED_LEAVES]]
    rest = f" and {len(leaves) - NAMED_LEAVES} more" if len(leaves) > NAMED_LEAVES else ""
    which = "a leaf holds" if len(leaves) == 1 else f"{len(leaves)} leaves hold"
    return [f"{which} fewer than {FEW} training samples: {', '.join(named)}{rest}"]


def _no_better(result: Mapping[str, Any], noun: str) -> Iterator[str]:
    """Say what the prediction does not beat, on test samples where there are some."""
    part, words = PARTS[1] if "test" in result else PARTS[0]
    values = result[part].get("weighted", result[part])
    if values["found"] is None:
        return
    beaten_by = [
        words
        for name, words in (("constant", constant_in_words(result)), ("cart", cart_in_words(result)))
        if values[name] is not None and values["found"] >= values[name] * (1 - SAME)
    ]
    if beaten_by:
        what = " in errors" if result["measure"] == "wrong" else ""
        by_weight = " by weight" if "weighted" in result[part] else ""
        yield f"in {words} the {noun} is no better{what}{by_weight} than {', nor than '.join(beaten_by)}"


def _no_better_decisions(found: Predictor, train: Dataset, test: Dataset | None) -> Iterator[str]:
    """Say whether decisions earn no more than the single one that is best in training."""
    data, words = (train, PARTS[0][1]) if test is None else (test, PARTS[1][1])
    assert train.rewards is not None
    single = int(np.average(train.rewards, axis=0, weights=train.weights).argmax())
    if data.rewards is None or not data.n:
        return
    decided = np.asarray(found.predict(data.X_raw), dtype=np.int64)
    earned = float(np.average(data.rewards[np.arange(data.n), decided], weights=data.weights))
    always = float(np.average(data.rewards[:, single], weights=data.weights))
    if earned <= always + SAME * abs(always):
        yield (
            f"in {words} the {found.noun} earns {number(earned)} for each sample, no more than {number(always)} of the "
            f"best single decision, always {train.classes[single]}"
        )


def _single_treatment(found: Tree, train: Dataset, test: Dataset | None) -> tuple[dict[str, Any], list[str]]:
    """Return the best single treatment with its outcomes, and whether the tree's are no better."""

    def outcomes(data: Dataset) -> tuple[float, FloatArray, bool]:
        """Return mean outcomes of what is prescribed and of each treatment for all, and whether lower is better."""
        assert data.treatments is not None
        y, estimates = data.y.astype(np.float64), found.predict_outcomes(data.X_raw)
        prescribed = found.predict(data.X_raw).astype(np.int64)
        m = estimates.shape[1]
        mean, *of_all = (
            prescription_measures(y, data.treatments, chosen, estimates, data.weights).prescribed_outcome
            for chosen in (prescribed, *(np.full(data.n, t) for t in range(m)))
        )
        # What the tree prescribes is the best of its estimates.
        best = estimates[np.arange(data.n), prescribed][:, None]
        others = np.where(np.isfinite(estimates), estimates, best)
        return mean, np.array(of_all), bool((best <= others).mean() >= (best >= others).mean())

    own, of_all, lower = outcomes(train)
    if not np.isfinite(of_all).any():
        return {}, []
    sign = 1.0 if lower else -1.0
    single = int(np.where(np.isfinite(of_all), sign * of_all, np.inf).argmin())
    result: dict[str, Any] = {"treatment": train.classes[single], "train": float(of_all[single])}
    part = PARTS[0][1]
    if test is not None and test.n and test.treatments is not None:
        part = PARTS[1][1]
        own, of_all, _ = outcomes(test)
        result["test"] = float(of_all[single])
    always = float(of_all[single])
    if not sign * own >= sign * always - SAME * abs(always):
        return result, []
    return result, [
        f"in {part} the {found.noun} has a mean outcome of {number(own)}, no better than {number(always)} of the best "
        f"single treatment, always {train.classes[single]}"
    ]


def constant_in_words(worth: Mapping[str, Any]) -> str:
    """Name the prediction that is the same for all samples."""
    constant = worth["constant"]
    return f"the mean {number(constant)}" if worth["measure"] == "rmse" else f"always {constant}"


def cart_in_words(worth: Mapping[str, Any]) -> str:
    """Name the tree of CART."""
    return f"CART of depth {worth['depth']}"


def errors_in_words(worth: Mapping[str, Any], name: str) -> str:
    """Write the errors of a prediction, ``"found"``, ``"constant"`` or ``"cart"``, in training and in the test."""
    counted = worth["measure"] != "rmse"
    parts = []
    for part, words in PARTS:
        values = worth.get(part)
        if values is None or values[name] is None:
            continue
        value, by_weight = values[name], values.get("weighted", {}).get(name)
        if not counted:
            value = value if by_weight is None else by_weight
            parts.append(f"{number(value)} in {words}")
            continue
        share = f"{percent(value / values['n'])}" + (f", {percent(by_weight)} by weight" if by_weight else "")
        of = f" of {values['n']}" if name == "found" else ""
        parts.append(f"{value}{of} in {words} ({share})")
    return ", ".join(parts)


def worth_in_words(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write what a result is worth, as names and sentences.

    Parameters
    ----------
    result
        The content of ``result.json``; it has nothing on it without a tree.
    """
    worth = result.get("worth")
    if not worth:
        return []
    facts = []
    if "measure" in worth:
        counted = worth["measure"] != "rmse"
        target = result["data"].get("target") or "target"
        unit = "" if counted else f", in the unit of {'the target' if target == 'target' else target}"
        facts.append(("Wrong" if counted else "RMSE", errors_in_words(worth, "found") + unit))
        others = [
            f"{words[0].upper()}{words[1:]}: {errors_in_words(worth, name)}"
            for name, words in (("cart", cart_in_words(worth)), ("constant", constant_in_words(worth)))
            if errors_in_words(worth, name)
        ]
        facts += [("Compare", text) for text in others]
    if single := worth.get("single"):
        parts = [
            f"{number(single[part])} in {words}" for part, words in PARTS if single.get(part) is not None
        ]
        name = single["treatment"]
        facts.append(("Compare", f"Always {name}, the best single treatment: outcome {', '.join(parts)}"))
    return facts + [(MIND, text) for text in worth["remarks"]]
