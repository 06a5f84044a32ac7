"""The start of a fit is never worse than the formulation's own."""

import pytest

from mipforest import get_formulation, load
from mipforest.tuning.fit import better_start, make_folds

pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.fixture(scope="module")
def fold():
    return make_folds(load("iris").binarise(["versicolor"]), 3, seed=0)[0]


def chain(name, parameter, values, depth, fold):
    """Solve for one value after the other, for a few nodes; give start, default start and tree of each."""
    neighbour = None
    for value in values:
        problem = get_formulation(name)(**{parameter: value}).build(fold.train, depth)
        start = better_start(problem, neighbour, seed=0)
        alone = problem.solve("highs", start="default", time_limit=0)
        solved = problem.solve(
            "highs", start=start.tree, time_limit=1, threads=1, solver_options={"mip_max_nodes": 1}
        )
        yield start, alone, solved
        neighbour = solved.solved_tree


@pytest.mark.parametrize(
    ("name", "parameter", "values", "depth"),
    [
        pytest.param(
            "margot", "C", [0.01, 100.0], 2, marks=pytest.mark.slow
        ),  # hfs-margot stands for it by default
        ("hfs-margot", "B", [3, 2, 1], 1),
        ("oct", "alpha", [0.1, 0.0], 2),
        ("oct-h", "alpha", [0.1, 0.0], 1),
    ],
)
def test_the_start_is_feasible_and_never_worse_than_the_default_alone(fold, name, parameter, values, depth):
    for start, alone, solved in chain(name, parameter, values, depth, fold):
        assert start.objective <= alone.objective * (1 + 1e-9) + 1e-12
        assert solved.objective <= start.objective * (1 + 1e-6) + 1e-9
        assert not [warning for warning in solved.solution.warnings if "violates" in warning]


def test_a_better_neighbour_is_taken(fold):
    """The optimum of MARGOT for another C is ahead of its own start."""
    margot = get_formulation("margot")
    before = margot(C=1.0).build(fold.train, 2)
    neighbour = before.solve("routing", time_limit=10, threads=1).solved_tree
    problem = margot(C=10.0).build(fold.train, 2)
    start = better_start(problem, neighbour, seed=0)
    assert start.name == "neighbour"
    assert start.objective == pytest.approx(problem.formulation.evaluate(start.tree, problem.instance))
    assert start.objective < 0.9 * problem.formulation.evaluate(
        problem.start_tree("default"), problem.instance
    )


def test_a_neighbour_beyond_the_budget_is_not_taken(fold):
    hfs = get_formulation("hfs-margot")
    greedy = hfs(C=100.0, B=4).build(fold.train, 1).solve("highs", time_limit=10).solved_tree
    assert len(greedy.features_used().overall) > 1
    problem = hfs(C=100.0, B=1).build(fold.train, 1)
    start = better_start(problem, greedy, seed=0)
    assert len(start.tree.features_used().overall) == 1
