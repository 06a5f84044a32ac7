"""How well the tree predicts: measures, calibration, confusion matrices, predicted over true values, validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from mipforest.arrays import FloatArray, IntArray
from mipforest.data import Dataset
from mipforest.formatting import number, percent
from mipforest.report.content import Content, FittedTree
from mipforest.report.markup import (
    MAX_COLUMNS,
    PARTS,
    Chart,
    Part,
    Point,
    details,
    element,
    legend,
    measure,
    plain,
    section,
    short,
    span,
    table,
    thinned,
    title,
)
from mipforest.report.tree_section import shaded
from mipforest.survival import kaplan_meier
from mipforest.trees import Tree
from mipforest.trees.measures import N_BINS, regression_measures, reward_measures
from mipforest.trees.plot import class_colours

#: Most measures that are listed.
MAX_MEASURES = 50

#: Most survival curves that are drawn, and the share that a median is the time of.
MAX_CURVES, HALF = 10, 0.5

#: Most classes that a matrix shows, those of most samples.
MAX_CLASSES = 30

#: Most settings of a tuning that are drawn or listed.
MAX_SETTINGS = 100

#: From this ratio of the largest to the smallest value on, a hyperparameter is drawn on a logarithmic axis.
WIDE = 50.0


def quality_section(content: Content, fitted: FittedTree) -> Element:
    """Return the section with measures, and what lies behind them."""
    parts: list[Element] = [*measures_table(content), *calibration(content.result)]
    parts += _decisions(content, fitted.tree)
    if fitted.tree.targets:
        parts += _by_target(content, fitted.tree)
    elif fitted.tree.is_classifier:
        parts += _confusion(content, fitted)
    else:
        parts += _survival(content, fitted.tree) or _predicted(content, fitted.tree)
    return section("Quality", *parts, id_="quality")


def measures_table(content: Content) -> list[Element]:
    """Return the table of measures that every model has; no table where there are none."""
    result, reported = content.result, set(map(str, content.result.get("reported") or ()))
    names = dict.fromkeys(
        name.partition("_")[2]
        for name in result
        if name.startswith(("train_", "test_")) and name != "test_data"
    )
    columns = [(part, words) for part, words in PARTS if any(name.startswith(f"{part}_") for name in result)]
    columns = [column for column in columns if column[0] == "train" or result.get("test_data")]
    rows: list[list[Part]] = [
        [title(name), *(measure(name, result.get(f"{part}_{name}")) for part, _ in columns)]
        for name in list(names)[:MAX_MEASURES]
        if name not in reported and name != "reliability"
    ]
    if not rows:
        return []
    return [table(["Measure", *(words for _, words in columns)], rows, "Measures of the predictions")]


def _datasets(content: Content) -> Iterator[tuple[str, Dataset]]:
    if content.samples is not None:
        yield "Training", content.samples.train
        if content.samples.test is not None:
            yield "Test", content.samples.test


def _decisions(content: Content, tree: Tree) -> list[Element]:
    """Compare the tree with each decision for all samples, and with forests, where samples have rewards."""
    named = {words: data for words, data in _datasets(content) if data.rewards is not None}
    if not named:
        return []
    train, test = named["Training"], named.get("Test")
    reason = no_forests(train)
    forests = {} if reason else {"Training": held_out_decisions(train)}
    if test is not None and not reason:
        forests["Test"] = forest_decisions(train, test.X_raw)
    tables = [
        decision_table(
            tree.classes,
            data.rewards,
            tree.predict(data.X_raw).astype(np.int64),
            data.weights,
            words,
            forests.get(words),
        )
        for words, data in named.items()
        if data.rewards is not None
    ]
    text = (
        "The mean reward of the tree, and of each decision if all samples had it, with standard errors. The tree was "
        "chosen on the training samples: its mean reward there is optimistic."
    )
    rule = (
        f"The forests' plug-in rule is left out: {reason}."
        if reason
        else "The forests' plug-in rule takes the decision of the greatest predicted reward, by a random forest "
        f"each ({FOREST['n_estimators']} trees of at most {FOREST_DRAWN:,} samples each, leaves of "
        f"{FOREST['min_samples_leaf']} or more, seed {FOREST_SEED}). Training samples are decided by forests that were "
        f"fitted to the other {FOREST_FOLDS - 1} of {FOREST_FOLDS} folds, so that its mean reward is not optimistic; "
        "test samples by forests of all training samples."
    )
    return [element("h3", "Decisions"), element("p", text), element("p", rule), *tables]


#: Forests of the plug-in rule: scikit-learn's settings, the number of folds, and the seed of both.
FOREST: Mapping[str, Any] = {"n_estimators": 100, "min_samples_leaf": 5, "max_features": 1 / 3}
FOREST_FOLDS, FOREST_SEED = 5, 0

#: Most samples that a tree of a forest is grown on; most samples, and decisions, for which forests take seconds.
FOREST_DRAWN, FOREST_SAMPLES, FOREST_DECISIONS = 2_000, 50_000, 10


def no_forests(train: Dataset) -> str:
    """Say why no forests are fitted; empty where they are."""
    if train.n < 2 * FOREST_FOLDS:
        return f"{train.n} training samples are too few for {FOREST_FOLDS} folds"
    if train.n > FOREST_SAMPLES or train.n_classes > FOREST_DECISIONS:
        return (
            f"forests for {train.n} training samples and {train.n_classes} decisions take long, and the page takes "
            f"{FOREST_SAMPLES} and {FOREST_DECISIONS}"
        )
    return ""


def forest_decisions(train: Dataset, X_raw: FloatArray) -> IntArray:
    """Return the (m,) decisions of greatest predicted reward for samples (m, p), by one forest for each decision."""
    from sklearn.ensemble import RandomForestRegressor

    assert train.rewards is not None
    drawn = min(train.n, FOREST_DRAWN)
    predicted = [
        RandomForestRegressor(**FOREST, max_samples=drawn, random_state=FOREST_SEED)
        .fit(train.X_raw, rewards, train.weights)
        .predict(X_raw)
        for rewards in train.rewards.T
    ]
    decided: IntArray = np.argmax(predicted, axis=0)
    return decided


def held_out_decisions(data: Dataset) -> IntArray:
    """Return the (n,) decisions for samples by forests that were fitted to the other folds."""
    from sklearn.model_selection import KFold

    decided = np.empty(data.n, dtype=np.int64)
    for fit, held in KFold(FOREST_FOLDS, shuffle=True, random_state=FOREST_SEED).split(data.X_raw):
        decided[held] = forest_decisions(data.take(fit), data.X_raw[held])
    return decided


def decision_table(
    classes: tuple[str, ...],
    rewards: FloatArray,
    decided: IntArray,
    weights: FloatArray,
    words: str,
    by_forests: IntArray | None = None,
) -> Element:
    """Return the tree, forests and the decisions (best first): share of the weight, mean reward, its standard error."""
    K = rewards.shape[1]
    shares = np.bincount(decided, weights, minlength=K) / weights.sum()
    own = reward_measures(rewards, decided, weights)
    singles = [reward_measures(rewards, np.full(len(rewards), k), weights) for k in range(K)]
    order = sorted(range(K), key=lambda k: -singles[k].mean_reward)
    rows: list[list[Part]] = [["the tree", "–", number(own.mean_reward), number(own.mean_reward_error)]]
    if by_forests is not None:
        forests = reward_measures(rewards, by_forests, weights)
        rows.append(
            ["forests' plug-in rule", "–", number(forests.mean_reward), number(forests.mean_reward_error)]
        )
    rows += [
        [
            f"{short(classes[k])} for all{' (best single decision)' if k == order[0] else ''}",
            percent(float(shares[k])),
            number(singles[k].mean_reward),
            number(singles[k].mean_reward_error),
        ]
        for k in order[:MAX_CLASSES]
    ]
    made = table(["", "Share in the tree", "Mean reward", "± error"], rows, f"{words} samples")
    if K > MAX_CLASSES:
        made.append(
            element("p", f"{K - MAX_CLASSES} decisions of lower mean rewards are left out.", class_="faint")
        )
    return made


def _confusion(content: Content, fitted: FittedTree) -> list[Element]:
    """Return the matrices of the training samples, made up of the leaves' counts, and of the test samples."""
    prescribes = fitted.tree.prescribes
    found = [
        element(
            "h3", "Treatments that samples had, and what is prescribed" if prescribes else "Confusion matrix"
        )
    ]
    counts = training_counts(fitted)
    if counts is not None:
        found.append(confusion_table(fitted.tree.classes, counts, "Training samples", prescribes=prescribes))
    if content.samples is not None and content.samples.test is not None:
        test = content.samples.test
        of_test = counts_of(test.labels, fitted.tree.predict(test.X_raw), len(fitted.tree.classes))
        found.append(confusion_table(fitted.tree.classes, of_test, "Test samples", prescribes=prescribes))
    return [found[0], element("div", *found[1:], class_="beside")] if len(found) > 1 else []


def _by_target(content: Content, tree: Tree) -> list[Element]:
    """Return a table of what each of several targets is predicted to."""
    named = list(_datasets(content))
    names = ("Right",) if tree.target_classes else ("R²", "MSE", "MAE")
    rows = list[list[Part]]()
    for k, target in enumerate(tree.targets):
        row: list[Part] = [short(target)]
        for _, data in named:
            true, found = data.y[:, k].astype(np.float64), tree.predict(data.X_raw)[:, k].astype(np.float64)
            if tree.target_classes:
                row.append(percent(float(np.average(true == found, weights=data.weights))))
            else:
                found_of = regression_measures(true, found, data.weights)
                row += [number(value) for value in found_of]
        rows.append(row)
    if not named:
        return []
    head = [f"{name}, {words.lower()}" for words, _ in named for name in names]
    return [element("h3", "Targets"), table(["Target", *head], rows, "Predictions by target")]


def _survival(content: Content, tree: Tree) -> list[Element]:
    """Draw how many training samples of each leaf are without their event over time, where samples have times."""
    data = None if content.samples is None else content.samples.train
    if data is None or data.followed is None:
        return []
    time, event, weight = data.followed.T
    leaf, ratio = tree.apply(data.X_raw), np.asarray(tree.predict(data.X_raw), dtype=np.float64)
    leaves = [int(t) for t in np.unique(leaf)]
    colours = class_colours(min(len(leaves), MAX_CURVES))
    chart = Chart((0.0, 1.08 * float(time.max()) or 1.0), (0.0, 1.0), "time", "share without the event")
    marks, rows = list[Element](), list[list[Part]]()
    for t in leaves:
        here = leaf == t
        alive = kaplan_meier(time[here], event[here] > 0, weight[here])
        half = np.flatnonzero(alive.values <= HALF)
        median = number(float(alive.times[half[0]])) if len(half) else "–"
        seen = int((event[here] > 0).sum())
        rows.append([f"n{t}", str(int(here.sum())), str(seen), number(float(ratio[here][0])), median])
        if len(rows) <= MAX_CURVES:
            end = float(time[here].max()), float(alive.at(time[here].max()))
            points = [(0.0, 1.0), *zip(alive.times.tolist(), alive.values.tolist(), strict=True), end]
            marks += [chart.steps(points, "alive", colours[len(rows) - 1]), chart.name(f"n{t}", end)]
    head: list[Part] = ["leaf", "samples", "events", "hazard ratio", "median time"]
    text = (
        "Kaplan-Meier curves of the training samples in each leaf. A curve ends with the last sample that was "
        "followed; the median is the time until which half of a leaf had the event."
    )
    return [
        element("h3", "Survival at the leaves"),
        element("p", text),
        chart.drawn("Survival curves of the leaves; their numbers stand in the table below.", *marks),
        table(head, rows, "Leaves"),
    ]


def _predicted(content: Content, tree: Tree) -> list[Element]:
    """Draw predicted over true values."""
    marks: list[tuple[str, list[Point], int]] = []
    for words, data in _datasets(content):
        predicted = np.asarray(tree.predict(data.X_raw), dtype=np.float64)
        chosen = thinned(data.n)
        marks.append((words, [(float(data.y[i]), float(predicted[i])) for i in chosen], data.n))
    if not marks:
        return []
    both = span([value for _, points, _ in marks for point in points for value in point])
    chart = Chart(both, both, "true value", "predicted value")
    dots = [chart.dots(points, words.lower(), triangles=words == "Test") for words, points, _ in marks]
    diagonal = chart.line([(both[0], both[0]), (both[1], both[1])], "ideal")
    entries = [("ideal", "line", "predicted = true")]
    entries += [
        (words.lower(), "triangle" if words == "Test" else "dot", f"{words} samples{_of(len(points), n)}")
        for words, points, n in marks
    ]
    error = measure("mae", content.result.get("train_mae"))
    summary = (
        "Predicted over true values; the nearer to the diagonal the better. "
        f"Mean absolute error in training: {error}."
    )
    return [
        element("h3", "Predicted and true values"),
        chart.drawn(summary, diagonal, *dots),
        legend(*entries),
    ]


def _of(drawn: int, n: int) -> str:
    return "" if drawn == n else f" ({drawn} of {n}, evenly chosen)"


def training_counts(fitted: FittedTree) -> IntArray | None:
    """Return (K, K) training samples by true class (rows) and predicted class; ``None`` without counts."""
    counts = fitted.statistics.class_counts
    if counts is None:
        return None
    matrix = np.zeros((counts.shape[1],) * 2, dtype=np.int64)
    leaf_counts = counts[fitted.tree.topology.n_branches :]
    np.add.at(matrix.T, fitted.tree.leaf_value.astype(np.int64), leaf_counts)
    return matrix


def counts_of(y: IntArray | FloatArray, predicted: IntArray | FloatArray, n_classes: int) -> IntArray:
    """Return (K, K) samples by true class (rows) and predicted class; IndexError for a class beyond K."""
    matrix = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(matrix, (np.asarray(y, dtype=np.int64), np.asarray(predicted, dtype=np.int64)), 1)
    return matrix


def confusion_table(
    classes: tuple[str, ...], counts: IntArray, caption: str, *, prescribes: bool = False
) -> Element:
    """Return a matrix with the share of each true class that is predicted right; of treatments, of each one had."""
    sizes = counts.sum(axis=1)
    shown = sorted(int(k) for k in np.argsort(-sizes, kind="stable")[:MAX_CLASSES])
    rows: list[list[Part]] = [
        [
            short(classes[k]),
            *(shaded(str(counts[k, other]), counts[k, other] / max(sizes[k], 1)) for other in shown),
            percent(counts[k, k] / sizes[k]) if sizes[k] else "–",
        ]
        for k in shown
    ]
    corner, last = ("had ↓  prescribed →", "the same") if prescribes else ("true ↓  predicted →", "right")
    head: list[Part] = [corner, *(short(classes[k]) for k in shown), last]
    made = table(head, rows, caption, "shaded")
    hidden = len(classes) - len(shown)
    if hidden:
        made.append(element("p", f"{hidden} classes of fewer samples are left out.", class_="faint"))
    return made


def calibration(result: Mapping[str, Any]) -> list[Element]:
    """Draw the reliability tables of ``result.json``, if it has some."""
    bins = {words: result.get(f"{part}_reliability") for part, words in PARTS}
    known = {words: _checked(rows) for words, rows in bins.items() if rows}
    if not known:
        return []
    chart = Chart((0.0, 1.0), (0.0, 1.0), "mean predicted probability", "share of the second class")
    marks = [chart.line([(0.0, 0.0), (1.0, 1.0)], "ideal")]
    entries = [("ideal", "line", "perfectly calibrated")]
    tables = []
    for words, rows in known.items():
        points = [(row["predicted"], row["observed"]) for row in rows]
        triangles = words == "Test"
        marks += [
            chart.line(points, words.lower()),
            chart.dots(points, words.lower(), triangles=triangles),
        ]
        entries.append((words.lower(), "triangle" if triangles else "dot", f"{words} samples"))
        tables.append(_table(words, rows))
    text = (
        "Samples are put into ten bins by their probability of the second class; in each, the mean probability "
        "is compared with the share of samples of that class. Near the diagonal, probabilities can be trusted."
    )
    summary = "Reliability diagram; its numbers stand in the table below."
    return [
        element("h3", "Calibration of the probabilities"),
        element("p", text),
        chart.drawn(summary, *marks),
        legend(*entries),
        details("The numbers of the diagram", *tables),
    ]


def _checked(rows: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Refuse anything but a reliability table (ValueError)."""
    shares = [row[name] for row in rows for name in ("lower", "upper", "predicted", "observed")]
    if len(rows) > N_BINS or not all(0 <= share <= 1 for share in shares):
        raise ValueError("a reliability table has at most ten bins, and shares between 0 and 1")
    return rows


def _table(words: str, rows: list[Mapping[str, Any]]) -> Element:
    cells: list[list[Part]] = [
        [
            f"{row['lower']:g} to {row['upper']:g}",
            str(row["count"]),
            percent(row["predicted"]),
            percent(row["observed"]),
        ]
        for row in rows
    ]
    return table(["Probability", "Samples", "Mean predicted", "Observed"], cells, f"{words} samples")


def tuning_section(content: Content) -> list[Element]:
    """Draw and list the scores of the settings that a tuning tried; nothing for a run of no tuning.

    Raises
    ------
    KeyError, TypeError
        If ``result.json`` does not have the tuning as ``mipforest tune`` does.
    """
    rows, tuning = content.settings, content.result.get("tuning")
    if not rows or not tuning:
        return []
    axes = list(rows[0])[: list(rows[0]).index("chosen")]
    chosen = next((row for row in rows if row["chosen"] == "True"), None)
    score = short(plain(tuning["score"]))
    batch = tuning.get("method") == "batch"
    count, folds = f"{len(rows)} setting{'' if len(rows) == 1 else 's'}", plain(tuning["folds"])
    how = (
        f"{count}, of each the pruning curves of many trees on {folds} fold(s): alpha is the cost of a split whose "
        f"prunings lose least on the samples left out ({title(score).lower()}); the setting that loses least is chosen."
        if batch
        else f"{count}, each fitted on {folds} folds and scored on the samples left out ({title(score).lower()}); rule "
        f"of choice: {short(plain(tuning['rule']))}."
    )
    text = f"{how} The tree of this page is fitted on all training samples with the chosen setting."
    # What a curve says of alpha is no axis, and its trees' training loss is a share of that of one leaf.
    varied = [axis for axis in axes if not (batch and axis == "alpha")]
    return [
        section(
            "Tuning",
            element("p", text),
            *([] if chosen is None else _validation_curve(rows, varied, chosen, score, batch=batch)),
            _settings_table(rows, axes[:MAX_COLUMNS]),
            id_="tuning",
        )
    ]


def _validation_curve(
    rows: Sequence[Mapping[str, str]],
    axes: list[str],
    chosen: Mapping[str, str],
    score: str,
    *,
    batch: bool,
) -> list[Element]:
    """Draw the scores along the hyperparameter of most values, the others as chosen; of a batch those on validation."""
    lines = {axis: _line_along(rows, axes, axis, chosen) for axis in axes}
    along = max(lines, key=lambda axis: len(lines[axis]), default=None)
    if along is None or len(lines[along]) < 2:
        return []
    line = sorted(lines[along], key=lambda row: float(row[along]))
    line = [line[i] for i in thinned(len(line), MAX_SETTINGS)]
    x = np.array([float(row[along]) for row in line])
    log_x = bool(x[0] > 0 and x[-1] / x[0] >= WIDE)
    x = np.log10(x) if log_x else x
    mean, deviation, train = (
        np.array([_value(row[name]) for row in line])
        for name in ("validation_mean", "validation_std", "train_mean")
    )
    known = np.isfinite(mean) & np.isfinite(deviation) & np.isfinite(train)
    if known.sum() < 2:
        return []
    x, mean, deviation, train = x[known], mean[known], deviation[known], train[known]
    others = [f"{short(axis)} = {short(chosen[axis])}" for axis in axes if axis != along]
    chart = Chart(
        span(x),
        span(np.concatenate([mean - deviation, mean + deviation, *([] if batch else [train])])),
        short(along),
        title(score),
        log_x,
    )
    validation = list(zip(x.tolist(), mean.tolist(), strict=True))
    training = list(zip(x.tolist(), train.tolist(), strict=True))
    spread = [
        chart.line([(at, low), (at, high)], "deviation")
        for at, low, high in zip(
            x.tolist(), (mean - deviation).tolist(), (mean + deviation).tolist(), strict=True
        )
    ]
    own = float(chosen[along])
    at = [point for point in validation if np.isclose(point[0], np.log10(own) if log_x else own)]
    marks = [*spread, chart.line(validation, "test")]
    if not batch:
        marks += [chart.line(training, "training"), chart.dots(training, "training")]
    marks += [chart.dots(validation, "test", triangles=True), chart.dots(at, "chosen")]
    summary = f"{title(score)} over {short(along)}; the chosen setting is {short(chosen[along])}."
    entries = legend(
        ("test", "triangle", "validation: mean of the folds, with its standard deviation"),
        *(() if batch else (("training", "dot", "training: mean of the folds"),)),
        ("chosen", "dot", f"chosen: {short(along)} = {short(chosen[along])}"),
    )
    held = [element("p", f"Of the others: {', '.join(others)}.", class_="faint")] if others else []
    return [element("figure", chart.drawn(summary, *marks), element("figcaption", entries)), *held]


def _line_along(
    rows: Sequence[Mapping[str, str]], axes: list[str], along: str, chosen: Mapping[str, str]
) -> list[Mapping[str, str]]:
    """Return the settings that differ from the chosen one in this hyperparameter alone, where it is a number."""
    line = [row for row in rows if all(row[axis] == chosen[axis] for axis in axes if axis != along)]
    try:
        return line if np.isfinite([float(row[along]) for row in line]).all() else []
    except ValueError:
        return []


def _settings_table(rows: Sequence[Mapping[str, str]], axes: list[str]) -> Element:
    chosen = thinned(len(rows), MAX_SETTINGS)
    # A tuning by pruning curves counts no features.
    names = [
        name
        for name in ("validation_mean", "validation_std", "train_mean", "features_mean")
        if name in rows[0]
    ]
    heads: list[Part] = [
        *(short(axis) for axis in axes),
        *("Validation", "± std", "Training", "Features")[: len(names)],
        "Chosen",
    ]
    cells: list[list[Part]] = [
        [
            *(short(row[axis]) for axis in axes),
            *(number(_value(row[name])) for name in names),
            "chosen" if row["chosen"] == "True" else "",
        ]
        for row in (rows[i] for i in chosen)
    ]
    shown = f"{len(chosen)} of {len(rows)} settings" if len(chosen) < len(rows) else f"{len(rows)} settings"
    return details(f"Table of {shown}", table(heads, cells, f"Scores of {shown}, means of the folds"))


def _value(text: str) -> float:
    """Read a number of ``tuning.csv``; NaN where a fold had no tree, or the file was changed."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
