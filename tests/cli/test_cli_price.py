"""``mipforest price``: the optimum for each limit of a constraint."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from tolerance import at_least, at_most, same

import mipforest
from mipforest.cli.price import texts_of
from mipforest.problem.constraints import AtMostFeatures, Recall
from mipforest.problem.prices import priced_at


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({name: rng.integers(0, 4, 40) for name in ("age", "dose", "site")})
    noise = rng.random(40) < 0.15
    frame["ill"] = np.where((frame.age + frame.dose > 3) ^ noise, "yes", "no")
    path = tmp_path_factory.mktemp("price") / "people.csv"
    frame.to_csv(path, index=False)
    return path


def options(table, *more):
    return "price", "--model", "oct", "--depth", "2", "--data", str(table), "--target", "ill", *more


def test_each_point_is_the_optimum_with_its_limit(mipforest, table, tmp_path):
    picture = tmp_path / "price.svg"
    done = mipforest(
        *options(table, "--vary", "recall yes", "--limits", "50%:100%:25%", "-o", picture, "--json")
    )
    assert done.code == 0, done.err
    assert picture.read_text().rstrip().endswith("</svg>")
    values = []
    for point, least in zip(done.json["points"], (0.5, 0.75, 1.0), strict=True):
        problem = problem_of(table)
        problem.constrain(Recall("yes", least))
        alone = problem.solve(time_limit=20)
        assert point["status"] == "optimal"
        assert same(point["objective"], alone.objective)
        assert at_least(point["constraints"][0]["value"], least)
        values.append(point["objective"])
    assert all(at_most(low, high) for low, high in pairwise(values))


def problem_of(table):
    return mipforest.get_formulation("oct")().build(
        mipforest.load(str(table), target="ill", scaling="minmax"), 2
    )


def test_other_constraints_hold_at_every_point_and_what_cannot_hold_is_said(mipforest, table):
    done = mipforest(*options(table, "--vary", "at-most-features", "--limits", "0,1,2", "--require", "age"))
    assert done.code == 0, done.err
    assert [line.split()[-1] for line in done.out.splitlines()[1:]] == ["infeasible", "optimal", "optimal"]


def test_points_in_python_begin_with_the_tree_before(table):
    found = priced_at(problem_of(table), [AtMostFeatures(k) for k in (1, 2, 3)], seconds=20)
    assert [len(result.features_used) <= k for k, result in enumerate(found, 1)] == [True] * 3
    assert all(result.status == "optimal" for result in found)


@pytest.mark.parametrize(
    ("vary", "limits", "said"),
    [
        ("recal yes", "50%", "did you mean 'recall'?"),
        ("recall maybe", "50%", "no class 'maybe'"),
        ("recall yes", "90%:80%:5%", "from 90 to 80 there is no step of 5"),
        ("recall yes", "much:more:most", "write FROM:TO:STEP"),
        ("at-most-features", "few", "'few' is no whole number"),
    ],
)
def test_what_is_no_constraint_or_limit_is_told(mipforest, table, vary, limits, said):
    done = mipforest(*options(table, "--vary", vary, "--limits", limits))
    assert done.code == 2
    assert said in " ".join(done.err.split())


def test_limits_are_listed_or_go_by_steps():
    assert texts_of("80%:100%:10%") == ["80%", "90%", "100%"]
    assert texts_of("0:0.3:0.1") == ["0", "0.1", "0.2", "0.3"]
    assert texts_of("1, 2,3") == ["1", "2", "3"]
