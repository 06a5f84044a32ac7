"""Ctrl-C at searches of real processes: they keep the best tree, and end soon."""

import pytest
from interrupted_processes import interrupted

#: Seconds within which a search hears Ctrl-C on an idle machine, and more for one that is not.
SOON, PATIENCE = 2.0, 18.0

#: Solves a problem whose search is compiled first, says so, and prints what the result is after Ctrl-C.
PROGRAM = """
import json, sys
from mipforest.interruption import interruptible
from mipforest.data.synthetic import load_synthetic
from mipforest.problem.registry import make_formulation
from mipforest.time_budget import TimeBudget

model, solver, depth, n = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
formulation = make_formulation(model)
name = "tree,depth=4,n={n},p=20,label_noise=0.1"
depth = depth if formulation.gives.is_tree else None
tiny = load_synthetic(name.format(n=60), scaling=formulation.scaling)
formulation.build(tiny, depth).solve(solver, time_limit=1)
data = load_synthetic(name.format(n=n), scaling=formulation.scaling)
with interruptible(lambda: None) as interruption:
    budget = TimeBudget(300.0)
    interruption.solving(budget)
    problem = formulation.build(data, depth, budget=budget, whole=False)
    problem.start_tree()
    print("ready", flush=True)
    result = problem.solve(solver, time_limit=300)
print(json.dumps({"status": result.status, "verified": result.verified, "found": result.tree is not None}), flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "solver"), [("oct", "contree"), pytest.param("oct", "tmo", marks=pytest.mark.slow)]
)
def test_ctrl_c_leaves_the_best_tree(model, solver):
    if solver == "contree":
        pytest.importorskip("pycontree")
    told, _ = interrupted(PROGRAM, model, solver, "5", "1000", after=1.0)
    assert told == {"status": "interrupted", "verified": True, "found": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "solver", "depth"),
    [
        ("oct", "contree", 5),
        ("oct", "local-search", 5),
        ("oct", "tmo", 5),
        ("oct", "exact-search", 5),
        ("oct-h", "local-search", 4),
        ("ogrs", "highs", 1),
    ],
)
def test_ctrl_c_leaves_the_best_tree_of_many_samples(model, solver, depth):
    if solver == "contree":
        pytest.importorskip("pycontree")
    told, seconds = interrupted(
        PROGRAM, model, solver, str(depth), "20000" if model != "ogrs" else "1000", after=3.0
    )
    assert (told["status"], told["found"]) == ("interrupted", True)
    assert seconds < SOON + PATIENCE
