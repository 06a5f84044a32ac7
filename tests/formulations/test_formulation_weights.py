"""Weights of samples and costs of classes: optima of whole weights are those of repeated samples, in every model."""

import numpy as np
import pandas as pd
import pytest
from enumerate_trees import best_tree_value
from sklearn.ensemble import RandomForestClassifier

from formulations.leaves import baseline_error, class_loss
from formulations.miret import Miret
from formulations.oct import Oct
from formulations.oct_h import OctH
from mipforest.data import DataError, Dataset
from mipforest.estimators import OCTClassifier
from mipforest.problem.parameters import ParameterError, parse_parameters
from mipforest.problem.registry import formulation_classes
from mipforest.testing.formulation_conformance import few_samples, repeated, small_data

pytestmark = pytest.mark.usefixtures("few_penalties")

#: Tangents of a quadratic loss cannot close a much smaller gap in doubles.
GAP = 1e-4

COUNTS = np.array([1, 3, 2, 1, 2, 1])
COSTS = ((0.0, 1.0, 4.0), (2.0, 0.0, 0.5), (1.0, 3.0, 0.0))

#: Forests of repeated samples draw others; see the test of a given forest. Rules of ``ors`` are features of 0 and 1,
#: which these samples are not; ``ogrs`` weighs as it does.
FITTED_HERE = ("miret", "ors")


def few(formulation):
    return few_samples(small_data(formulation), len(COUNTS))


@pytest.mark.slow  # two solves for each variant: the kit compares values of trees in the default suite
@pytest.mark.parametrize(
    ("name", "variant"),
    [
        (name, variant)
        for name, cls in formulation_classes().items()
        for variant in cls.variants
        if name not in FITTED_HERE and cls.takes_weights and cls.has_rows
    ],
)
def test_the_optimum_is_that_of_repeated_samples(name, variant):
    cls = formulation_classes()[name]
    formulation = cls(variant=variant, **({"n_treatment": 1} if cls.task == "prescription" else {}))
    data = few(type(formulation))
    once, again = (
        formulation.build(one, 1).solve(time_limit=20, gap=GAP)
        for one in (data.with_weights(COUNTS), repeated(data, COUNTS))
    )
    assert once.verified
    assert once.status == again.status == "optimal"
    assert once.objective == pytest.approx(again.objective, rel=2 * GAP, abs=1e-6)


def test_a_given_forest_is_mimicked_with_weights():
    data = few(Miret)
    forest = RandomForestClassifier(5, max_depth=1, random_state=0).fit(data.X_raw, data.y)
    formulation = Miret(ensemble=forest, alpha=0.05, proximity=1.5)
    weighted, again = (
        formulation.build(one, 1) for one in (data.with_weights(COUNTS), repeated(data, COUNTS))
    )
    for name in formulation.starts:
        tree = weighted.start_tree(name)
        expected = formulation.evaluate(tree, again.instance)
        assert formulation.evaluate(tree, weighted.instance) == pytest.approx(expected)
    assert weighted.solve().objective == pytest.approx(again.solve().objective, abs=1e-6)


def three_classes(n=9, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, 2)).astype(float)
    weights = rng.choice([0.5, 1.0, 2.0], n)
    return Dataset.from_arrays(X, np.arange(n) % 3, weights=weights)


@pytest.mark.parametrize("variant", Oct.variants)
@pytest.mark.parametrize("solver", ["highs", "exact-search"])
def test_costs_and_weights_of_oct_against_enumeration(variant, solver):
    data = three_classes()
    charges, unit = class_loss(data, COSTS).statistics(data.y, data.weights), baseline_error(data, COSTS)
    problem = Oct(variant=variant, costs=COSTS, alpha=0.05).build(data, 1)
    result = problem.solve(solver, gap=1e-6, time_limit=20)
    best = best_tree_value(data.X, lambda rows: charges[rows].sum(axis=0).min() / unit, 1, 0.05, 1)
    assert result.verified, result.doubts
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best)
    assert result.bound <= best + 1e-6


def test_costs_choose_the_labels_of_oct_h():
    data = Dataset.from_arrays([[0.0], [0.0], [0.0], [1.0]], [0, 0, 1, 0])
    dear = OctH(costs=[[0, 1], [5, 0]]).build(data, 1)
    result = dear.solve(time_limit=20)
    assert result.verified, result.doubts
    assert result.tree.predict(data.X_raw).tolist() == [1, 1, 1, 0]
    assert result.objective == pytest.approx(2 / 3)  # two dear labels; one label for all costs 3


def test_costs_are_read_from_text_and_file(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("0,1\n5,0\n")
    wanted = ((0.0, 1.0), (5.0, 0.0))
    for text in ("0,1;5,0", str(path)):
        assert parse_parameters(Oct, [f"costs={text}"]) == {"costs": wanted}
    assert OctH(costs=str(path)).costs == OctH(costs=np.array(wanted)).costs == wanted
    assert Oct().parameters()["costs"] is None


def test_costs_by_names_of_classes_have_any_order():
    X, y = np.arange(6.0)[:, None], np.array(["no", "yes", "no", "yes", "yes", "no"])
    table = pd.DataFrame([[0, 7], [2, 0]], index=["yes", "no"], columns=["yes", "no"])
    data = Dataset.from_arrays(X, y)
    for costs in (table, table[["no", "yes"]], {"no": {"yes": 2, "no": 0}, "yes": {"no": 7, "yes": 0}}):
        assert Oct(costs=costs).build(data, 1).formulation.costs == ((0, 2), (7, 0))
        named = Oct(costs=costs)
        assert Oct(costs=named.parameters()["costs"]) == named
    fitted, by_rows = (OCTClassifier(depth=1, costs=c).fit(X, y) for c in (table, [[0, 2], [7, 0]]))
    assert (fitted.predict(X) == by_rows.predict(X)).all()
    with pytest.raises(ParameterError, match="costs of no, which is no class of"):
        Oct(costs=table).build(Dataset.from_arrays(X, np.char.replace(y, "no", "maybe")), 1)


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, 1], [-1, 0]], "the entry -1; costs are finite and at least 0"),
        ([[0, 1]], "give K rows of K costs"),
        ([[0, 1], [2]], "give K rows of K costs"),
        ("nowhere.csv", "no costs can be read from 'nowhere.csv'"),
    ],
)
def test_costs_that_are_none(costs, message):
    with pytest.raises(ParameterError, match=message):
        Oct(costs=costs)


def test_costs_that_do_not_fit_the_data():
    data = three_classes()
    with pytest.raises(ParameterError, match="2 rows, and data has 3 classes"):
        Oct(costs=[[0, 1], [1, 0]]).build(data, 1)
    with pytest.raises(DataError, match="charges nothing"):
        Oct(costs=np.zeros((3, 3))).build(data, 1)
    with pytest.raises(ParameterError, match="neither sample weights nor costs"):
        Oct().build(data, 1).start_tree("dp")
