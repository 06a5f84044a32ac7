"""MARGOT and OLCT state their own rows; the general loss-optimal tree states the same ones at their points."""

from dataclasses import replace

import pytest
from margin_data import random_data

from formulations.loss_optimal import LossOptimal
from formulations.margot import HfsMargot, Margot, SfsMargot
from formulations.olct import BudgetedOlct, Olct, UnivariateOlct
from mipforest.model import Model
from mipforest.testing import assert_same_form
from mipforest.trees import Topology

pytestmark = pytest.mark.usefixtures("few_penalties")

BY_LEVEL = {1: 2.0, 2: (2.0, 0.5), 3: (2.0, 0.5, 1.0)}


@pytest.fixture(autouse=True)
def limits_of_cart(monkeypatch):
    """Prove limits from CART's tree: any will do to compare rows, and the best is searched for in seconds."""
    for model in (Margot, Olct, LossOptimal):

        def cart(self, name, instance, start=model.start, **options):
            return start(self, "cart", instance, **options)

        monkeypatch.setattr(model, "start", cart)


def declared(formulation, instance):
    model = Model("tree")
    formulation.declare(model, instance)
    return model.matrix()


def assert_is_the_point(special, general, depth):
    """The same columns and rows, names included, with the same constants: those of the special model."""
    data, topology = random_data(depth, n=6, p=3), Topology(depth)
    instance = special.bind(data, topology)
    general_instance = replace(general.bind(data, topology), limits=instance.limits)
    assert_same_form(declared(special, instance), declared(general, general_instance))


@pytest.mark.parametrize("variant", LossOptimal.variants)  # the general tree has no variant tight
@pytest.mark.parametrize(
    ("special", "selection", "depth", "C"),
    [
        (Margot, "none", 1, BY_LEVEL[1]),
        (Margot, "none", 2, (2.0, 0.5, 7.0)),
        (Margot, "none", 3, BY_LEVEL[3]),
        (HfsMargot, "hard", 2, BY_LEVEL[2]),
        (HfsMargot, "hard", 3, 1.5),
        (SfsMargot, "soft", 1, BY_LEVEL[1]),
        (SfsMargot, "soft", 2, BY_LEVEL[2]),
    ],
)
def test_the_margot_family_is_hinge_and_squares_at_all_levels(special, selection, depth, C, variant):
    selected = {
        "none": {},
        "hard": {"B": (1, 2)[:depth] if depth < 3 else 2},
        "soft": {"B": 1, "alpha": 0.3},
    }[selection]
    # The general tree has a slack per sample and node in variant valid, MARGOT in both.
    general = LossOptimal(loss="hinge", regulariser="l2", selection=selection, C=C, **selected)
    assert_is_the_point(special(C=C, variant=variant, **selected), general, depth)


@pytest.mark.parametrize("variant", LossOptimal.variants)
@pytest.mark.parametrize(
    ("special", "own", "selected"),
    [
        (Olct, {}, {}),
        (Olct, {"tangents": "V1"}, {"tangents": "V1"}),
        (BudgetedOlct, {"B": (1, 2)}, {"selection": "hard", "B": (1, 2)}),
        (UnivariateOlct, {}, {"selection": "hard", "B": 1}),
    ],
    ids=["olct", "tangents", "budgeted", "univariate"],
)
def test_the_olct_family_is_log_loss_and_l1_at_all_levels(special, own, selected, variant):
    C, epsilon = BY_LEVEL[2], Olct().epsilon
    general = LossOptimal(
        loss="logistic", regulariser="l1", C=C, epsilon=epsilon, variant=variant, **selected
    )
    assert_is_the_point(special(C=C, variant=variant, **own), general, 2)


def test_a_difference_would_be_seen():
    with pytest.raises(AssertionError, match="differs"):
        assert_is_the_point(Margot(C=1.0), LossOptimal(loss="hinge", regulariser="l2", C=2.0), 2)
