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
    assert improved.out.startswith("oct-iris: unconfirmed, objective ")
    assert mipforest("instances", "improve", *where, "--unsolved").out == ""

    shown = mipforest("instances", "show", "oct-iris", *where)
    assert "status             unconfirmed" in shown.out
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


def test_files_in_the_librarys_folder_are_data(mipforest, tmp_path):
    rows = [f"{k},{k % 3},{1 + k % 2},{'sick' if k > 7 else 'well'}" for k in range(12)]
    (tmp_path / "patients.csv").write_text("\n".join(["patient,visits,count,outcome", *rows]))
    own = 'data = "patients.csv"\ntarget = "outcome"\nweight = "count"\ndrop = ["patient"]'
    where = ("--library", tmp_path / "library")
    where[1].mkdir()
    suite = SUITE.replace("oct-iris", "oct-patients").replace('data = "iris"\ntest_size = 0.8', own)
    (where[1] / "suite.toml").write_text(suite)
    absent = mipforest("instances", "build", *where)
    assert (absent.code, "patients.csv" in absent.err) == (2, True)
    (tmp_path / "patients.csv").rename(where[1] / "patients.csv")
    (built,) = mipforest("instances", "build", *where, "--json").json["instances"]
    assert (built["data"], built["samples"], built["features"]) == ("patients.csv", 12, 1)
    assert mipforest("instances", "verify", *where, "--rebuild").code == 0
    model = where[1] / "small" / "oct-patients.mps.gz"
    checked = mipforest("check", model, where[1] / "small" / "oct-patients.mst")
    assert "of the tree, applied to the samples" in checked.out


def test_what_mipforest_brings_is_read_from_any_folder(mipforest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    listed = mipforest("instances", "list")
    assert listed.code == 0
    assert "oct-tight-wine-d2" in listed.out
    assert mipforest("instances", "show", "oct-tight-wine-d2").code == 0
    assert not list(tmp_path.iterdir())
    improved = mipforest("instances", "improve", "--only", "oct-tight-wine-d2")
    assert (improved.code, "mipforest instances build" in improved.err) == (2, True)


def test_no_library_there(mipforest, tmp_path):
    result = mipforest("instances", "list", "--library", tmp_path)
    assert result.code == 2
    assert "give its folder with --library" in result.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"oct"', '"otc"'), "'otc'"),
        (('"paper"', '"papre"'), "oct has no variant 'papre'"),
        (
            ("depth = 1", "depth = 1\nparameters = {alhpa = 1.0}"),
            "oct has no parameter 'alhpa' (did you mean 'alpha'?)",
        ),
        (("depth = 1", "depth = 1\nparameters = {alpha = 'x'}"), "parameter alpha is 'x'"),
        (("depth = 1", "depth = 1\nensemble = 'random-forest'"), "oct mimics no tree ensemble"),
        (('"iris"', '"synthetic:nosuch"'), "no generator is called 'nosuch'"),
    ],
)
def test_a_suite_that_asks_for_what_there_is_not(mipforest, library, change, message):
    (library / "suite.toml").write_text(SUITE.replace(*change))
    result = mipforest("instances", "build", "--library", library)
    assert result.code == 2
    assert result.err.startswith("error: instance oct-iris: ")
    assert message in result.err


def test_build_and_improve_as_json(mipforest, library):
    (built,) = mipforest("instances", "build", "--library", library, "--json").json["instances"]
    assert (built["name"], built["status"]) == ("oct-iris", "open")
    options = ("--library", library, "--json", "--time-limit", 20)
    (improved,) = mipforest("instances", "improve", *options).json["instances"]
    assert (improved["status"], improved["difficulty"]) == ("unconfirmed", "")


@pytest.mark.parametrize("damage", [lambda content: content[:400], lambda content: b"no gzip"])
def test_verify_goes_on_after_a_model_that_cannot_be_read(mipforest, library, damage):
    (library / "suite.toml").write_text(SUITE + SUITE.replace("oct-iris", "oct-iris-2"))
    mipforest("instances", "build", "--library", library, "--quiet")
    model = library / "small" / "oct-iris.mps.gz"
    model.write_bytes(damage(model.read_bytes()))
    result = mipforest("instances", "verify", "--library", library)
    assert result.code == 3
    assert result.out.startswith("WRONG  oct-iris\n")
    assert "the compressed data are damaged" in result.out
    assert result.out.endswith("ok     oct-iris-2\n")


@pytest.mark.slow
def test_race_and_pack(mipforest, library, tmp_path):
    where = ("--library", library)
    mipforest("instances", "build", *where, "--quiet")
    race = ("instances", "race", *where, "--out", tmp_path / "race", "--time-limit", 20, "--threads", 1)
    first = mipforest(*race, "--solver", "exact-search,highs", "--record")
    assert first.code == 0
    assert "oct-iris by highs: optimal in" in first.out
    assert (
        "oct-iris by" not in mipforest(*race, "--solver", "exact-search,highs").out
    )  # nothing is left to run
    listed = mipforest("instances", "list", *where, "--json").json["instances"]
    assert (listed[0]["status"], listed[0]["difficulty"]) == ("solved", "easy")
    assert (tmp_path / "race" / "profiles.svg").is_file()
    unknown = mipforest(*race, "--solver", "higs")
    assert unknown.code == 2
    assert "higs" in unknown.err
    assert mipforest("instances", "pack", tmp_path / "all.tar.gz", *where).out.startswith("wrote")
    assert mipforest("instances", "pack", tmp_path / "all.zip", *where).code == 2


DRAWS = """
summary = "oct on tiny samples"

[levels.easy]
n = { from = 12, to = 18 }

[[instance]]
family = "small"
model = "oct"
depth = 1
data = "synthetic:tree,depth=2,n={n},p=2,label_noise=0.2"
"""


def test_generate_and_read_what_was_drawn(mipforest, tmp_path):
    (tmp_path / "tiny.toml").write_text(DRAWS)
    command = ("instances", "generate", tmp_path / "tiny.toml", "--n", 2, "--test-share", 0.5)
    command = (*command, "--out", tmp_path / "out")
    assert mipforest(*command).out.endswith("2 instances, 2 of them new\n")
    again = mipforest(*command, "--json").json
    assert (again["instances"], again["worked_on"], again["failed"]) == (2, 0, [])
    for part in ("train", "test"):
        where = ("--library", tmp_path / "out" / part)
        (listed,) = mipforest("instances", "list", *where, "--json").json["instances"]
        assert listed["status"] == "solved"
        assert mipforest("instances", "verify", *where).code == 0


def test_distributions_are_listed(mipforest):
    listed = mipforest("instances", "distributions", "--json").json["distributions"]
    assert {"oct", "ogrs", "margot"} <= {own["name"] for own in listed}
    assert all(own["levels"]["easy"]["highs"]["runs"] for own in listed)
    assert "oct-parity" in mipforest("instances", "distributions").out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("otc",), "there is no distribution 'otc'"),
        (("oct", "--level", "harder"), "oct has no level 'harder'"),
        (("oct", "--n", "0"), "--n"),
        (("oct", "--solver", "nosuch"), "no solver named 'nosuch'"),
    ],
)
def test_wrong_usage_of_generate_is_one_message(mipforest, tmp_path, args, message):
    result = mipforest("instances", "generate", *args, "--out", tmp_path / "out")
    assert result.code in (2, 4)
    assert message in result.err
    assert "Traceback" not in result.err
    assert not (tmp_path / "out").exists()
