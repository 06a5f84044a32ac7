import pytest

from mipforest.problem.formulation import Formulation
from mipforest.problem.registry import UnknownFormulation, formulation_classes, get_formulation


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
