from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipforest.problem.parameters import (
    ParameterError,
    PerNode,
    TreeEnsemble,
    check_parameters,
    ensemble_parameter_of,
    parameter,
    parameters_of,
    parse_parameters,
    per_node,
    plain_parameters_of,
)


@dataclass(frozen=True)
class Sample:
    C: PerNode = parameter(1.0, "penalty", above=0)
    B: PerNode = parameter(2, "budget", at_least=1, whole=True)
    share: float = parameter(0.5, "share", at_least=0, below=1)
    count: int = parameter(3, "count", at_least=0)
    kind: str = parameter("hard", "kind", choices=("hard", "soft"))
    other: int = 7


KNOWN = parameters_of(Sample)


def test_declared_parameters_are_known_with_their_ranges():
    assert list(KNOWN) == ["C", "B", "share", "count", "kind"]
    assert [KNOWN[name].range for name in KNOWN] == ["> 0", ">= 1", ">= 0, < 1", ">= 0", "hard | soft"]
    assert KNOWN["C"].kind.name == "number per node"
    assert KNOWN["count"].default == 3


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("C", "1e-3", 1e-3), ("C", "1,10", (1.0, 10.0)), ("B", "2", 2), ("B", "1,2,3", (1, 2, 3)),
     ("share", "0", 0.0), ("count", "12", 12), ("kind", "soft", "soft")],
)  # fmt: skip
def test_texts_are_parsed(name, text, value):
    parsed = KNOWN[name].parse(text)
    assert parsed == value  # exact: one number, read
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("C", "ten", "C='ten' is no number per node.*several with commas"),
        ("C", "1,,2", "is no number per node"),
        ("C", "", "is no number per node"),
        ("C", "0", "C is 0.0; it must be finite, > 0"),
        ("C", "1,-2", r"C is -2.0"),
        ("C", "nan", "must be finite"),
        ("C", "inf", "must be finite"),
        ("B", "1.5", "B is 1.5; give a whole number"),
        ("B", "inf", "whole number"),
        ("B", "nan", "whole number"),
        ("B", "0", ">= 1"),
        ("share", "1", "< 1"),
        ("share", "0.1,0.2", "is no number"),
        ("count", "1e3", "is no whole number; give a whole number"),
        ("count", "-1", ">= 0"),
        ("kind", "sofd", "did you mean 'soft'.*Choose from: hard, soft"),
        ("kind", "zzz", r"'zzz'\. Choose from"),
    ],
)
def test_wrong_texts_are_refused(name, text, message):
    with pytest.raises(ParameterError, match=message):
        KNOWN[name].parse(text)


@pytest.mark.parametrize("value", [True, None, "3", (), [[1.0]], (1.0, None), np.array("x")])
def test_other_kinds_of_values_are_refused(value):
    with pytest.raises(ParameterError, match="parameter C"):
        KNOWN["C"].check(value)


def test_values_become_plain_python():
    assert KNOWN["B"].check(np.array([1.0, 2.0])) == (1, 2)
    assert type(KNOWN["B"].check(np.int64(4))) is int
    assert type(KNOWN["C"].check(np.array(4.0).item())) is float
    assert KNOWN["count"].check(2.0) == 2
    with pytest.raises(ParameterError, match="share"):
        KNOWN["share"].check((0.1, 0.2))


def test_assignments():
    assert parse_parameters(Sample, ["C=1,2", " kind =soft"]) == {"C": (1.0, 2.0), "kind": "soft"}
    assert parse_parameters(Sample, []) == {}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["C"], "'C' has no '='; write NAME=VALUE, for example C=1"),
        (["shar=1"], "no parameter 'shar'; did you mean 'share'.*Known: C, B"),
        (["c=1"], "did you mean 'C'"),
        (["zzzzz=1"], r"no parameter 'zzzzz'\. Known"),
        (["other=1"], "no parameter 'other'"),
        (["C=1", "C=2"], "given twice"),
    ],
)
def test_wrong_assignments_are_refused(texts, message):
    with pytest.raises(ParameterError, match=message):
        parse_parameters(Sample, texts)


@given(st.integers(1, 6), st.integers(0, 10**6))
def test_spread_over_the_nodes(depth, seed):
    rng = np.random.default_rng(seed)
    level_of = np.floor(np.log2(np.arange(2**depth - 1) + 1)).astype(int)
    one, levels, nodes = rng.random(), rng.random(depth), rng.random(2**depth - 1)
    np.testing.assert_array_equal(per_node("C", one, depth), np.full(2**depth - 1, one))
    np.testing.assert_array_equal(per_node("C", tuple(levels), depth), levels[level_of])
    np.testing.assert_array_equal(per_node("C", tuple(nodes), depth), nodes)
    with pytest.raises(ParameterError, match=f"C has {2**depth} values; a tree of depth {depth} takes 1"):
        per_node("C", tuple(rng.random(2**depth)), depth) if depth > 1 else per_node("C", (1.0, 2.0), 1)


@pytest.mark.parametrize(("text", "value"), [("yes", True), ("True", True), ("no", False), ("false", False)])
def test_yes_or_no(text, value):
    @dataclass(frozen=True)
    class Switched:
        refine: bool = parameter(True, "whether to refine")

    assert parse_parameters(Switched, [f"refine={text}"]) == {"refine": value}
    with pytest.raises(ParameterError, match="refine='maybe' is no yes or no; give yes or no"):
        parse_parameters(Switched, ["refine=maybe"])
    with pytest.raises(ParameterError, match="give True or False"):
        parameters_of(Switched)["refine"].check(1)


@dataclass(frozen=True)
class Mimic:
    alpha: float = parameter(0.5, "cost", at_least=0)
    target: object = parameter("random-forest", "what to mimic", kind=TreeEnsemble())


def test_an_ensemble_is_a_parameter_of_its_own_kind_whatever_the_field_is_called():
    assert list(parameters_of(Mimic)) == ["alpha", "target"]
    assert list(plain_parameters_of(Mimic)) == ["alpha"]
    assert ensemble_parameter_of(Mimic) == parameters_of(Mimic)["target"]
    assert ensemble_parameter_of(Sample) is None
    with pytest.raises(ParameterError, match=r"no parameter 'target'\. Known: alpha"):
        parse_parameters(Mimic, ["target=random-forest"])
    with pytest.raises(ParameterError, match=r"Mimic has no parameter 'alhpa'.*did you mean"):
        check_parameters(Mimic, {"alhpa": 1})


@pytest.mark.parametrize(
    "value", ["forest.joblib", "./forest", "/tmp/forest", "random-forest ", "", None, object()]
)
def test_only_the_name_of_an_ensemble_to_fit_can_name_no_file(value):
    target = ensemble_parameter_of(Mimic)
    assert target.may_name_file(value)
    assert not target.may_name_file("extra-trees:trees=3,seed=1")


def test_a_free_text_that_is_not_the_default_may_name_a_file():
    @dataclass(frozen=True)
    class Described:
        note: str = parameter("none", "a text")
        kind: str = parameter("hard", "kind", choices=("hard", "soft"))

    known = parameters_of(Described)
    assert [known["note"].may_name_file(text) for text in ("none", "/etc/passwd")] == [False, True]
    assert not known["kind"].may_name_file("soft")
