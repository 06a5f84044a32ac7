"""``mipforest compile``: what it compiles is there for later commands."""

import pytest

from mipforest.cli.compile import FRACTIONS, Kind, kinds_of, problem_of
from mipforest.cli.doctor import small_data
from mipforest.problem.registry import formulation_classes, get_formulation
from mipforest.searches.exact.pair_counts import are_faster
from mipforest.searches.exact.search import in_whole_units, rows_of, takes_most_splits


@pytest.mark.slow
def test_what_is_compiled_is_there_afterwards(mipforest):
    first = mipforest("compile", "--model", "ogrs", "--json")
    assert first.code == 0, first.err
    again = mipforest("compile", "--model", "ogrs")
    assert again.code == 0, again.err
    assert "ogrs: there" in again.out
    assert "0 s of compiling; kept in" in " ".join(again.out.split())
    assert first.json["folder"] in again.out.replace("\n", "")


def test_univariate_trees_have_all_kinds():
    kinds = kinds_of("oct")
    assert len(set(kinds)) == len(kinds) == 19
    assert Kind("oct", 3) in kinds
    assert str(Kind("oct", 2, 3, 2, FRACTIONS)) == "oct, depth 2, three classes, least leaf, weights"
    assert {kind.classes for kind in kinds_of("ort")} == {2}
    assert [kind.depth for kind in kinds_of("margot")] == [1, 2]


@pytest.mark.parametrize("name", formulation_classes())
def test_every_model_has_small_data_that_it_takes(name):
    formulation = get_formulation(name)()
    assert small_data(formulation).n >= 10
    formulation.build(small_data(formulation), 1, declare=False, whole=False)


@pytest.mark.parametrize("name", ["multi", "oct", "poisson", "policy", "survival"])
def test_indicators_of_all_kinds_are_searched_by_pairs(name):
    kinds = [kind for kind in kinds_of(name) if kind.indicators]
    assert kinds
    for kind in kinds:
        charged = problem_of(kind).structure
        assert are_faster(rows_of(in_whole_units(charged))[0], kind.depth)
        assert takes_most_splits(charged, kind.depth) or not kind.is_limited


def test_a_model_that_there_is_not_is_told(mipforest):
    done = mipforest("compile", "--model", "otc")
    assert done.code == 2
    assert "did you mean" in done.err
