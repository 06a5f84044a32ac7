from importlib.metadata import EntryPoint

import pytest

from mipforest.errors import SolverUnavailable
from mipforest.solvers import base
from mipforest.solvers.base import Feature, Solver
from mipforest.solvers.clarabel import Clarabel
from mipforest.solvers.highs import Highs


def test_built_in_solvers_are_entry_points_of_the_group() -> None:
    classes = base.solver_classes()
    assert classes["highs"] is Highs
    assert classes["clarabel"] is Clarabel


def test_gives_an_instance_by_name() -> None:
    solver = base.get_solver("highs")
    assert isinstance(solver, Highs)
    assert solver.version().count(".") == 2


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(SolverUnavailable, match=r"no solver named 'higs'; did you mean highs\?.*clarabel, "):
        base.get_solver("higs")


def test_a_name_like_no_other_lists_what_is_known() -> None:
    with pytest.raises(SolverUnavailable, match=r"no solver named 'zzz'.*clarabel.*highs"):
        base.get_solver("zzz")


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "find_spec", lambda _: None)
    assert not Highs.available()
    with pytest.raises(SolverUnavailable, match="pip install highspy"):
        base.get_solver("highs")


def test_a_solver_of_another_package_has_the_same_standing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = (EntryPoint("mine", "mipforest.solvers.highs:Highs", base.GROUP),)
    monkeypatch.setattr(base, "entry_points", lambda *, group: found if group == base.GROUP else ())
    base.solver_classes.cache_clear()
    try:
        assert isinstance(base.get_solver("mine"), Highs)
    finally:
        base.solver_classes.cache_clear()


@pytest.mark.parametrize("solver", [Highs, Clarabel])
def test_every_built_in_solver_states_what_it_is(solver: type[Solver]) -> None:
    assert solver.name
    assert solver.package
    assert solver.install
    assert Feature.LP in solver.features
