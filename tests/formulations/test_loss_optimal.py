from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from independent_lp import HINGE, V0, enumerated_errors, enumerated_tree, thresholds
from margin_data import random_data, random_tree, with_gaps_everywhere
from tolerance import same

from formulations.loss_optimal import LossOptimal
from formulations.margot import HfsMargot, Margot, SfsMargot
from mipforest.data import Dataset
from mipforest.model import Model
from mipforest.problem.parameters import ParameterError, per_node
from mipforest.trees import Topology

pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": None, "gap": 1e-7}

#: Tangents of log(1 + exp(-v)) at 0 and at both infinities, that of max(0, 1 - v)^2 at 0.
LOSSES = {
    "misclassification": lambda score, sign: float((score >= 0) != (sign > 0)),
    "hinge": lambda score, sign: max(0.0, 1 - sign * score),
    "squared-hinge": lambda score, sign: max(0.0, 1 - 2 * sign * score),
    "logistic": lambda score, sign: max(0.0, -sign * score, np.log(2) - sign * score / 2),
}
NORMS = {
    "none": lambda w: 0.0,
    "l1": lambda w: float(np.abs(w).sum()),
    "l2": lambda w: 0.5 * float(w @ w),
}


def by_hand(formulation, tree, data):
    """The definition, sample by sample: walk down, pay at every charged branch node that is passed."""
    C = per_node("C", formulation.C, tree.depth)
    first_charged = 0 if formulation.levels == "all" else 2 ** (tree.depth - 1) - 1
    total = sum(NORMS[formulation.regulariser](w) for w in tree.w[first_charged:])
    for x, sign in zip(data.X, data.sign, strict=True):
        t = 0
        while t < 2**tree.depth - 1:
            score = float(x @ tree.w[t] + tree.b[t])
            if t >= first_charged:
                total += C[t] * LOSSES[formulation.loss](score, sign)
            t = 2 * t + 2 if score >= 0 else 2 * t + 1
    if formulation.selection == "soft":
        free = per_node("B", formulation.B, tree.depth)
        total += formulation.alpha * float(np.maximum(0, (tree.w != 0).sum(axis=1) - free).sum())
    return total


@given(
    loss=st.sampled_from(list(LOSSES)),
    regulariser=st.sampled_from(list(NORMS)),
    selection=st.sampled_from(["none", "hard", "soft"]),
    levels=st.sampled_from(["all", "last"]),
    depth=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=15)
def test_tree_to_model_and_back(loss, regulariser, selection, levels, depth, seed):
    rng = np.random.default_rng(seed)
    data = random_data(seed, n=int(rng.integers(4, 30)), p=int(rng.integers(2, 5)))
    formulation = LossOptimal(
        loss=loss, regulariser=regulariser, selection=selection, levels=levels,
        C=tuple(10.0 ** rng.integers(-2, 3, depth)), B=2, alpha=0.7, variant="paper",
    )  # fmt: skip
    problem = formulation.build(data, depth)
    instance = problem.instance
    budget = 2 if selection == "hard" else None
    tree = random_tree(rng, data, depth, epsilon=formulation.epsilon, budget=budget)
    tree = with_gaps_everywhere(tree, data, formulation.epsilon)

    values = formulation.encode(tree, instance)
    expected = by_hand(formulation, tree, data)

    assert problem.model.violations(values).max <= 1e-6
    assert problem.model.objective(values) == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert formulation.evaluate(tree, instance) == pytest.approx(expected, rel=1e-11, abs=1e-11)
    decoded = formulation.decode(values, instance)
    np.testing.assert_array_equal(decoded.apply(data.X), tree.apply(data.X))
    np.testing.assert_array_equal(decoded.w, tree.w)
    assert decoded.logistic == (loss == "logistic")


@given(
    loss=st.sampled_from(list(LOSSES)),
    selection=st.sampled_from(["none", "hard", "soft"]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=8)
def test_polishing_keeps_the_routing_and_is_never_worse(loss, selection, seed):
    rng = np.random.default_rng(seed)
    data = random_data(seed, n=int(rng.integers(4, 20)), p=2)
    formulation = LossOptimal(loss=loss, selection=selection, B=1, C=3.0, epsilon=0.01, variant="paper")
    instance = formulation.bind(data, Topology(2))
    tree = random_tree(rng, data, 2, epsilon=0.01, budget=1 if selection == "hard" else None)
    tree = with_gaps_everywhere(tree, data, 0.01)
    polished = formulation.polish(tree, instance)
    before, after = formulation.evaluate(tree, instance), formulation.evaluate(polished, instance)
    assert after <= before + 1e-6 * max(1.0, before)
    last = tree.topology.parents
    np.testing.assert_array_equal(last[polished.apply(data.X)], last[tree.apply(data.X)])


# ------------------------------------------------------------------ optima


def test_hinge_with_squares_at_all_levels_is_margot():
    """Their rows are compared in ``test_points_of_the_framework.py``; here the limits that each proves itself."""
    C, data = 1.0, random_data(1, n=8, p=2)
    general = LossOptimal(loss="hinge", regulariser="l2", C=C).build(data, 2).solve("highs", **PROVEN)
    margot = Margot(C=C).build(data, 2).solve("highs", **PROVEN)
    assert general.verified
    assert margot.verified
    assert general.status == margot.status == "optimal"
    assert general.objective == pytest.approx(margot.objective, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("special", "selection"),
    [
        (Margot(C=(2.0, 0.5)), "none"),
        (HfsMargot(C=(2.0, 0.5), B=2), "hard"),
        (SfsMargot(C=(2.0, 0.5), B=1, alpha=0.4), "soft"),
    ],
    ids=["margot", "hfs", "sfs"],
)
def test_the_margot_family_values_trees_alike(special, selection):
    data, rng = random_data(5, n=25, p=4), np.random.default_rng(0)
    general = LossOptimal(
        loss="hinge", regulariser="l2", selection=selection, C=special.C,
        B=getattr(special, "B", 1), alpha=getattr(special, "alpha", 1.0),
    )  # fmt: skip
    instance, special_instance = (
        replace(f, variant="paper").bind(data, Topology(2)) for f in (general, special)
    )
    for _ in range(20):
        tree = random_tree(rng, data, 2, epsilon=1e-3, budget=2)
        assert same(general.evaluate(tree, instance), special.evaluate(tree, special_instance))


def solved_to_proof(formulation, data, expected):
    """Both variants: the papers' constants suffice for data in [0, 1] and a moderate C."""
    for variant in formulation.variants:
        result = replace(formulation, variant=variant).build(data, 2).solve("highs", **PROVEN)
        assert result.verified
        assert result.status == "optimal"
        assert result.objective == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("seed", "C"), [(0, (0.5, 0.5)), pytest.param(2, (1.0, 4.0), marks=pytest.mark.slow)]
)
def test_hinge_with_l1_equals_enumeration(seed, C):
    data = random_data(seed, n=6, p=2)
    formulation = LossOptimal(loss="hinge", C=C)
    solved_to_proof(formulation, data, enumerated_tree(data.X, data.sign, C, formulation.epsilon, HINGE))


@pytest.mark.parametrize(
    ("seed", "n", "C", "epsilon"), [(0, 5, 1.0, 0.1), pytest.param(3, 5, 2.0, 0.05, marks=pytest.mark.slow)]
)  # other C
def test_misclassification_equals_enumeration(seed, n, C, epsilon):
    data = random_data(seed, n=n, p=2)
    formulation = LossOptimal(loss="misclassification", C=C, epsilon=epsilon)
    solved_to_proof(formulation, data, enumerated_errors(data.X, data.sign, C, epsilon))


@pytest.mark.parametrize("variant", LossOptimal.variants)
def test_no_score_lies_in_the_gap_where_that_would_shrink_the_norm(variant):
    """One row for right predictions alone charges 0.002165 here: a sample in the gap counts as an error and is none."""
    x, labels = [-2.09, 0.24, -1.24, -0.96, -1.83, -1.69, 0.6], ["a", "a", "b", "a", "b", "b", "a"]
    C, epsilon, data = 0.001, 0.01, Dataset.from_arrays(np.array(x)[:, None], labels)
    order = np.argsort(data.X[:, 0])
    values, sign = data.X[order, 0], data.sign[order]
    expected = min((sign > 0).sum(), (sign < 0).sum()) * C
    for k, gap in enumerate(np.diff(values), start=1):
        wrong = (sign[:k] > 0).sum() + (sign[k:] < 0).sum()
        expected = min(expected, 0.5 * (epsilon / gap) ** 2 + C * min(wrong, len(x) - wrong))
    formulation = LossOptimal(
        loss="misclassification", regulariser="l2", C=C, epsilon=epsilon, variant=variant
    )
    result = formulation.build(data, 1).solve("highs", **PROVEN)
    assert expected == pytest.approx(0.00225125, abs=1e-8)
    assert result.verified
    assert result.status == "optimal"
    assert result.objective == pytest.approx(expected, rel=1e-6)
    errors = int((result.tree.predict(data.X_raw) != data.y).sum())
    norm = 0.5 * float(result.tree.w[0] @ result.tree.w[0])
    assert result.objective == pytest.approx(norm + C * errors, rel=1e-6)


def test_misclassification_without_a_norm_counts_the_errors_of_two_cuts():
    # One feature, labels in five runs: three cuts make four intervals, so one sample at least is wrong.
    X = np.arange(10.0)[:, None] / 9
    labels = np.array([0, 0, 1, 1, 0, 0, 1, 1, 0, 1])
    data = Dataset.from_arrays(X, labels)
    formulation = LossOptimal(
        loss="misclassification", regulariser="none", levels="last", epsilon=0.01, variant="paper"
    )
    result = formulation.build(data, 2).solve("highs", **PROVEN)
    wrong = min(
        sum(
            min(int((labels[part][: k] != left).sum() + (labels[part][k:] == left).sum())
                for k in range(int(part.sum()) + 1) for left in (0, 1))
            for part in (right, ~right)
        )
        for right in thresholds(X)
    )  # fmt: skip
    assert result.verified
    assert result.objective == pytest.approx(wrong)
    assert int((result.tree.predict(data.X_raw) != labels).sum()) == wrong


def test_the_thesis_rows_of_misclassification_allow_a_free_lunch():
    # Rows (3.9) as printed: w = 0, b = 0 may predict anything, so the optimum is 0 for any labels.
    data = random_data(1, n=10, p=2)
    m = Model()
    w, b = m.continuous("w", 2), m.continuous("b")
    right = m.binary("right", 10)  # y_hat = 2 right - 1
    y_hat = 2 * right - 1
    score = data.X @ w + b
    m.minimize((0.5 * (1 - data.sign * y_hat)).sum())
    m.add("negative", score <= 100 * (1 + y_hat))
    m.add("positive", score >= -100 * (1 - y_hat))
    free = {"w": np.zeros(2), "b": np.array(0.0), "right": (data.sign > 0).astype(float)}
    assert m.violations(free).max == 0
    assert m.objective(free) == 0
    here = LossOptimal(loss="misclassification", regulariser="none", levels="last", variant="paper")
    tree = random_tree(np.random.default_rng(0), data, 1, epsilon=1e-3)
    nothing = replace(tree, w=0 * tree.w, b=0 * tree.b)
    instance = here.bind(data, Topology(1))
    assert same(here.evaluate(nothing, instance), (data.sign < 0).sum())


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("formulation", "n", "p"),
    [
        (LossOptimal(loss="logistic", tangents="V1", C=2.0), 7, 2),
        (LossOptimal(loss="hinge", C=1.0, selection="soft", alpha=0.3), 8, 2),
        (LossOptimal(loss="misclassification", C=1.0, epsilon=0.1), 6, 2),
        (LossOptimal(loss="squared-hinge", tangents="V1", C=1.0), 7, 2),
        (LossOptimal(loss="hinge", levels="last", C=1.0, variant="paper"), 8, 2),
        # The same loss as in the first, the same norm as in MARGOT.
        pytest.param(LossOptimal(loss="logistic", regulariser="l2", C=1.0), 7, 2, marks=pytest.mark.slow),
        # The same choices with more samples or features.
        pytest.param(LossOptimal(loss="logistic", tangents="V1", C=2.0), 10, 3, marks=pytest.mark.slow),
        pytest.param(
            LossOptimal(loss="hinge", C=1.0, selection="soft", alpha=0.3), 10, 3, marks=pytest.mark.slow
        ),
        pytest.param(LossOptimal(loss="misclassification", C=1.0, epsilon=0.1), 9, 2, marks=pytest.mark.slow),
        pytest.param(LossOptimal(loss="logistic", regulariser="l2", C=1.0), 10, 2, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_equals_scip_on_the_papers_model(formulation, n, p):
    pytest.importorskip("pyscipopt")
    from independent_routes import scip_optimum

    data = random_data(11, n=n, p=p)
    result = formulation.build(data, 2).solve("highs", **PROVEN)
    expected = scip_optimum(replace(formulation, variant="paper").build(data, 2).model.matrix())
    assert result.verified
    assert result.status == "optimal"
    assert expected is not None
    assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_penalties_may_differ_within_a_level_where_slacks_are_by_node():
    data = random_data(4, n=8, p=2)
    by_node = LossOptimal(C=(1.0, 0.5, 4.0))
    result = by_node.build(data, 2).solve("highs", **PROVEN)
    assert result.verified
    assert result.objective == pytest.approx(by_hand(by_node, result.solved_tree, data))
    with pytest.raises(ParameterError, match="differs within a level"):
        replace(by_node, variant="paper").build(data, 2)


@pytest.mark.parametrize(
    "wrong",
    [{"loss": "squared"}, {"regulariser": "l0"}, {"selection": "some"}, {"levels": "first"}, {"tangents": "V9"},
     {"epsilon": 0}, {"C": -1}, {"alpha": 0}, {"B": 0.5}],
    ids=str,
)  # fmt: skip
def test_refuses_what_it_does_not_take(wrong):
    with pytest.raises(ParameterError):
        LossOptimal(**wrong)


def test_lines_of_the_surrogate_are_those_of_the_enumeration():
    lines = LossOptimal(loss="logistic").branch_loss()
    np.testing.assert_allclose(
        sorted(zip(lines.intercepts, lines.slopes, strict=True)), sorted(V0), atol=1e-15
    )
