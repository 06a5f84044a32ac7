"""The search of prescriptive trees: what it takes, how it ends, and its plug-in."""

import numpy as np
import pytest
from tolerance import same

from formulations.opt import Opt
from mipforest.data import load
from mipforest.errors import Unsupported
from mipforest.trees import Topology


@pytest.fixture(scope="module")
def experiment():
    return load("synthetic:treatments,experiment=1,n=150,functions=centred")


def test_it_ends_with_the_time_and_keeps_the_start(experiment):
    problem = Opt(mu=0.2).build(experiment, 2)
    result = problem.solve("prescription-search", time_limit=0)
    start = problem.formulation.evaluate(problem.start_tree(), problem.instance)
    assert result.status == "time_limit"
    assert result.verified
    assert result.objective <= start + 1e-12
    assert same(result.bound, problem.instance.least_objective)


def test_it_stops_when_asked(experiment):
    asked = []
    result = (
        Opt()
        .build(experiment, 2)
        .solve("prescription-search", on_progress=lambda event: asked.append(event) or True)
    )
    assert asked
    assert result.status == "interrupted"
    assert result.verified


def test_depth_1_is_the_best_of_all_thresholds(experiment):
    formulation = Opt(mu=0.2)
    found = formulation.build(experiment, 1).solve()
    instance = formulation.bind(experiment, Topology(1))
    leaves, best = instance.leaves, np.inf
    for j in range(experiment.p):
        for v in np.unique(experiment.X[:, j])[1:]:
            right = experiment.X[:, j] >= v
            best = min(best, leaves.cost(leaves.fit(right)) + leaves.cost(leaves.fit(~right)))
    assert found.objective == pytest.approx(best / experiment.n, abs=1e-10)


def test_it_takes_prescriptive_trees_of_two_levels_alone(experiment):
    with pytest.raises(Unsupported, match="depth 1 and 2, not 3; local-search takes any depth"):
        Opt().build(experiment, 3).solve("prescription-search")
