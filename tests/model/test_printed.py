"""What ``print`` shows of a model: algebra, rows with their names, and what each block means."""

from mipforest import get_formulation, load
from mipforest.model import Model
from mipforest.problem.registry import formulation_classes


def knapsack():
    m = Model("knapsack")
    take = m.binary("take", ["lamp", "rope", "tent"], meaning="whether a thing is taken")
    over = m.nonnegative("over", upper=9, meaning="kilograms above the limit")
    m.maximize([3.0, 4.0, 5.0] @ take - 2 * over)
    m.add("weight", [2.0, 3.0, 4.0] @ take <= 5 + over, meaning="no more than can be carried")
    m.add("light", take["lamp":"rope"].sum() >= 1)
    return m


def test_a_small_model_is_printed_as_algebra():
    assert str(knapsack()).partition("\n\n")[2] == (
        "maximise\n"
        "  3 take[lamp] + 4 take[rope] + 5 take[tent] - 2 over\n\n"
        "subject to\n"
        "  weight, 1 row: no more than can be carried\n"
        "    weight: 2 take[lamp] + 3 take[rope] + 4 take[tent] - over <= 5\n"
        "  light, 1 row\n"
        "    light: take[lamp] + take[rope] >= 1\n\n"
        "with\n"
        "  take[lamp..tent], 3 binary: whether a thing is taken\n"
        "  over, 1 continuous, 0 to 9: kilograms above the limit"
    )


def test_variables_and_constraints_are_printed_alone_and_copies_keep_what_they_mean():
    m = knapsack()
    assert str(m.variables) in str(m)
    assert str(m.constraints) in str(m)
    assert str(m.copy()) == str(m)


def test_a_part_of_a_model_is_printed_without_its_prefix():
    m = Model()
    left = m.under("left")
    x = left.integer("x", 2, lower=1, meaning="things")
    left.add("most", x.sum() <= 5)
    assert "  x[2], 2 integer, >= 1: things" in str(left)
    assert "  left.x[2], 2 integer, >= 1: things" in str(m)
    assert "  most, 1 row" in str(left)


def test_a_large_model_is_abbreviated():
    m = Model()
    x = m.continuous("x", 5000)
    m.add("least", x >= 0.0)
    assert "    ... (4998 more)" in str(m)
    assert len(str(m).splitlines()) < 20


def test_every_block_of_a_formulation_says_what_it_means():
    data = load("iris").binarise("setosa")
    for name in ("oct", "oct-h", "margot", "hfs-margot", "olct", "loss-optimal", "svm-leaves"):
        for variant in formulation_classes()[name].variants:
            model = get_formulation(name)(variant=variant).build(data, 1).model
            assert all(": " in line for line in str(model.variables).splitlines()), (name, variant)
