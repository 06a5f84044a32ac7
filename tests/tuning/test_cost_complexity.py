"""Pruning sequences against all prunings of small trees, and the cost of a split that curves choose."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from mipforest.data import Dataset
from mipforest.objectives.leaf_losses import ClassLoss, PinballLoss, PrescriptionLoss, error_loss
from mipforest.problem.structure import TreeCharges
from mipforest.trees import Topology, Tree
from mipforest.tuning import TuningError
from mipforest.tuning.cost_complexity import (
    Curve,
    NodeLosses,
    curves_of,
    mean_curve,
    minimum,
    node_losses,
    pruning_sequence,
)

DEPTH, P = 3, 3

KINDS = ["classes", "weights", "costs", "squared", "absolute", "linear", "hyperplanes"]

MU, N_TREATMENT, COST = 0.6, 2, 1.5


def samples(kind: str, seed: int) -> tuple[TreeCharges, Dataset, Dataset]:
    """What trees are charged, training and validation samples; few values per feature make ties."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (60, P)) / 5
    weights = rng.integers(1, 4, 60) if kind in ("weights", "squared") else None
    if kind in ("squared", "absolute", "linear"):
        y, task = 10 * X[:, 0] + (X[:, 1] > 0.5) + rng.normal(size=60), "regression"
    else:
        y, task = ((X[:, 0] + X[:, 1] > 1).astype(int) + rng.integers(0, 2, 60)), "classification"
    data = Dataset.from_arrays(X, y, task=task, scaling="minmax", weights=weights)
    train, validation = data.take(np.arange(40)).with_scaling("minmax"), data.take(np.arange(40, 60))
    charges = TreeCharges(
        y=train.y,
        loss=ClassLoss(np.array([[0, 1, 4], [2, 0, 1], [1, 3, 0.0]]) if kind == "costs" else None)
        if task == "classification"
        else error_loss(kind.replace("linear", "squared")),
        weight=train.weights if train.weighted else None,
        coefficient_cost=2.0 if kind == "linear" else None,
    )
    return charges, train, validation


def random_tree(kind: str, train: Dataset, seed: int) -> Tree:
    """Return a tree whose nodes split at random, some not at all."""
    rng = np.random.default_rng(seed)
    topology = Topology(DEPTH)
    w, b = np.zeros((topology.n_branches, P)), np.zeros(topology.n_branches)
    for t in topology.branches:
        if t == 0 or rng.random() < 0.8:
            used = rng.choice(P, 2 if kind == "hyperplanes" else 1, replace=False)
            w[t, used] = 1.0 if kind != "hyperplanes" else rng.uniform(0.2, 1, 2)
            b[t] = -rng.uniform(0.2, 0.8) * w[t].sum()
    classes = tuple(train.classes)
    return Tree(DEPTH, w, b, np.zeros(topology.n_leaves), classes, tuple(train.features.labels))


def prunings(tree: Tree) -> list[Tree]:
    """Return the tree with every set of its splits that holds the splits above its own."""
    splits = [t for t in tree.topology.branches if not tree.is_trivial(t)]
    found = []
    for chosen in product([False, True], repeat=len(splits)):
        kept = {t for t, keeps in zip(splits, chosen, strict=True) if keeps}
        ways = [[(t - 1) // 2] for t in kept]
        for way in ways:
            while way[-1] > 0:
                way.append((way[-1] - 1) // 2)
        if all(s in kept or tree.is_trivial(s) for way in ways for s in way if s >= 0):
            keeps = np.isin(np.arange(len(tree.b)), list(kept))
            found.append(replace(tree, w=np.where(keeps[:, None], tree.w, 0), b=np.where(keeps, tree.b, 0)))
    return found


def measured(tree: Tree, charges: TreeCharges, train: Dataset, validation: Dataset) -> tuple[float, float]:
    """Return training loss and validation loss of a tree with the best leaves, sample by sample."""
    training = held_out = 0.0
    reached = tree.with_scaling(train.encoding.offset, train.encoding.scale)
    at, others = reached.apply(train.X_raw), reached.apply(validation.X_raw)
    passed, X_validation = tree.decision_path(train.X), train.encoding.to_scaled(validation.X_raw)
    for leaf in {*at, *others}:
        node = leaf
        while not passed[:, node].any():
            node = (node - 1) // 2
        rows, away = passed[:, node], others == leaf
        y, weight, X = train.y[rows], train.weights[rows], train.X[rows]
        if charges.predicts_class:
            costs = 1 - np.eye(len(train.classes)) if charges.loss.costs is None else charges.loss.costs
            totals = (weight[:, None] * costs[y]).sum(axis=0)
            training += totals.min() if (at == leaf).any() else 0
            held_out += (validation.weights[away] * costs[validation.y[away], totals.argmin()]).sum()
            continue
        beta, size = np.zeros(P), 0.0
        if charges.coefficient_cost is not None:
            model = Lasso(charges.coefficient_cost / (2 * len(y)), tol=1e-10, max_iter=100_000).fit(X, y)
            beta, size = model.coef_, charges.coefficient_cost * np.abs(model.coef_).sum()
        rest = y - X @ beta
        order = np.argsort(rest)
        middle = np.searchsorted(np.cumsum(weight[order]), weight.sum() / 2 - 1e-9)
        median = (rest[order][middle] + rest[order][len(rest) - 1 - middle]) / 2
        constant = median if isinstance(charges.loss, PinballLoss) else np.average(rest, weights=weight)
        errors = rest - constant
        total = (
            weight * (np.abs(errors) if isinstance(charges.loss, PinballLoss) else errors**2)
        ).sum() + size
        training += total if (at == leaf).any() else 0
        errors = validation.y[away] - X_validation[away] @ beta - constant
        held_out += (
            validation.weights[away]
            * (np.abs(errors) if isinstance(charges.loss, PinballLoss) else errors**2)
        ).sum()
    return training, held_out


def treated(kind: str, seed: int) -> tuple[TreeCharges, Dataset, Dataset]:
    """As :func:`samples`, of two treatments."""
    rng = np.random.default_rng(seed)
    X, had = rng.integers(0, 6, (60, P)) / 5, rng.integers(0, 2, 60)
    y = 4 * X[:, 0] * had + (1 - had) * (2 + X[:, 1]) + rng.normal(size=60)
    data = Dataset.from_arrays(X, y, treatments=had, scaling="minmax")
    train, validation = data.take(np.arange(40)).with_scaling("minmax"), data.take(np.arange(40, 60))
    charges = TreeCharges(
        y=train.y + 7.0, loss=PrescriptionLoss(train.treatments, MU, N_TREATMENT),
        offset=-MU * 7.0, coefficient_cost=COST if kind == "linear" else None,
    )  # fmt: skip
    return charges, train, validation


def measured_policy(tree: Tree, kind: str, train: Dataset, validation: Dataset) -> tuple[float, float]:
    """As :func:`measured`, of two treatments; estimates of what nobody had are those of the node above."""
    training = held_out = 0.0
    X_validation = train.encoding.to_scaled(validation.X_raw)
    at, others, passed = tree.apply(train.X), tree.apply(X_validation), tree.decision_path(train.X)
    for leaf in {*at, *others}:
        node = leaf
        while not passed[:, node].any():
            node = (node - 1) // 2
        models, error = [], 0.0
        for t in (0, 1):
            above = node
            while not (passed[:, above] & (train.treatments == t)).any():
                above = (above - 1) // 2
            own = passed[:, above] & (train.treatments == t)
            weight = COST if kind == "linear" else 1e9
            model = Lasso(weight / (2 * own.sum()), tol=1e-10, max_iter=100_000).fit(
                train.X[own], train.y[own]
            )
            models.append(model)
            if above == node:
                error += ((train.y[own] - model.predict(train.X[own])) ** 2).sum()
                error += weight * np.abs(model.coef_).sum()
        here, away = np.flatnonzero(passed[:, node]), np.flatnonzero(others == leaf)
        values = []
        for t in (0, 1):
            under = np.where(
                train.treatments[here] == t, train.y[here], models[t].predict(train.X[here])
            ).sum()
            values.append(under if (train.treatments[here] == t).sum() >= N_TREATMENT else np.inf)
        tau = int(np.argmin(values))
        training += MU * min(values) + (1 - MU) * error if (at == leaf).any() else 0
        for i in away:
            estimate = [model.predict(X_validation[i : i + 1])[0] for model in models]
            known, had = validation.y[i], validation.treatments[i]
            held_out += (
                MU * (known if had == tau else estimate[tau]) + (1 - MU) * (known - estimate[had]) ** 2
            )
    return training, held_out


@pytest.mark.parametrize("kind", ["constant", "linear"])
@pytest.mark.parametrize("seed", range(3))
def test_nodes_of_prescriptions_are_charged_by_the_definition(kind, seed):
    charges, train, validation = treated(kind, seed)
    tree = random_tree(kind, train, seed)
    nodes = node_losses(tree, charges, train, validation)
    assert np.isfinite(nodes.training[0])
    (curve,) = curves_of([tree], charges, train, validation)
    splits = [t for t in tree.topology.branches if not tree.is_trivial(t)]
    first = replace(
        tree, w=tree.w * (np.arange(len(tree.b)) == 0)[:, None], b=tree.b * (np.arange(len(tree.b)) == 0)
    )
    alone = replace(tree, w=np.zeros_like(tree.w), b=np.zeros_like(tree.b))
    assert splits[0] == 0
    for pruned, at in ((alone, [0]), (first, [1, nodes.end[1]])):
        training, held_out = measured_policy(pruned, kind, train, validation)
        shift = MU * 7.0 * train.n
        assert nodes.training[at].sum() - shift == pytest.approx(training, rel=1e-6)
        assert nodes.validation[at].sum() == pytest.approx(held_out, rel=1e-5)
    assert curve.loss[-1] == pytest.approx(
        measured_policy(alone, kind, train, validation)[1] / validation.n, rel=1e-5
    )
    sequence = pruning_sequence(nodes)
    assert (np.diff(sequence.alpha) >= 0).all()


def test_a_leaf_that_may_prescribe_nothing_goes_first():
    charges, train, validation = treated("constant", 1)
    few = replace(
        charges, loss=PrescriptionLoss(train.treatments, MU, 9)
    )  # a leaf of 40 samples in up to eight has not always so many
    tree = random_tree("constant", train, 1)
    sequence = pruning_sequence(node_losses(tree, few, train, validation))
    assert np.isfinite(sequence.alpha).all()
    assert sequence.alpha[0] == sequence.alpha[1] == 0


def test_higher_outcomes_that_are_better_count_as_lower_ones():
    charges, train, validation = treated("constant", 0)
    tree = random_tree("constant", train, 0)
    turned = [replace(data, y=-data.y) for data in (train, validation)]
    one, other = node_losses(tree, charges, train, validation), node_losses(tree, charges, *turned)
    assert one.training == pytest.approx(other.training)
    assert one.validation == pytest.approx(other.validation)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_sequence_has_the_best_of_all_prunings_for_every_cost(kind, seed):
    charges, train, validation = samples(kind, seed)
    tree = random_tree(kind, train, seed)
    nodes = node_losses(tree, charges, train, validation)
    sequence = pruning_sequence(nodes)

    alone = replace(tree, w=np.zeros_like(tree.w), b=np.zeros_like(tree.b))
    unit = nodes.unit
    constant = replace(charges, coefficient_cost=None)
    assert unit == pytest.approx(measured(alone, constant, train, validation)[0])
    assert (np.diff(sequence.alpha) >= 0).all()
    assert sequence.alpha[0] == 0
    assert sequence.alpha[-1] <= 1 + 1e-12
    every = [
        (np.count_nonzero(pruned.w), *measured(pruned, charges, train, validation))
        for pruned in prunings(tree)
    ]
    curve = sequence.curve()
    ends = np.append(curve.alpha[1:], max(1.2, curve.alpha[-1] + 0.1))
    for alpha, loss in zip((curve.alpha + ends) / 2, curve.loss, strict=True):
        values = [training / unit + alpha * splits for splits, training, _ in every]
        best = [
            held_out
            for value, (*_, held_out) in zip(values, every, strict=True)
            if value <= min(values) + 1e-9
        ]
        assert min(abs(loss - held_out) for held_out in best) <= 1e-6 * max(1, loss)


def test_a_worthless_split_goes_at_no_cost():
    nodes = NodeLosses(
        end=np.array([5, 4, 3, 4, 5]),
        complexity=np.array([1.0, 1, 0, 0, 0]),
        training=np.array([10.0, 4, 1, 3, 2]),
        validation=np.array([10.0, 3, 5, 4, 1]),
        unit=10.0,
    )
    sequence = pruning_sequence(nodes)
    assert sequence.alpha.tolist() == [0, 0, 0.4]
    assert sequence.validation.tolist() == [10, 4, 10]
    assert sequence.pruned.tolist() == [1, 0]
    assert sequence.curve().alpha.tolist() == [0, 0.4]
    assert sequence.curve().loss.tolist() == [4, 10]  # the last of those with the same cost


# ---------------------------------------------------------------------- the choice of alpha


def literal_one_tree(alpha, validation):
    """Algorithm 2.5: the first pruning of least validation error, and the middle of its interval."""
    i = int(np.argmin(validation))
    ends = np.append(alpha[1:], 1.0)
    return (alpha[i] + ends[i]) / 2


@pytest.mark.parametrize("midpoint", ["interval", "paper"])
def test_the_batch_of_one_tree_is_one_tree_tuning(midpoint):
    compared = 0
    for seed in range(20):
        charges, train, validation = samples("weights", seed)
        tree = random_tree("weights", train, seed)
        curve = pruning_sequence(node_losses(tree, charges, train, validation)).curve()
        if (curve.loss == curve.loss.min()).sum() > 1:
            continue  # there the batch takes all intervals, and one tree the first of them
        (found,) = curves_of([tree], charges, train, validation)
        chosen = minimum(mean_curve([found]), midpoint)
        assert chosen.alpha == literal_one_tree(curve.alpha, curve.loss)
        assert chosen.loss == pytest.approx(curve.loss.min() / validation.weights.sum())
        compared += 1
    assert compared >= 10


@pytest.mark.parametrize("midpoint", ["interval", "paper"])
def test_a_constant_curve_takes_the_middle(midpoint):
    assert minimum(Curve(np.array([0.0, 0.2, 0.7]), np.full(3, 0.1)), midpoint) == (0.1, 0.5)


def test_midpoints_of_two_separate_intervals():
    curve = Curve(np.array([0.0, 0.1, 0.2, 0.6, 0.8]), np.array([2.0, 1.0, 3.0, 1.0, 2.0]))
    assert minimum(curve, "interval") == (1.0, pytest.approx(0.7))
    paper = minimum(curve, "paper")
    assert paper == (1.0, pytest.approx(0.45))
    assert curve.at(np.array(paper.alpha)) == 3.0  # the middle between two minima need not be one
    with pytest.raises(TuningError, match="did you mean 'interval'"):
        minimum(curve, "intervall")


def test_a_mean_curve_has_the_steps_of_all():
    first = Curve(np.array([0.0, 0.5]), np.array([1.0, 3.0]))
    second = Curve(np.array([0.0, 0.25]), np.array([5.0, 1.0]))
    mean = mean_curve([first, second])
    assert mean.alpha.tolist() == [0, 0.25, 0.5]
    assert mean.loss.tolist() == [3, 1, 2]
