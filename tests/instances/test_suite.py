import random
import tomllib
from pathlib import Path

import pytest

from mipforest.instances import SuiteError, read_suite
from mipforest.problem.registry import get_formulation

SHIPPED = Path(__file__).parents[2] / "instances" / "suite.toml"

MINIMAL = """
[[instance]]
name = "a"
family = "small"
model = "oct"
depth = 1
data = "iris"
"""


def suite_of(tmp_path, text):
    path = tmp_path / "suite.toml"
    path.write_text(text)
    return read_suite(path)


def test_reads_every_key(tmp_path):
    more = 'variant = "paper"\nseed = 3\ntest_size = 0.5\npositive = ["setosa"]\nparameters = {C = [1, 10]}\n'
    (spec,) = suite_of(tmp_path, MINIMAL + more).values()
    assert (spec.name, spec.variant, spec.depth, spec.seed) == ("a", "paper", 1, 3)
    assert spec.parameters == {"C": (1, 10)}
    source = spec.source("standard", tmp_path)
    assert (source.data, source.scaling, source.test_size, source.positive) == (
        "iris",
        "standard",
        0.5,
        ("setosa",),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("depth = 1", ""), "instance 1 lacks the key 'depth'"),
        (("depth = 1", 'depth = "1"'), "instance 1: depth is '1'; it must be a whole number"),
        (("depth = 1", "depth = true"), "depth is True; it must be a whole number"),
        (("depth = 1", "depth = 0"), "the depth is 0; it is 1 to 10"),
        (("depth = 1", "depth = 99"), "the depth is 99; it is 1 to 10"),
        (("depth = 1", 'depth = 1\nensemble = "evil.joblib"'), "and no file"),
        (("depth = 1", 'depth = 1\nensemble = "/tmp/a"'), "and no file"),
        (("depth = 1", "depth = 1\ntest_size = 8"), "test_size is 8; it is a share between 0 and 1"),
        (("depth = 1", "depth = 1\ntest_size = nan"), "test_size is nan"),
        (("depth = 1", "depht = 1"), "the key 'depht', which means nothing .did you mean 'depth'"),
        (('"small"', '"tiny"'), "the family is 'tiny'; it is one of small, medium, large"),
        (('name = "a"', 'name = "../a"'), "must be lower-case letters"),
        (('name = "a"', 'name = "/etc/passwd"'), "must be lower-case letters"),
        (('"iris"', '"../secret.csv"'), "a library takes what everybody has.*, and files in its own folder"),
        (('"iris"', '"/etc/secret.csv"'), "a library takes what everybody has"),
        (('"iris"', '"secret.txt"'), "a library takes what everybody has"),
        (("depth = 1", "depth = 1\ndrop = [1]"), "a column in drop is 1; it must be a text"),
        (('"iris"', '"openml:iris"'), "a library takes what everybody has"),
        (
            ("depth = 1", "depth = 1\nparameters = {C = {a = 1}}"),
            "instance 1: parameters: C is .*; give a number",
        ),
        (("depth = 1", "depth = 1\npositive = [1]"), "a class in positive is 1; it must be a text"),
        (("[[instance]]", "[instance]"), "something else than a list of"),
        (("[[instance]]", "[[instance"), "suite.toml: it is no TOML"),
    ],
)
def test_malformed_suites_say_where_and_why(tmp_path, change, message):
    with pytest.raises(SuiteError, match=message):
        suite_of(tmp_path, MINIMAL.replace(*change))


def test_names_stand_once(tmp_path):
    with pytest.raises(SuiteError, match="instance 2: the name a stands twice"):
        suite_of(tmp_path, MINIMAL * 2)


def test_a_file_without_end_is_refused(tmp_path):
    with pytest.raises(SuiteError, match="that is no suite"):
        suite_of(tmp_path, "#" * (1 << 21))


@pytest.mark.parametrize("count", [500, pytest.param(3000, marks=pytest.mark.slow)])
def test_mutated_suites_are_read_or_refused(tmp_path, count):
    text = SHIPPED.read_bytes()
    path = tmp_path / "suite.toml"
    rng = random.Random(7)
    refused = 0
    for _ in range(count):
        path.write_bytes(mutated(text[: rng.randrange(300, 3000)], rng))
        try:
            specs = read_suite(path)
        except SuiteError:
            refused += 1
        else:
            assert all("/" not in name for name in specs)
    assert refused > count / 2  # exact: a count


def mutated(text, rng):
    content = bytearray(text)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(content))
        kind = rng.randrange(4)
        if kind == 0:
            content[at] = rng.randrange(256)
        elif kind == 1:
            del content[at : at + rng.randrange(20)]
        elif kind == 2:
            content[at:at] = content[max(0, at - rng.randrange(40)) : at]
        else:
            content[at:at] = rng.choice([b"[" * 200, b'"', b"99999999999999999999", b"\x00", b"{", b"nan"])
    return bytes(content) or b"#"


def test_the_shipped_suite_covers_every_model_in_every_size_it_can():
    specs = read_suite(SHIPPED)
    assert {spec.family for spec in specs.values()} == {"small", "medium", "large"}
    for spec in specs.values():
        kind = get_formulation(spec.model)
        assert spec.variant in ("", *kind.variants)
        kind(variant=spec.variant, **spec.parameters)
    with SHIPPED.open("rb") as file:
        assert len(tomllib.load(file)["instance"]) == len(specs)
