"""The tests of formulations find each kind of defect, and name it."""

import re
from dataclasses import fields, replace

import numpy as np
import pytest

from formulations.oct import Oct
from mipforest.problem.formulation import Formulation
from mipforest.testing import formulation_tests


class Sound(Oct):
    """OCT with its starts that need no solve."""

    variants = ("paper",)
    starts = ("cart",)


class ForgetsABlock(Sound):
    def encode(self, tree, instance):
        values = super().encode(tree, instance)
        del values["L"]
        return values


class InventsABlock(Sound):
    def encode(self, tree, instance):
        return {**super().encode(tree, instance), "extra": np.zeros(2)}


class GivesAnotherShape(Sound):
    def encode(self, tree, instance):
        values = super().encode(tree, instance)
        return {**values, "z": values["z"].T}


class EncodesOutside(Sound):
    def encode(self, tree, instance):
        values = super().encode(tree, instance)
        return {**values, "z": np.zeros_like(values["z"])}


class EvaluatesATermTooMuch(Sound):
    def evaluate(self, tree, instance):
        return super().evaluate(tree, instance) + 0.01 * tree.n_splits


class ForgetsWeights(Sound):
    def bind(self, data, topology, budget=None):
        return super().bind(replace(data, weights=np.ones(data.n)), topology, budget)


class FlipsASide(Sound):
    def decode(self, values, instance):
        tree = super().decode(values, instance)
        w, b = tree.w.copy(), tree.b.copy()
        w[0], b[0] = -w[0], -b[0] - 1e-9
        return replace(tree, w=w, b=b)


class RelabelsALeaf(Sound):
    def decode(self, values, instance):
        tree = super().decode(values, instance)
        return replace(tree, leaf_value=1 - tree.leaf_value)


class StartsOutside(Sound):
    """Its start splits below a node that does not."""

    def start(self, name, instance, *, seed=0):
        tree = super().start(name, instance, seed=seed)
        w, b = tree.w.copy(), tree.b.copy()
        w[0], b[0] = 0.0, 1.0
        w[2, 0], b[2] = 1.0, -np.median(instance.data.X[:, 0]) - 1e-3
        return replace(tree, w=w, b=b)


class StartsWithSmallLeaves(Sound):
    """Its start parts the samples with the least value of a feature, which are fewer than N_min, from the others."""

    def start(self, name, instance, *, seed=0):
        tree = super().start(name, instance, seed=seed)
        X = instance.data.X
        j = int((X.min(axis=0) == X).sum(axis=0).argmin())
        w, b = np.zeros_like(tree.w), np.zeros_like(tree.b)
        w[0, j], b[0] = 1.0, -X[:, j].min() - 1e-3
        return replace(tree, w=w, b=b)


class TakesAnyStart(Sound):
    def start(self, name, instance, *, seed=0):
        return super().start("cart", instance, seed=seed)


def with_expressions(**methods):
    """Sound, but for some methods of its expressions."""

    class Misread(Sound):
        def expressions(self, m, instance):
            sound = super().expressions(m, instance)
            kind = type("Misreading", (type(sound),), methods)
            return kind(**{field.name: getattr(sound, field.name) for field in fields(sound)})

    return Misread


class CutsOffTheOptimum(Oct):
    def declare(self, m, instance):
        super().declare(m, instance)
        if self.variant == "tight":
            m.add("no_split", m["d"].sum() == 0)


class BindsAtRandom(Sound):
    def declare(self, m, instance):
        super().declare(m, instance)
        m.add("noise", m["b"].sum() <= 10 + np.random.default_rng().random())


class ChangesTheData(Sound):
    def encode(self, tree, instance):
        values = super().encode(tree, instance)
        X = instance.data.X
        X.flags.writeable = True
        X += 1e-9
        return values


class ForgetsAParameter(Sound):
    def parameters(self):
        return {"alpha": self.alpha}


class ProvesNothing(Sound):
    def valid_below(self, instance, changes):
        return None


class DrawsUnseeded(Sound):
    def candidates(self, instance):
        rng = np.random.default_rng()
        for tree in super().candidates(instance):
            yield replace(tree, leaf_value=rng.integers(0, 2, tree.topology.n_leaves))


BROKEN = [
    (ForgetsABlock, "encode is complete", "encode gives no values of L, which declare makes"),
    (InventsABlock, "encode is complete", "values of extra, which declare does not make"),
    (GivesAnotherShape, "encode is complete", r"gives z the shape \(2, 16\), not \(16, 2\)"),
    (EncodesOutside, "encode is feasible", "random tree 0: the values of encode violate the model: row"),
    (ForgetsWeights, "weights repeat samples", "multiply the loss of each sample by data.weights"),
    (
        EvaluatesATermTooMuch,
        "objective is evaluate",
        "the objective at encode's values is .*, evaluate gives",
    ),
    (FlipsASide, "decode keeps the tree", "sends sample"),
    (RelabelsALeaf, "decode keeps the tree", "predicts otherwise"),
    (StartsOutside, "starts are feasible", "start cart: the values of encode violate the model: row"),
    (StartsWithSmallLeaves, "starts are feasible", "start cart: evaluate calls it infeasible"),
    (TakesAnyStart, "starts are feasible", "an unknown start is not refused"),
    (
        with_expressions(features=lambda self: 1 - self.m["a"]),
        "expressions are right",
        r"features\(\) is 1 at \(0, [01]\), and 0 in the tree",
    ),
    (
        with_expressions(predicted=lambda self, k: 1 - self.m["z"][:, k::2].sum(axis=1)),
        "expressions are right",
        r"predicted\(0\) is",
    ),
    (
        with_expressions(leaves=lambda self: self.m["z"][:, ::-1]),
        "expressions are right",
        r"leaves\(\) is",
    ),
    (
        with_expressions(require_feature=lambda self, j: None),
        "required features are used",
        r"require_feature\(\d\) admits .*, which breaks it",
    ),
    (
        with_expressions(require_feature=lambda self, j: self.m.add("r", self.m["d"].sum() >= 10)),
        "required features are used",
        r"require_feature\(\d\) excludes .*, which keeps it",
    ),
    (
        with_expressions(fix_split=lambda self, t, j, threshold: None),
        "fixed splits are kept",
        r"fix_split\(0, \d, .*\) admits .*, which breaks it",
    ),
    (
        with_expressions(fix_split=lambda self, t, j, threshold: self.m.add("f", self.m["d"].sum() >= 10)),
        "fixed splits are kept",
        r"fix_split\(0, \d, .*\) excludes .*, which keeps it",
    ),
    (
        with_expressions(keep_monotone=lambda self, j, *, increasing: None),
        "monotone rows are kept",
        r"keep_monotone\(\d, increasing=(True|False)\) admits",
    ),
    (
        CutsOffTheOptimum,
        "variants agree",
        "variant tight proves that none is below .*, variant valid has one",
    ),
    (BindsAtRandom, "bind repeats and changes nothing", "row_upper differs"),
    (ChangesTheData, "bind repeats and changes nothing", "changed the data set"),
    (ForgetsAParameter, "parameters survive JSON", "parameters gives alpha, and not N_min"),
    (ProvesNothing, "proven value is a number", "valid_below returns None"),
    (DrawsUnseeded, "candidates repeat", "candidates differ when drawn anew"),
]


def failures(formulation: type[Formulation], only: str = "") -> dict[str, str]:
    """Run tests of a formulation; the messages of those that fail, by their names without the bracket."""
    found = {}
    for test in formulation_tests(formulation, settings=[{"N_min": 3}]):
        name = str(test).partition(" [")[0]
        if only not in ("", name):
            continue
        try:
            test()
        except Exception as error:
            found[name] = str(error)
    return found


def test_a_sound_formulation_passes():
    assert failures(Sound) == {}


@pytest.mark.parametrize(("formulation", "test", "said"), BROKEN)
def test_a_defect_is_found_and_named(formulation, test, said):
    found = failures(formulation, only=test)
    assert test in found, "it passes"
    assert re.search(said, found[test]), found[test]


def test_an_opt_out_counts_as_long_as_the_test_fails():
    name = "proven value is a number [paper]"
    announced = formulation_tests(ProvesNothing, opt_out={name: "nothing is proven"})
    next(test for test in announced if str(test) == name)()
    stale = formulation_tests(Sound, opt_out={name: "nothing is proven"})
    with pytest.raises(AssertionError, match=r"passes, and was opted out of \(nothing is proven\): remove"):
        next(test for test in stale if str(test) == name)()
    with pytest.raises(ValueError, match="no test 'no such test'; there are data and depth are bound"):
        formulation_tests(Sound, opt_out={"no such test": "it is not there"})


class TakesNoTree(Sound):
    def evaluate(self, tree, instance):
        return np.inf


def test_trees_within_the_limits_are_asked_for():
    tests = formulation_tests(TakesNoTree)
    with pytest.raises(AssertionError, match="give a function trees="):
        next(test for test in tests if str(test).startswith("encode is complete"))()
