"""Small random problems of all models, variants and solvers: no wrong word about a tree or an optimum."""

from pathlib import Path

import fuzz_models
import pytest
from cases import Case, Figures, Log, cases_of
from fuzz_models import PARAMETERS, fuzz

from mipforest.problem.registry import formulation_classes


def test_all_models_take_part():
    assert PARAMETERS.keys() == {name for name, cls in formulation_classes().items() if cls.has_rows}


def test_a_random_problem():
    figures = fuzz(1, cases=1)
    assert figures.failures == []
    assert figures.solves.total() >= 2
    assert figures.compared.total() > figures.solves.total()


def test_a_run_goes_on_where_it_was_killed_and_parts_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []

    def check(rng, solvers, case, *, weights):
        del rng, solvers, weights
        drawn.append(case.number)
        case.model, case.depth, case.constraint = "oct", 2, "monotone"
        case.add("tight", "highs", proven=case.number % 2 == 0).witnesses.append("literal")
        if case.number == 4:
            yield "a wrong word"
        if case.number == 1:
            raise ArithmeticError("lost")

    monkeypatch.setattr(fuzz_models, "check", check)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    fuzz(7, cases=3, log=Log(first))
    with first.open("a") as file:
        file.write('{"seed": 7, "num')  # killed while it wrote
    whole = fuzz(7, solves=5, log=Log(first))
    assert drawn == [0, 1, 2, 3, 4]
    assert whole.failures == ["seed 7 case 1: ArithmeticError: lost", "seed 7 case 4: a wrong word"]
    fuzz(7, first=4, cases=2, log=Log(second))
    both = Figures()
    for case in cases_of([first, second]):
        both.count(case)
    assert (both.cases, both.solves["oct", "highs"], both.proven.total()) == (6, 6, 3)
    assert "| `oct` | highs | 6 | 3 | 0 | 6 | 0 | 0 | 0 |" in both.table()
    assert "| depth 2 | 6 |" in both.table()
    assert Log(second).done(7, 5) == next(case for case in cases_of([second]) if case.number == 5)
    assert isinstance(Log(second).done(7, 4), Case)


@pytest.mark.slow
def test_a_few_random_problems():
    assert fuzz(0, cases=30).failures == []


@pytest.mark.nightly
def test_half_an_hour_of_random_problems():
    assert fuzz(1, minutes=30).failures == []
