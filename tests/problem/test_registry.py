import pytest

from mipforest.problem.formulation import Formulation
from mipforest.problem.parameters import ParameterError
from mipforest.problem.registry import (
    UnknownFormulation,
    formulation_classes,
    get_formulation,
    make_formulation,
)


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
