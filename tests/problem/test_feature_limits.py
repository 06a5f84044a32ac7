"""Every search keeps limits on the features of a tree: the optimum is that of the data without the others."""

import numpy as np
import pytest
from tolerance import at_most, same

import mipforest
from mipforest.certificates import certify
from mipforest.data import Dataset
from mipforest.errors import MipforestError, Unsupported
from mipforest.problem.constraints import AtMostFeatures, FeatureBudget, Forbid, MinLeaf, Monotone
from mipforest.problem.tree_search import get_search

NAMES = ["a", "b", "c"]
#: Share of the objective by which two optima may differ that are each proven to the gap.
GAP = 2e-4


#: A local search that ends soon.
FEW = {"starts": 2, "kicks": 2}


def samples(seed, task="classification", n=14):
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, 3)), 2)
    y = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, y if task == "regression" else (y > np.median(y)).astype(int)


def both(model, parameters, seed, forbidden=("a",), depth=2, task="classification", **more):
    """Return a problem that forbids features, and one of data without them."""
    X, y = samples(seed, task)
    given = more | {"task": task}
    left = [j for j, name in enumerate(NAMES) if name not in forbidden]
    whole = Dataset.from_arrays(X, y, features=NAMES, **given)
    rest = Dataset.from_arrays(X[:, left], y, features=[NAMES[j] for j in left], **given)
    formulation = mipforest.get_formulation(model)(**parameters)
    problem = formulation.build(whole, depth)
    problem.constrain(Forbid(tuple(forbidden)))
    return problem, formulation.build(rest, depth)


PROVEN = [
    ("margot", {"C": 2.0}, "routing"),
    ("hfs-margot", {"C": 2.0, "B": 1}, "routing"),
    ("oct-h", {"alpha": 0.05, "max_features": 1}, "oblique-search"),
    ("loss-optimal", {"C": 2.0, "regulariser": "l1"}, "routing"),
    ("sfs-margot", {"C": 2.0, "B": 1, "alpha": 0.5}, "routing"),
    ("olct", {"C": 2.0}, "routing"),
]


@pytest.mark.first_cases(4)
@pytest.mark.parametrize(("model", "parameters", "search"), PROVEN)
@pytest.mark.parametrize("seed", range(5))
def test_proven_optima_are_those_of_the_data_without_them(model, parameters, search, seed):
    problem, rest = both(model, parameters, seed, forbidden=("a",) if seed % 2 else ("b",))
    result, other = problem.solve(search, time_limit=60), rest.solve(search, time_limit=60)
    assert result.status == other.status == "optimal"
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(other.objective, rel=GAP)
    assert at_most(result.bound, other.objective * (1 + 1e-9))
    assert all(one.admits(result.tree, problem.data) for one in problem.constraints)


@pytest.mark.parametrize(
    ("model", "parameters", "search", "task"),
    [
        ("oct-h", {"alpha": 0.05}, "local-search", "classification"),
        ("ort-l", {"alpha": 0.05}, "local-search", "regression"),
        # The splits of oct-h, the losses and leaves of ort-l.
        pytest.param("ort-h", {"alpha": 0.05}, "local-search", "regression", marks=pytest.mark.slow),
        pytest.param("ort-lh", {"alpha": 0.05}, "local-search", "regression", marks=pytest.mark.slow),
        ("svm-leaves", {"C": 1.0}, "local-search", "classification"),
        ("oct", {"alpha": 0.0}, "tao", "classification"),
        ("oct", {"alpha": 0.0}, "local-search", "classification"),
    ],
)
def test_best_found_trees_do_not_use_them(model, parameters, search, task):
    problem, rest = both(model, parameters, 1, task=task)
    options = FEW if search == "local-search" and model != "oct" else {}  # two starts may miss what ten find
    result, other = (built.solve(search, solver_options=options) for built in (problem, rest))
    assert result.verified, result.failed_checks
    assert 0 not in result.tree.features_used().overall
    assert all(one.admits(result.tree, problem.data) for one in problem.constraints)
    if search != "tao":  # one descent, which ends anywhere
        assert result.objective == pytest.approx(other.objective, rel=0.3)


def test_prescriptive_trees_do_not_use_them():
    rng = np.random.default_rng(2)
    X, y = samples(2, "regression", n=20)
    treatment = rng.integers(0, 2, len(y))
    data = Dataset.from_arrays(X, y, features=NAMES, treatments=treatment, task="prescription")
    rest = Dataset.from_arrays(X[:, 1:], y, features=NAMES[1:], treatments=treatment, task="prescription")
    formulation = mipforest.get_formulation("opt")()
    problem = formulation.build(data, 2)
    problem.constrain(Forbid(("a",)))
    result, other = (
        problem.solve("prescription-search"),
        formulation.build(rest, 2).solve("prescription-search"),
    )
    assert result.status == other.status == "optimal"
    assert same(result.objective, other.objective)
    assert 0 not in result.tree.features_used().overall


def test_the_matrix_solver_agrees():
    problem, _ = both("hfs-margot", {"C": 2.0, "B": 1}, 3, depth=1)
    proven, found = problem.solve("routing", gap=1e-6), problem.solve("highs", gap=1e-6, time_limit=60)
    assert proven.objective == pytest.approx(found.objective, rel=1e-4)


def test_no_feature_is_left():
    problem, _ = both("margot", {"C": 2.0}, 0, forbidden=("a", "b"), depth=1)
    problem.constrain(Forbid(("c",)))
    try:
        result = problem.solve("routing")
    except MipforestError as refused:
        assert "features" in str(refused)  # noqa: PT017 - either way
        return
    assert len(result.tree.features_used().overall) == 0


def test_a_certificate_of_hyperplanes_states_them(tmp_path):
    problem, _ = both("margot", {"C": 2.0}, 1)
    result = problem.solve("routing", certificate=tmp_path / "proof.gz")
    found = certify(tmp_path / "proof.gz")
    assert found.words.forbidden == {"a": 0}
    assert not found.X[:, 0].any()
    assert same(found.objective, result.objective)
    assert at_most(found.bound, result.objective)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("model", "parameters", "search"),
    [
        ("margot", {"C": 2.0}, "routing"),
        ("hfs-margot", {"C": 2.0, "B": 1}, "routing"),
        ("oct-h", {"alpha": 0.05, "max_features": 1}, "oblique-search"),
        ("olct", {"C": 2.0}, "routing"),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_limits_on_features_have_the_best_of_all_sets(model, parameters, search, seed):
    X, y = samples(seed, n=12)
    formulation = mipforest.get_formulation(model)(**parameters)
    problem = formulation.build(Dataset.from_arrays(X, y, features=NAMES), 2)
    cost = {"a": 1.0, "b": 2.0, "c": 2.0}
    problem.constrain(AtMostFeatures(2) if seed % 2 else FeatureBudget(3.0, cost))
    sets = [(0, 1), (0, 2), (1, 2)] if seed % 2 else [(0, 1), (0, 2)]
    rest = [Dataset.from_arrays(X[:, own], y, features=[NAMES[j] for j in own]) for own in map(list, sets)]
    best = min(formulation.build(data, 2).solve(search, time_limit=60).objective for data in rest)
    result = problem.solve(search, time_limit=60)
    assert result.status == "optimal"
    assert result.verified, result.failed_checks
    assert result.objective == pytest.approx(best, rel=GAP)
    assert at_most(result.bound, best * (1 + 1e-9))
    assert all(one.admits(result.tree, problem.data) for one in problem.constraints)


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("variant", ["tight", "improved", "paper"])
@pytest.mark.parametrize(
    "constraints", [(Forbid(("a",)),), (AtMostFeatures(1),), (Forbid(("a", "b", "c")),)], ids=str
)
@pytest.mark.parametrize("seed", range(2))
def test_limits_beside_an_ensemble_that_reads_all_features_are_those_of_the_rows(variant, constraints, seed):
    X, y = samples(seed, n=8)
    formulation = mipforest.get_formulation("miret")(
        alpha=0.05, ensemble="random-forest:trees=5", variant=variant, epsilon=0.01
    )
    found = {}
    for solver in ("oblique-search", "highs"):
        problem = formulation.build(Dataset.from_arrays(X, y, features=NAMES), 2 if variant == "tight" else 1)
        problem.constrain(*constraints)
        found[solver] = problem.solve(solver, gap=1e-6, time_limit=60)
    result, other = found.values()
    assert result.status == other.status
    if other.tree is not None:
        assert result.verified, result.failed_checks
        assert result.objective == pytest.approx(other.objective, rel=GAP)
        assert at_most(result.bound, other.objective * (1 + GAP))


def test_no_room_for_any_feature_and_a_search_without_bounds():
    problem, _ = both("svm-leaves", {"C": 1.0}, 1, depth=1)
    problem.constrain(AtMostFeatures(1))
    result = problem.solve("local-search", solver_options=FEW)
    assert result.verified, result.failed_checks
    assert len(result.tree.features_used().overall) <= 1
    assert not np.isfinite(result.bound) or at_most(result.bound, result.objective)


def test_other_constraints_are_refused_and_named():
    problem, _ = both("margot", {"C": 2.0}, 1)
    problem.constrain(MinLeaf(2))
    assert get_search("local-search").objection(problem).endswith("and not: min-leaf 2")
    with pytest.raises(Unsupported, match="and not: min-leaf 2"):
        problem.solve("local-search")


def test_a_certificate_beside_a_limit_is_refused(tmp_path):
    problem, _ = both("margot", {"C": 2.0}, 1)
    problem.constrain(AtMostFeatures(1))
    with pytest.raises(Unsupported, match="and not: at-most-features 1; leave the certificate out"):
        problem.solve("routing", certificate=tmp_path / "proof.gz")


def test_a_search_that_ignores_them_is_found(monkeypatch):
    problem, _ = both("margot", {"C": 2.0}, 1, depth=1)
    monkeypatch.setattr(type(get_search("routing")), "reduces", lambda *_: False)
    result = problem.solve("routing")
    assert not result.verified or result.status != "optimal"


@pytest.mark.parametrize("seed", range(3))
def test_what_no_search_keeps_begins_with_the_bound_and_the_tree_of_one(seed):
    X, y = samples(seed)
    data, formulation = Dataset.from_arrays(X, y, features=NAMES), mipforest.get_formulation("margot")(C=2.0)
    free, problem = formulation.build(data, 1), formulation.build(data, 1)
    problem.constrain(Monotone("a", increasing=False))
    result, without = problem.solve(gap=1e-6), free.solve(gap=1e-6)
    found = problem.solve("highs", gap=1e-6, time_limit=60)
    assert "routing proves what holds without it" in result.solution.message
    assert result.verified, result.failed_checks
    assert result.status == "optimal"
    assert result.objective == pytest.approx(found.objective, rel=1e-4)
    assert at_most(without.bound, result.bound * (1 + 1e-6))
    assert at_most(result.bound, result.objective)
    assert all(one.admits(result.tree, problem.data) for one in problem.constraints)
