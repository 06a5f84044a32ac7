"""Every helper with every kind of model: the optimum is a literal second model's, and proven for the definition."""

import numpy as np
import pytest

from formulations.margot import Margot
from formulations.miret import Miret
from formulations.oct import Oct
from formulations.olct import Olct
from formulations.ort import Ort, OrtH
from mipforest import constraints
from mipforest.data import Dataset
from mipforest.problem.expressions import NotExpressed

pytestmark = pytest.mark.usefixtures("few_penalties")

literal_trees = pytest.importorskip("literal_trees")

PROVEN = {"time_limit": 60, "gap": 1e-7}
GROUP = np.arange(6) % 2
X = np.array([[0, 2], [1, 0], [2, 3], [3, 1], [4, 4], [5, 2]]) / 5

MODELS = {
    "margot": Margot(C=10.0),
    "olct": Olct(C=5.0),
    "oct": Oct(alpha=0.02),
    "ort": Ort(alpha=0.02),
    "ort-h": OrtH(alpha=0.1, loss="absolute"),
    "miret": Miret(ensemble="random-forest:trees=5", alpha=0.05, proximity=1.5),
}
#: Helper, its arguments, and those of the literal model, which knows features and classes by number.
HELPERS = {
    "forbid_features": (("x0",), {"nodes": [1]}, (0, [1])),
    "require_features": (("x1",), {}, (1,)),
    "feature_budget": ((1,), {}, (1,)),
    "once_per_path": ((), {}, ()),
    "monotone": (("x0",), {"increasing": False}, (0, False)),
    "fix_split": (("x1", 0.5), {}, (0, 1, 0.5)),
    "min_samples_leaf": ((2,), {}, (2,)),
    "demographic_parity": ((GROUP, 0.0), {}, (GROUP, 0.0, 1)),
    "equal_opportunity": ((GROUP, 0.0), {}, (GROUP, 0.0, 1)),
    "max_false_negatives": ((0,), {}, (0, 1)),
}
#: What a model has no expression for: no classes, no single split.
READS_CLASSES = ("monotone", "demographic_parity", "equal_opportunity", "max_false_negatives")
NOT_EXPRESSED = {
    "ort": READS_CLASSES,
    "ort-h": (*READS_CLASSES, "fix_split"),
    "miret": ("monotone", "fix_split"),
}
#: One of each kind; the others take as long together as all other tests of constraints.
QUICK = [
    ("olct", "once_per_path"),
    ("ort", "feature_budget"),
    ("ort-h", "require_features"),
    ("miret", "min_samples_leaf"),
    *((model, helper) for model, helpers in NOT_EXPRESSED.items() for helper in helpers),
]


def built(model):
    y = np.array([0, 1, 1, 0, 1, 0])
    formulation = MODELS[model]
    target = np.array([0.1, 0.9, 0.7, 0.2, 0.8, 0.3]) if formulation.task == "regression" else y
    data = Dataset.from_arrays(X, target, task=formulation.task)
    return formulation.build(data.with_scaling(formulation.scaling), 2)


@pytest.mark.first_cases(5)
@pytest.mark.parametrize(
    ("model", "helper"),
    [
        pytest.param(model, helper, marks=() if (model, helper) in QUICK else pytest.mark.slow)
        for model in MODELS
        for helper in HELPERS
    ],
)
def test_a_helper_keeps_the_proof_and_the_optimum_is_the_literal_models(model, helper):
    problem = built(model)
    given, named, literal = HELPERS[helper]
    if helper in NOT_EXPRESSED.get(model, ()):
        with pytest.raises(NotExpressed):
            getattr(constraints, helper)(problem, *given, **named)
        return
    getattr(constraints, helper)(problem, *given, **named)
    result = problem.solve("highs", **PROVEN)
    assert result.verified, result.failed_checks
    assert (result.status, result.proven_for) == ("optimal", "definition")
    instance, target = problem.instance, None
    if model == "miret":
        known = instance.target
        target = (instance.costs, instance.allowed, known.sign, known.weight, known.group)
    if helper == "fix_split":
        offset, scale = problem.data.encoding.offset, problem.data.encoding.scale
        literal = (0, 1, float((0.5 - offset[1]) / scale[1]))
    expected = literal_trees.literal_optimum(
        model,
        problem.formulation.parameters(),
        problem.data,
        2,
        target=target,
        constraint=(helper, *literal),
        majority=False,
        seconds=60,
    )
    assert result.objective == pytest.approx(expected, rel=1e-5, abs=1e-6)


# ---------------------------------------------------------------------- rows that miret's symmetry survives


SYMMETRIC = {
    "everywhere": lambda p: constraints.forbid_features(p, "x0"),
    "at_the_root": lambda p: constraints.forbid_features(p, "x0", nodes=[0]),
    "budget": lambda p: constraints.feature_budget(p, 1),
    "path": lambda p: constraints.once_per_path(p),
    "leaves": lambda p: constraints.min_samples_leaf(p, 2),
    "parity": lambda p: constraints.demographic_parity(p, GROUP, 0.0),
    "bound": lambda p: p.model["s"].set_bounds(upper=0),
}
ASYMMETRIC = {
    "one node": lambda p: constraints.forbid_features(p, "x0", nodes=[1]),
    "weights": lambda p: constraints.require_features(p, "x0"),
    "one leaf": lambda p: p.model.add("leaf", p.model["z"][0, 0] == 1),
    "intercept": lambda p: p.model.add("b", p.model["b"][0] >= 0),
    "side": lambda p: p.model.add("side", p.model["goes_left"][0, 0] == 1),
    "bound": lambda p: p.model["s"][1, 0].set_bounds(upper=0),
    "cheap right side": lambda p: p.model.add("few", p.model["s"][2].sum() <= p.model["s"][1].sum()),
}


@pytest.mark.first_cases(5)
@pytest.mark.parametrize(
    ("constrain", "kept"),
    [(constrain, True) for constrain in SYMMETRIC.values()]
    + [(constrain, False) for constrain in ASYMMETRIC.values()],
    ids=[*SYMMETRIC, *ASYMMETRIC],
)
def test_miret_keeps_its_order_of_subtrees_under_rows_that_treat_them_alike(constrain, kept):
    problem = built("miret")
    constrain(problem)
    assert problem.valid_below() == (np.inf if kept else -np.inf)


# ---------------------------------------------------------------------- values of leaves


@pytest.mark.parametrize("formulation", [Ort(variant="paper"), OrtH()], ids=["ort", "ort-h"])
def test_a_leaf_value_outside_the_range_of_targets_is_not_proven_for_the_definition(formulation):
    data = Dataset.from_arrays(X[:, :1], np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), task="regression")
    problem = formulation.build(data, 1)
    problem.model.add(
        "high", problem.model["beta0"][1] >= 1.5
    )  # M_f = 1 then forces the other leaf up to 0.5
    result = problem.solve("highs", **PROVEN)
    assert result.status == "optimal"
    assert result.proven_for == "constants"
    assert result.bound_for == "constants"
    free = formulation.build(data, 1)
    constraints.min_samples_leaf(free, 2)
    assert free.solve("highs", **PROVEN).proven_for == "definition"
