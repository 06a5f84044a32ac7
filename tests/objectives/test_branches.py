import subprocess
import sys

import numpy as np
import pytest

from formulations.loss_optimal import LossOptimal
from mipforest.objectives.losses import HINGE, BranchLoss, LogisticLoss, SquaredHinge
from mipforest.problem.parameters import parameters_of
from mipforest.problem.registry import UnknownLoss, get_loss, loss_classes, loss_names

#: Of numbers up to 4 that are added and multiplied a few times.
ROUNDING = 1e-14

PLUGIN = """
import numpy as np
from mipforest.objectives.losses import PiecewiseLinearLoss

class TwoSlopes(PiecewiseLinearLoss):
    name = "two-slopes"

    def __init__(self):
        super().__init__(np.array([1.0, 1.0]), np.array([-1.0, -3.0]))
"""


def test_built_in_losses_are_known_by_their_names():
    assert loss_names()[:4] == ("misclassification", "hinge", "squared-hinge", "logistic")
    assert tuple(loss_classes()) == loss_names()
    for name, cls in loss_classes().items():
        assert issubclass(cls, BranchLoss)
        assert cls.name == name


def test_losses_are_built_from_settings():
    assert get_loss("misclassification").build(epsilon=0.2, tangents="V0").flat_from == 0.2
    assert get_loss("hinge").build(epsilon=0.2, tangents="V0").flat_from == HINGE.flat_from
    assert len(LogisticLoss.build(epsilon=0.2, tangents="V1").slopes) == 4


@pytest.mark.parametrize("count", [1, 3, 7, 50])
def test_tangents_of_the_squared_hinge_lie_below_it_as_closely_as_stated(count):
    loss, v = SquaredHinge(count), np.linspace(-1, 2, 3001)
    below = np.maximum(0, 1 - v) ** 2 - loss.of_margin(v)
    assert below.min() >= -ROUNDING
    assert below.max() == pytest.approx(1 / count**2, abs=1e-6)  # at the margin -1, and between tangents
    assert loss.of_margin(np.array([loss.flat_from])) == pytest.approx([0.0], abs=ROUNDING)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(UnknownLoss, match=r"no loss named 'hinges'; did you mean 'hinge'.*Known: "):
        get_loss("hinges")


def test_the_general_tree_takes_any_registered_loss():
    assert parameters_of(LossOptimal)["loss"].range == " | ".join(loss_names())


@pytest.mark.slow  # found as the built-in ones are, by its entry point
def test_a_loss_of_another_package_is_found(tmp_path):
    """As after ``pip install``: a module, and the entry point in its package's metadata."""
    (tmp_path / "two_slopes.py").write_text(PLUGIN)
    metadata = tmp_path / "two_slopes-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: two-slopes\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[mipforest.losses]\ntwo-slopes = two_slopes:TwoSlopes\n")
    solve = (
        f"import sys; sys.path.append({str(tmp_path)!r}); import mipforest\n"
        "data = mipforest.load('iris').binarise('virginica').take(range(90, 110))\n"
        "tree = mipforest.get_formulation('loss-optimal')(loss='two-slopes')\n"
        "result = tree.build(data, depth=1).solve('highs', time_limit=20)\n"
        "print(result.verified, tree.parameters()['loss'])\n"
    )
    done = subprocess.run([sys.executable, "-c", solve], capture_output=True, text=True, check=True)
    assert done.stdout == "True two-slopes\n"
