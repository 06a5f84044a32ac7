"""Small random problems of all models, variants and solvers: no wrong word about a tree or an optimum."""

import pytest
from fuzz_models import PARAMETERS, fuzz

from mipforest.problem.registry import formulation_classes


def test_all_models_take_part():
    assert PARAMETERS.keys() == formulation_classes().keys()


def test_a_random_problem():
    figures = fuzz(0, cases=1)
    assert figures.failures == []
    assert figures.solves.total() >= 2
    assert figures.compared.total() > figures.solves.total()


@pytest.mark.slow
def test_a_few_random_problems():
    assert fuzz(0, cases=30).failures == []


@pytest.mark.nightly
def test_half_an_hour_of_random_problems():
    assert fuzz(1, minutes=30).failures == []
