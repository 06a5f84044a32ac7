"""The local search as a tree search: what a solve gives, and how near it comes to proven optima."""

import numpy as np
import pytest
from tolerance import at_least, at_most, same
from univariate_cases import medium

import mipforest
from formulations.loss_optimal import LossOptimal
from formulations.oct import Oct
from formulations.oct_h import OctH
from formulations.ort import Ort, OrtH
from formulations.ort_l import OrtL, OrtLH
from mipforest.data import Dataset, load
from mipforest.errors import NotAllowed, Unsupported
from mipforest.objectives.leaf_losses import ClassLoss
from mipforest.problem.formulation import deepened
from mipforest.problem.problem_data import StartError
from mipforest.searches.local import LocalProblem
from mipforest.searches.local.search import local_search
from mipforest.trees import load as load_tree
from mipforest.trees import save

# ---------------------------------------------------------------------- as a tree search


@pytest.mark.parametrize(
    "formulation",
    [
        Oct(variant="paper"),
        Oct(variant="paper", alpha=0.02, N_min=4),
        Ort(variant="paper", N_min=5),
        Ort(variant="paper", loss="absolute", alpha=0.01),
    ],
)
def test_results_are_verified_and_between_the_optimum_and_cart(formulation, tmp_path):
    data = medium(1) if isinstance(formulation, Oct) else load("diabetes").take(np.arange(0, 442, 8))
    problem = formulation.build(data, 2)
    result = problem.solve("local-search", solver_options={"starts": 3, "kicks": 20})
    assert result.status == "best_found"
    assert result.bound == -np.inf
    assert result.verified, result.failed_checks
    assert at_most(
        result.objective, formulation.evaluate(formulation.start("cart", problem.instance), problem.instance)
    )
    optimum = problem.solve("exact-search", gap=0.0)
    assert optimum.status == "optimal"
    assert result.objective >= optimum.objective - 1e-9
    leaves = result.tree.apply(data.X_raw)
    assert min(np.bincount(leaves)[np.unique(leaves)]) >= formulation.N_min
    save(result.tree, tmp_path / "tree.json")
    assert (load_tree(tmp_path / "tree.json").apply(data.X_raw) == leaves).all()
    objectives = [event.objective for event in result.solution.events]
    assert all(np.diff(objectives) <= 1e-12)


def test_a_tree_that_only_the_papers_constants_leave_out_counts():
    X = [8.170038567820811, 7.965496542462065, 6.908421090746959, 3.822272653215493]
    X += [0.9460430743184302, 3.126538409987817, 8.237390560632945, 4.281980058760068]
    y = [0.0, -0.5, 0.2, 0.2, -0.5, -0.7, 1.8, 0.2]
    data = Dataset.from_arrays(np.array([X]).T, y, task="regression")
    data = data.with_weights(np.array([2.0, 1.0, 0.4, 0.4, 0.4, 0.4, 0.4, 1.0]))
    paper, tight = (
        OrtL(variant=variant, alpha=0.02, N_min=2).build(data, 2) for variant in OrtL.variants[::-1]
    )
    result = paper.solve("local-search")
    assert result.max_violation > 1
    assert result.verified, result.failed_checks
    assert "the constants of variant paper leave this tree out" in result.solution.warnings[-1]
    assert result.objective == pytest.approx(tight.solve("local-search").objective)
    of_a_solver = paper.checked(result.solution)
    assert "violates the model" in of_a_solver.failed_checks[0]


def test_the_start_is_among_the_starts_also_without_time():
    problem = Oct(variant="paper").build(medium(4), 3)
    best = problem.solve("exact-search")
    result = problem.solve("local-search", start=best.tree, time_limit=0)
    assert same(result.objective, best.objective)
    assert result.verified
    deeper = Oct(variant="paper").build(medium(4), 4)
    assert at_most(
        deeper.solve("local-search", start=deepened(best.tree.unscaled()), time_limit=0).objective,
        best.objective,
    )


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "formulation",
    [
        Oct(variant="paper"),
        Ort(variant="paper"),
        OrtL(lam=0.05),
        *(pytest.param(model, marks=pytest.mark.slow) for model in (OctH(), OrtH(), OrtLH(lam=0.05))),
    ],
)
def test_its_tree_is_a_start_of_a_matrix_solver(formulation):
    data = (
        medium(2, n=16, classes=4)
        if formulation.task == "classification"
        else load("diabetes").take(np.arange(0, 442, 28))
    )
    problem = formulation.build(data, 1)
    result = problem.solve("highs", start="local-search", time_limit=30)
    assert result.verified, result.failed_checks
    assert at_least(result.solution.start_objective, result.objective)
    cart = formulation.evaluate(formulation.start("cart", problem.instance), problem.instance)
    assert result.solution.start_objective <= cart + 1e-9


def test_nodes_without_a_norm_have_no_such_start():
    problem = LossOptimal(regulariser="none", variant="paper").build(medium(1, n=20, classes=2), 1)
    with pytest.raises(StartError, match=r"local-search.*its nodes have the norm none.*take another start"):
        problem.solve("highs", start="local-search")


def test_a_search_that_is_stopped_keeps_its_tree():
    problem = Oct(variant="paper", alpha=0.01).build(medium(5, n=100), 3)
    result = problem.solve(
        "local-search",
        start="cart",
        on_progress=lambda event: True,
        threads=1,
        solver_options={"starts": 10**6},
    )
    assert result.status == "interrupted"
    assert result.verified


def test_other_models_and_options_are_refused():
    problem = LossOptimal(regulariser="none", variant="paper").build(medium(1, n=20, classes=2), 1)
    with pytest.raises(Unsupported, match=r"its nodes have the norm none.*solver='highs'"):
        problem.solve("local-search")
    problem = Oct().build(medium(1, n=20), 1)
    with pytest.raises(NotAllowed, match=r"would not use restarts: its options are starts, how many"):
        problem.solve("local-search", solver_options={"restarts": 3})
    with pytest.raises(NotAllowed, match="option starts is -1"):
        problem.solve("local-search", solver_options={"starts": -1})
    with pytest.raises(
        NotAllowed, match="exact-search is a tree search and would not use starts: options and bridges"
    ):
        problem.solve("exact-search", solver_options={"starts": 3})


# ---------------------------------------------------------------------- proven optima

#: Fewest errors of trees on the papers' data sets, by exact searches: data set, depth, errors.
OPTIMA = [
    ("banknote", 2, 100), ("banknote", 3, 23), ("transfusion", 2, 164), ("transfusion", 3, 142), ("wine", 2, 6),
    ("wine", 3, 0), ("breast_cancer_diagnostic", 2, 22), ("breast_cancer_diagnostic", 3, 9), ("ionosphere", 2, 29),
    ("sonar", 2, 32), ("diabetes", 2, 171), ("diabetes", 3, 151), ("balance_scale", 2, 177), ("balance_scale", 3, 141),
    ("parkinsons", 2, 16), ("parkinsons", 3, 2), ("indian_liver", 2, 148), ("haberman", 2, 67), ("haberman", 3, 58),
    ("climate_model", 2, 33), ("cleveland", 2, 116), ("breast_cancer_wisconsin", 2, 22),
    ("breast_cancer_wisconsin", 3, 15),
]  # fmt: skip


#: Of 1000 starts 737 end at 68 errors and 263 at 70: too few different ends. With kicks, the default, it is 67.
FEW_ENDS = pytest.mark.xfail(reason="without kicks all starts end at one of two local optima", strict=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "depth", "errors"), OPTIMA)
def test_proven_optima_are_reached_or_missed_by_one_error(papers_data, name, depth, errors):
    data = mipforest.load(str(papers_data / f"{name}.csv"), target="target", task="classification")
    found = local_search(LocalProblem(X=data.X, y=data.y, loss=ClassLoss()), depth)
    assert at_most(errors, found.value)
    assert at_most(found.value, errors + (depth == 3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "errors"),
    [
        pytest.param(name, errors, marks=[FEW_ENDS] if name == "haberman" else [])
        for name, depth, errors in OPTIMA
        if depth == 2
    ],
)
def test_a_thousand_starts_without_kicks_reach_the_optimum_of_depth_two(papers_data, name, errors):
    data = mipforest.load(str(papers_data / f"{name}.csv"), target="target", task="classification")
    problem = LocalProblem(X=data.X, y=data.y, loss=ClassLoss())
    assert same(local_search(problem, 2, starts=1000, kicks=0, threads=None).value, errors)


def test_as_many_trees_are_kept_as_are_asked_for():
    rng = np.random.default_rng(0)
    problem = LocalProblem(X=rng.random((80, 3)), y=rng.integers(0, 3, 80), loss=ClassLoss())
    outcome = local_search(problem, 2, starts=12, kicks=0, keep=4)
    assert len(outcome.kept) == 4
    assert outcome.kept[0] is outcome.tree
    best = np.argsort(outcome.values, kind="stable")[:4]
    alone = [local_search(problem, 2, starts=12, kicks=0, only=int(r)).tree for r in best]
    for tree, other in zip(outcome.kept, alone, strict=True):
        assert (tree.w == other.w).all()
        assert (tree.b == other.b).all()
    separable = LocalProblem(X=problem.X, y=(problem.X[:, 0] > 0.5).astype(int), loss=ClassLoss())
    perfect = local_search(separable, 1, starts=12, kicks=0, keep=3)
    assert len(perfect.kept) == 3  # a tree without errors ends the search only once there are enough of them
    assert np.isinf(perfect.values).any()
