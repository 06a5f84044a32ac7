from dataclasses import replace

import numpy as np
import pytest
from margin_data import random_data, random_tree
from tolerance import at_most, less

from formulations.margins import MAX_SCREENED, proven_limits, screened
from formulations.margot import HfsMargot, Margot, SfsMargot
from mipforest.model import Model
from mipforest.problem import repair
from mipforest.time_budget import TimeBudget
from mipforest.trees import Topology

pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": None, "gap": 1e-7}


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """Draw few trees where a start is looked for: a search of 5000 takes seconds, and is tested with the repairs."""
    monkeypatch.setattr(repair, "CANDIDATES", 100)


def limits_up_to(formulation, instance, value, time=None):
    """Limits of both variants for trees up to a value."""
    data, topology = instance.data, instance.topology
    valid = proven_limits(data.X, formulation.epsilon, value, n_branches=topology.n_branches)
    return valid, screened(valid, data, topology, instance.nodes, time or TimeBudget())


@pytest.mark.parametrize(
    ("formulation", "depth", "budget"),
    [
        (Margot(C=(3.0, 1.0), variant="tight"), 2, None),
        # Other penalties, deeper trees, and selection of features, which the proof leaves out.
        pytest.param(Margot(C=(0.3, 0.1), variant="tight"), 2, None, marks=pytest.mark.slow),
        pytest.param(Margot(C=100.0, variant="tight"), 2, None, marks=pytest.mark.slow),
        pytest.param(Margot(C=(3.0, 1.0, 0.5), variant="tight"), 3, None, marks=pytest.mark.slow),
        pytest.param(HfsMargot(C=3.0, B=1, variant="tight"), 2, 1, marks=pytest.mark.slow),
        pytest.param(SfsMargot(C=3.0, B=1, alpha=0.1, variant="tight"), 2, None, marks=pytest.mark.slow),
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2))])
def test_every_tree_up_to_the_value_is_a_point(formulation, depth, budget, seed):
    rng = np.random.default_rng(seed)
    data = random_data(seed, n=14, p=2)
    data = data.with_weights(rng.integers(1, 4, data.n) / 2.0) if seed else data
    instance = formulation.bind(data, Topology(depth))
    drawn = [random_tree(rng, data, depth, epsilon=1e-3, bound=4.0, budget=budget) for _ in range(12)]
    trees = [instance.known, *(formulation.polish(tree, instance) for tree in drawn)]
    values = np.array([formulation.evaluate(tree, instance) for tree in trees])
    for value in np.quantile(values, [0.0, 0.1, 0.5], method="lower"):
        # The tree with just this value, and what ties with it, stay in.
        valid, tight = limits_up_to(formulation, instance, float(value))
        model = Model()
        formulation.declare(model, replace(instance, limits=tight))
        for k in np.flatnonzero(values <= value):
            assert model.violations(formulation.encode(trees[k], instance)).max <= 1e-6
        assert at_most(tight.M_right, valid.M_right)
        assert (tight.M_xi[0] <= valid.M_xi[0] + 1e-12).all()
        assert at_most(tight.bias, valid.bias)


@pytest.mark.slow
def test_constraints_that_contradict_what_is_proven_get_other_limits():
    data = random_data(4, n=6, p=2)
    known = Margot(C=3.0, variant="tight").build(data, 2)
    out = np.argwhere(known.instance.limits.excluded)
    assert len(out)
    found = {}
    for variant in ("valid", "tight"):
        problem = Margot(C=3.0, variant=variant).build(data, 2)
        problem.model["z"][tuple(out[0])].fix(1)
        found[variant] = problem.solve("highs", **PROVEN)
        assert found[variant].verified
        assert found[variant].proven_for == "definition"
    assert found["tight"].objective == pytest.approx(found["valid"].objective, rel=1e-5)
    assert less(known.known_value(), found["tight"].objective)


@pytest.mark.slow  # with a row on the weights, as above with one on the routing
def test_rows_on_weights_keep_the_optimum():
    data = random_data(1, n=6, p=2)
    objectives = []
    for variant in ("valid", "tight"):
        problem = Margot(C=1.0, variant=variant).build(data, 2)
        problem.model.add("steep", problem.model["w"][0].sum() >= 5)
        result = problem.solve("highs", **PROVEN)
        assert result.proven_for == "definition"
        objectives.append(result.objective)
    assert objectives[1] == pytest.approx(objectives[0], rel=1e-5)


def test_without_time_or_with_many_samples_nothing_is_screened():
    formulation = Margot(C=3.0)
    instance = formulation.bind(random_data(4, n=9, p=2), Topology(2))
    valid, tight = limits_up_to(formulation, instance, 20.0, TimeBudget(0.0))
    assert not tight.excluded.any()
    assert at_most(tight.M_right, valid.M_right)
    many = replace(instance, data=random_data(0, n=MAX_SCREENED + 1, p=1))
    valid, tight = limits_up_to(formulation, many, 20.0)
    assert tight.M_right is valid.M_right
    assert not tight.excluded.any()
