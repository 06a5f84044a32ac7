import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from mipforest.heuristics.node_problems import NodeProblems
from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError
from mipforest.problem.registry import (
    UnknownFormulation,
    formulation_classes,
    get_formulation,
    make_formulation,
    models_of,
    models_with,
)
from mipforest.problem.structure import TreeCharges
from mipforest.problem.tree_search import search_classes


def test_built_in_models_are_known_by_their_names():
    classes = formulation_classes()
    assert {"margot", "hfs-margot", "sfs-margot"} <= classes.keys()
    for name, cls in classes.items():
        assert issubclass(cls, Formulation)
        assert cls.name == name
        assert cls.summary
        assert cls.source
        assert cls.variants
        assert cls.starts
    assert list(classes) == sorted(classes)


def test_one_formulation_is_loaded_without_the_others():
    code = (
        "import sys; from mipforest.problem.registry import get_formulation; get_formulation('orct'); "
        "print(*(name for name in sys.modules if name.startswith('formulations.')))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    registered = {entry.module for entry in entry_points(group="mipforest.formulations")}
    assert registered & set(told.stdout.split()) == {"formulations.orct"}


def test_a_search_is_asked_for_the_models_that_it_takes_by_their_structure():
    assert models_of(search_classes()["exact-search"]) == (
        "multi",
        "oct",
        "ort",
        "poisson",
        "policy",
        "quantile",
        "survival",
    )
    assert models_of(search_classes()["contree"]) == ("oct",)
    assert models_of(search_classes()["prescription-search"]) == ("opt", "opt-l")
    assert models_of(search_classes()["l-bfgs"]) == ("orct", "s-orct", "s-orrt", "s-orrt-fd")
    assert set(models_of(search_classes()["local-search"])) == set(models_with((TreeCharges, NodeProblems)))


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownFormulation, match=r"no model named 'margott'; did you mean 'margot'.*Known: "):
        get_formulation("margott")
    with pytest.raises(UnknownFormulation, match=r"no model named 'zzzz'\. Known: "):
        get_formulation("zzzz")


def test_a_formulation_is_made_from_its_name_and_what_a_command_or_a_file_says():
    assert make_formulation("margot") == get_formulation("margot")()
    made = make_formulation("hfs-margot", {"C": 10}, "paper")
    assert (made.C, made.variant) == (10.0, "paper")
    mimic = make_formulation("miret", {"alpha": 1}, ensemble="extra-trees:trees=3")
    assert mimic.parameters()["ensemble"] == "extra-trees:trees=3"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"parameters": {"c": 10}}, "margot has no parameter 'c'.*; it has C, "),
        ({"parameters": {"C": -1}}, "parameter C is -1"),
        ({"variant": "loose"}, "no variant 'loose'"),
        ({"ensemble": "random-forest"}, "margot mimics no tree ensemble; leave the ensemble out"),
        ({"parameters": {"ensemble": "forest.joblib"}}, "no parameter 'ensemble'"),
    ],
)
def test_what_a_formulation_does_not_take_is_refused(asked, message):
    with pytest.raises(ParameterError, match=message):
        make_formulation("margot", **asked)


def test_the_plain_parameters_never_carry_an_ensemble():
    with pytest.raises(ParameterError, match="miret has no parameter 'ensemble'"):
        make_formulation("miret", {"ensemble": "forest.joblib"})
