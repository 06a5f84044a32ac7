import pytest

SUITE = """
[[instance]]
name = "oct-iris"
family = "small"
model = "oct"
variant = "paper"
depth = 1
data = "iris"
test_size = 0.8
"""


@pytest.fixture
def library(tmp_path):
    (tmp_path / "suite.toml").write_text(SUITE)
    return tmp_path


def test_build_list_show_improve_verify(mipforest, library):
    where = ("--library", library)
    assert "1 more are in the suite" in mipforest("instances", "list", *where).out
    assert mipforest("instances", "build", *where).code == 0
    (listed,) = mipforest("instances", "list", *where, "--json").json["instances"]
    assert (listed["status"], listed["objective"]) == ("open", None)

    improved = mipforest("instances", "improve", *where, "--time-limit", 20)
    assert improved.out.startswith("oct-iris: easy, objective ")
    assert mipforest("instances", "improve", *where, "--unsolved").out == ""

    shown = mipforest("instances", "show", "oct-iris", *where)
    assert "status             easy" in shown.out
    assert str(library / "small" / "oct-iris.sol") in shown.out
    assert "assign" in mipforest("instances", "stats", *where).out
    verified = mipforest("instances", "verify", *where, "--rebuild")
    assert (verified.code, verified.out) == (0, "ok     oct-iris\n")


def test_verify_ends_with_3_where_something_is_wrong(mipforest, library):
    where = ("--library", library)
    mipforest("instances", "build", *where, "--quiet")
    (library / "small" / "oct-iris.mst").write_text("z[0,n1] 7\n")
    result = mipforest("instances", "verify", *where)
    assert result.code == 3
    assert result.out.startswith("WRONG  oct-iris\n")
    (wrong,) = mipforest("instances", "verify", *where, "--json").json["wrong"]
    assert wrong["instance"] == "oct-iris"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("list", "--only", "oct-irsi"), "no instance, family or model is called 'oct-irsi'"),
        (("show", "oct"), "no instance is called 'oct'"),
        (("show", "oct-iris"), "oct-iris was not built yet; run: mipforest instances build --only oct-iris"),
        (("improve", "--solver", "nosuch"), "no solver named 'nosuch'"),
    ],
)
def test_wrong_usage_is_one_message(mipforest, library, args, message):
    result = mipforest("instances", *args, "--library", library)
    assert result.code in (2, 4)
    assert message in result.err
    assert "Traceback" not in result.err


def test_no_library_there(mipforest, tmp_path):
    result = mipforest("instances", "list", "--library", tmp_path)
    assert result.code == 2
    assert "give its folder with --library" in result.err


def test_a_suite_that_asks_for_a_model_there_is_not(mipforest, library):
    (library / "suite.toml").write_text(SUITE.replace('"oct"', '"otc"'))
    result = mipforest("instances", "build", "--library", library)
    assert result.code == 2
    assert "otc" in result.err
