from dataclasses import replace

import numpy as np
import pytest
from margin_data import random_data, random_tree
from tolerance import at_most, less, same

from formulations.margot import Margot
from mipforest.errors import Unsupported
from mipforest.problem import repair
from mipforest.problem.parameters import ParameterError
from mipforest.problem.problem import check, snapped_to_tree
from mipforest.problem.problem_data import StartError

pytestmark = pytest.mark.usefixtures("few_penalties")

PROVEN = {"time_limit": None, "gap": 1e-6}
DATA = random_data(3, n=7, p=2)


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """Draw few trees where a start is looked for: a search of 5000 takes seconds, in each test that moves a bias."""
    monkeypatch.setattr(repair, "CANDIDATES", 40)


def built(variant="paper", depth=2, C=1.0, data=DATA):
    return Margot(C=C, variant=variant).build(data, depth)


# ------------------------------------------------------------------ starts


def test_no_start():
    problem = built()
    assert problem.start_tree(None) is None
    assert problem.start_tree("none") is None
    result = problem.solve("highs", start="none", time_limit=0.0)
    assert np.isnan(result.solution.start_objective)
    assert result.tree is None


@pytest.mark.parametrize("start", ["default", "local-svm", "cart"])
def test_named_starts_are_taken(start):
    problem = built()
    result = problem.solve("highs", start=start, time_limit=0.0)
    expected = problem.formulation.evaluate(problem.start_tree(start), problem.instance)
    assert result.solution.start_objective == pytest.approx(expected)
    assert result.objective <= expected + 1e-9
    assert result.verified
    assert result.solution.warnings == ()


def test_the_default_is_the_tree_known_from_building():
    problem = built("valid")
    assert problem.start_tree() is problem.instance.known


def test_an_unknown_start_is_refused():
    with pytest.raises(ParameterError, match="no start 'svm-pth'"):
        built().solve("highs", start="svm-pth")


def test_a_tree_of_another_depth_or_data_is_refused():
    rng = np.random.default_rng(0)
    deep = random_tree(rng, DATA, 3, epsilon=1e-3)
    with pytest.raises(StartError, match=r"depth 3 and 2 features; the problem has depth 2 and 2"):
        built().solve("highs", start=deep)
    with pytest.raises(StartError, match="5 features"):
        built().solve("highs", start=random_tree(rng, random_data(0, 9, 5), 2, epsilon=1e-3))


@pytest.mark.parametrize("scaling", ["minmax", "standard", "none"])
def test_a_tree_in_another_scaling_is_the_same_tree(scaling):
    raw = DATA.X_raw * [3.0, 70.0] + [5.0, -40.0]
    data = type(DATA).from_arrays(raw, DATA.y)
    other = data.with_scaling(scaling)
    tree = random_tree(np.random.default_rng(1), other, 2, epsilon=1e-3)
    tree = tree.with_scaling(other.encoding.offset, other.encoding.scale)
    fitted = built(data=data).start_tree(tree)
    assert fitted.offset is None
    np.testing.assert_allclose(fitted.scores(data.X), tree.scores(raw), atol=1e-9)


def test_a_tree_between_the_sides_is_repaired():
    problem = built()
    tree = random_tree(np.random.default_rng(2), DATA, 2, epsilon=1e-3)
    b = tree.b.copy()
    # One sample at a score of -epsilon / 2: it goes left, but not far enough.
    b[0] -= (DATA.X @ tree.w[0] + b[0])[0] + 5e-4
    broken = replace(tree, b=b)
    values, warnings = problem.start_values(broken)
    assert problem.model.violations(values).max <= 1e-6
    assert "violates the model: row left[" in warnings[0]
    assert "solved anew" in warnings[1]


def test_a_start_against_an_added_constraint_on_assignments_is_replaced_with_a_word(monkeypatch):
    monkeypatch.setattr(repair, "SEARCH_TIME_LIMIT", 60.0)  # a busy machine may need more than the four
    problem = built(C=10.0, data=random_data(6, n=6, p=2))
    known = problem.formulation.encode(problem.start_tree(), problem.instance)["z"]
    problem.model.add("moved", problem.model["z"][0, int(known[0].argmax())] == 0)
    result = problem.solve("highs", **PROVEN)
    assert any("violates the model: row moved by" in text for text in result.solution.warnings)
    assert any("replaced by the best feasible one" in text for text in result.solution.warnings)
    assert result.solution.start_objective >= result.objective - 1e-6


def test_a_start_against_an_added_constraint_keeps_its_routing_where_it_can():
    problem = built(C=10.0)
    problem.model.add("steep", problem.model["w"][0, 0] >= 1)
    result = problem.solve("highs", **PROVEN)
    assert any("violates the model: row steep by" in text for text in result.solution.warnings)
    assert any("integer values were kept" in text for text in result.solution.warnings)
    assert result.solution.start_objective >= result.objective - 1e-6
    assert result.status == "optimal"
    assert result.verified
    assert result.tree.w[0, 0] >= 1 - 1e-6


def test_a_forbidden_feature_is_as_if_it_were_not_there():
    problem = built(C=10.0)
    problem.model.add("no_first", problem.model["w"][:, 0] == 0)
    result = problem.solve("highs", **PROVEN)
    assert result.verified
    only_second = type(DATA).from_arrays(DATA.X[:, 1:], DATA.y)
    expected = built(C=10.0, data=only_second).solve("highs", **PROVEN).objective
    assert result.objective == pytest.approx(expected, rel=1e-5)


def test_variables_of_the_user_are_completed():
    problem = built()
    v = problem.model.continuous("v", lower=0.0, upper=100.0)
    problem.model.add("largest", v >= problem.model["b"][0])
    result = problem.solve("highs", **PROVEN)
    assert result.verified
    assert np.isfinite(result.solution.start_objective)
    assert result.objective == pytest.approx(built().solve("highs", **PROVEN).objective, rel=1e-5)


# ------------------------------------------------------------------ customised models


def fix_first_weight(model):
    model["w"][:, 0].fix(0.0)


def bound_root_weight(model):
    model.add("cap", model["w"][0] <= 0.2)


def move_bias(model):
    model.add("bias", model["b"][0] >= 1.5)


def route_first_samples_right(model):
    model["z"][:3, 1].fix(1.0)


@pytest.mark.parametrize(
    "change",
    [
        # A forbidden feature, and a row on a weight: below.
        pytest.param(fix_first_weight, marks=pytest.mark.slow),
        pytest.param(bound_root_weight, marks=pytest.mark.slow),
        move_bias,
        route_first_samples_right,
    ],
)
def test_the_bound_of_a_changed_model_is_true(change):
    literal, strong = built(), built("valid")
    change(literal.model)
    change(strong.model)
    truth, result = literal.solve("highs", **PROVEN), strong.solve("highs", **PROVEN)
    assert truth.status == "optimal"
    assert result.bound <= truth.objective * (1 + 1e-6)
    assert at_most(result.bound, strong.instance.limits.upper_bound) or result.status == "optimal"
    if result.status == "optimal":
        assert result.objective == pytest.approx(truth.objective, rel=1e-5)
    else:
        assert "no better bound than" in result.solution.warnings[-1]
        assert "paper" not in result.solution.warnings[-1]
    if change is move_bias:
        assert result.bound == 0  # of no tree it is less
        assert result.status == "limit"


def test_progress_shows_no_bound_that_is_withdrawn_later():
    problem = built("valid", C=10.0)
    problem.model.add("low", problem.model["b"] >= -100)  # no limits hold where biases are read from one side
    seen = []
    result = problem.solve("highs", **PROVEN, start=None, on_progress=seen.append)
    assert result.bound == 0
    assert seen
    assert all(event.bound == 0 for event in (*seen, *result.solution.events))


def test_solutions_outside_the_built_limits_are_found_and_proven():
    problem, paper = built("valid"), built()
    far = 2 * float(problem.instance.limits.weight.max())
    for changed in (problem, paper):
        changed.model.add("far", changed.model["w"][0, 0] >= far)
    result, truth = problem.solve("highs", **PROVEN), paper.solve("highs", **PROVEN)
    assert truth.status == result.status == "optimal"
    assert result.verified
    assert result.objective == pytest.approx(truth.objective, rel=1e-5)
    assert less(problem.instance.limits.upper_bound, result.objective)


def test_a_changed_model_without_solution_is_not_called_infeasible():
    problem = built("valid")
    problem.model.add("far", problem.model["w"][0, 0] >= 1e6 * problem.instance.limits.weight.max())
    result = problem.solve("highs", **PROVEN)
    assert result.status == "limit"
    assert result.tree is None
    assert at_most(result.bound, problem.instance.limits.upper_bound * 1e3)
    paper = built()
    paper.model.add("far", paper.model["w"][0, 0] >= 1)
    paper.model.add("and_not", paper.model["w"][0, 0] <= 0)
    assert paper.solve("highs", **PROVEN).status == "infeasible"


@pytest.mark.parametrize("how", ["remove", "relax", "replace"])
def test_removed_and_relaxed_rows_count_as_changes(how):
    problem = built("valid")
    block = problem.model.constraints["margin"]
    if how == "relax":
        block.relax()
    else:
        block.remove()
        if how == "replace":
            problem.model.add("margin", problem.model["b"] >= -1e3)
    assert {"b", "w", "xi", "z"} >= problem.changes().blocks >= {"b"}
    result = problem.solve("highs", time_limit=5)
    assert result.bound == -np.inf


@pytest.mark.parametrize("solver", ["auto", "routing", "highs"])
def test_a_row_without_variables_counts_as_a_change(solver):
    problem = built("valid", depth=1)
    assert not problem.changed()
    b = problem.model["b"]
    problem.model.add("never", (b - b).sum() >= 1)
    assert problem.changed()
    if solver == "routing":
        with pytest.raises(Unsupported, match="the model was changed"):
            problem.solve(solver, **PROVEN)
        return
    assert problem.solve(solver, **PROVEN).status == "infeasible"


def test_a_variable_without_rows_counts_as_a_change():
    problem = built("valid", depth=1)
    problem.model.continuous("extra", 2, lower=1, upper=2)
    assert problem.changed()
    result = problem.solve("auto", **PROVEN)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(built("valid", depth=1).solve("highs", **PROVEN).objective)


def test_an_unchanged_model_has_its_own_bound():
    result = built("valid").solve("highs", **PROVEN)
    assert result.status == "optimal"
    assert result.gap <= 1e-6


def test_an_objective_of_other_terms_is_the_definition_less_those_left_out():
    """The quadratic margins are left out: what the terms are at least is not known, and nothing is proven."""
    problem = built("valid")
    m = problem.model
    m.minimize(m["xi"].sum())
    result = problem.solve("highs", **PROVEN)
    assert result.verified
    assert same(result.evaluated_objective, result.solution.values["xi"].sum())
    assert result.bound == -np.inf
    assert result.status == "limit"


def test_an_objective_to_be_maximised_is_never_verified():
    problem = built("valid")
    problem.model.maximize(-1.0 * problem.model["xi"].sum())
    result = problem.solve("highs", **PROVEN)
    assert not result.verified
    assert "objective is maximised" in result.failed_checks[0]
    assert result.bound == np.inf
    assert result.status == "limit"


def test_a_continuous_quadratic_model_goes_to_clarabel():
    problem = built()
    problem.model["z"].fix(np.eye(2)[np.arange(DATA.n) % 2])
    problem.model["z"].relax()
    result = problem.solve("highs", start=None)
    assert result.solution.solver == "clarabel"
    assert result.solution.bridges == ()


def test_a_tree_that_is_not_the_models_is_not_verified():
    problem = built()
    result = problem.solve("highs", time_limit=0.0)
    wrong = replace(result.solution, objective=result.objective + 1.0)
    checked = check(problem, wrong)
    assert not checked.verified
    assert "by the definition" in checked.failed_checks[0]
    x = result.solution.x.copy()
    x[0] += 30.0
    assert "violates the model" in check(problem, replace(wrong, x=x)).failed_checks[0]


def test_a_point_that_lives_on_tolerances_gives_way_to_its_tree():
    problem = built(C=300.0)
    solution = problem.solve("highs", time_limit=0.0).solution
    values = {**solution.values, "xi": solution.values["xi"] - 5e-7}
    x = problem.model.matrix().to_point(values)
    objective = problem.model.objective(values)
    result = problem.checked(replace(solution, x=x, values=values, objective=objective, bound=objective))
    assert result.verified
    assert result.objective == pytest.approx(result.evaluated_objective, rel=1e-9)
    assert less(result.bound, result.objective)
    assert "this counts" in result.solution.warnings[-1]


def test_a_point_that_breaks_a_row_gives_way_to_its_tree():
    problem = built(C=0.01)
    solution = problem.solve("highs", time_limit=0.0).solution
    form, values = problem.model.matrix(), {**solution.values, "xi": solution.values["xi"] - 3e-6}
    x = form.to_point(values)
    broken = replace(solution, x=x, values=values, objective=form.objective(x))
    assert "violates the model" in check(problem, broken).failed_checks[0]
    held = snapped_to_tree(problem, broken, 1e-4)
    assert check(problem, held).verified
    assert "violates the model by 3e-06, and that of its tree does not" in held.warnings[-1]


def test_writes_its_model(tmp_path):
    built(depth=1).write(tmp_path / "model.mps")
    assert "OBJSENSE" in (tmp_path / "model.mps").read_text() or (tmp_path / "model.mps").stat().st_size
