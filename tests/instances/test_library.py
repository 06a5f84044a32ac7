import gzip
import hashlib
import random
import shutil
import tarfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from tolerance import at_most, less

from mipforest.files import read_mps
from mipforest.files.solutions import point_of, read_point
from mipforest.instances import (
    CatalogueError,
    Entry,
    Library,
    Run,
    SuiteError,
    build_instance,
    build_problem,
    improve,
    pack,
    read_catalogue,
    read_suite,
    verify,
    write_catalogue,
)
from mipforest.instances.results import record_results
from mipforest.model.check import violations
from mipforest.problem.problem import Problem
from mipforest.problem.registry import get_formulation
from mipforest.settings import FEASIBILITY_TOLERANCE, SolveSettings

SHIPPED = Path(__file__).parents[2] / "instances"

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
    source = spec.data_source("standard", tmp_path)
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
        (('"iris"', '"secret.xlsx"'), "a library takes what everybody has"),
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
    text = (SHIPPED / "suite.toml").read_bytes()
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
    specs = read_suite(SHIPPED / "suite.toml")
    assert {spec.family for spec in specs.values()} == {"small", "medium", "large"}
    for spec in specs.values():
        kind = get_formulation(spec.model)
        assert spec.variant in ("", *kind.variants)
        kind(variant=spec.variant, **spec.parameters)
    with (SHIPPED / "suite.toml").open("rb") as file:
        assert len(tomllib.load(file)["instance"]) == len(specs)


SUITE = """
[[instance]]
name = "oct-iris"
family = "small"
model = "oct"
variant = "paper"
depth = 1
data = "iris"
test_size = 0.8
parameters = { alpha = 0.01 }

[[instance]]
name = "margot-4"
family = "medium"
model = "margot"
variant = "paper"
depth = 1
data = "synthetic:4-partitions"
"""


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "suite.toml").write_text(SUITE)
    return Library(folder)


def build_all(library):
    return [build_instance(library, spec, version="test") for spec in library.suite.values()]


def test_the_same_suite_gives_the_same_bytes(library, tmp_path):
    build_all(library)
    again = Library(tmp_path / "again")
    again.folder.mkdir()
    shutil.copy(library.folder / "suite.toml", again.folder)
    build_all(again)
    for spec in library.suite.values():
        assert library.model_path(spec).read_bytes() == again.model_path(spec).read_bytes()
        assert library.start_path(spec).read_bytes() == again.start_path(spec).read_bytes()
    assert library.catalogue_path.read_bytes() == again.catalogue_path.read_bytes()


def test_the_name_in_the_file_is_that_of_the_instance(library):
    build_all(library)
    for spec in library.suite.values():
        assert read_mps(library.model_path(spec)).name == spec.name


def test_values_are_written_as_miplib_does(library):
    entries = {entry.name: entry for entry in build_all(library)}
    solu = library.folder / "instances.solu"
    assert solu.read_text() == "=unkn= oct-iris\n=unkn= margot-4\n"
    oct_iris = replace(entries["oct-iris"], objective=0.5, bound=0.5, seconds=1.0)
    library.record(oct_iris)
    library.record(replace(entries["margot-4"], objective=3.0, bound=2.0, seconds=1.0))
    margot = "=best= margot-4 3.0\n=bestdual= margot-4 2.0\n"
    assert solu.read_text() == f"=best= oct-iris 0.5\n=bestdual= oct-iris 0.5\n{margot}"  # by nobody's word
    record_results(library.results_path, [run_of(oct_iris, certified=True)])
    assert library.record(oct_iris).status == "solved"
    assert solu.read_text() == f"=opt= oct-iris 0.5\n{margot}"


def run_of(entry, **values):
    known = {"status": "optimal", "objective": entry.objective, "bound": entry.bound, "violation": 0.0}
    who = {"solver": "exact-search", "version": "1", "kind": "search", "machine": "", "seconds": 1.0}
    return Run(instance=entry.name, sha256=entry.sha256, **{**who, **known, **values})


def test_the_library_that_the_package_brings_is_copied_into_an_empty_folder(tmp_path):
    copied = Library.copied(tmp_path / "mine")
    assert (copied.folder / "suite.toml").read_bytes() == (SHIPPED / "suite.toml").read_bytes()
    assert copied.entries().keys() == Library(SHIPPED).entries().keys()
    assert copied.results_path.read_bytes() == Library(SHIPPED).results_path.read_bytes()
    known = [entry.name for entry in copied.entries().values() if entry.has_solution]
    assert all(copied.solution_path(copied.suite[name]).is_file() for name in known)
    with pytest.raises(SuiteError, match="holds something else"):
        Library.copied(tmp_path)


def test_the_catalogue_counts_what_the_file_holds(library):
    for entry in build_all(library):
        form = read_mps(library.model_path(library.suite[entry.name]))
        assert (entry.columns, entry.rows, entry.nonzeros) == (form.n_columns, form.n_rows, form.A.nnz)
        assert entry.binary + entry.integer + entry.continuous == form.n_columns
        assert (entry.quadratic_terms > 0) == form.is_quadratic
        by_class = sum(int(part.rpartition(":")[2]) for part in entry.nonzeros_by_class.split(";"))
        assert by_class == entry.nonzeros


def test_verify_finds_nothing_wrong_then_every_kind_of_damage(library):
    build_all(library)
    spec = library.suite["oct-iris"]
    improve(library, spec, "highs", SolveSettings(time_limit=20))
    assert verify(library, spec) == []
    assert verify(library, spec, rebuild=True) == []

    model, solution = library.model_path(spec), library.solution_path(spec)
    whole, good = model.read_bytes(), gzip.decompress(solution.read_bytes()).decode()

    model.write_bytes(gzip.compress(gzip.decompress(whole).replace(b"-1", b"-2", 1)))
    assert "has the checksum" in verify(library, spec)[0].message
    model.write_bytes(whole)

    lines = good.splitlines()
    without = "\n".join(line for line in lines if not line.startswith("z["))
    solution.write_bytes(gzip.compress(without.encode()))
    assert any("violates" in finding.message for finding in verify(library, spec))
    solution.unlink()
    assert "is not there" in verify(library, spec)[0].message
    solution.write_bytes(gzip.compress(good.encode()))

    entry = library.entries()[spec.name]
    library.record(replace(entry, objective=entry.objective + 0.5))
    assert "the catalogue says" in verify(library, spec)[0].message
    library.record(replace(entry, bound=entry.objective + 1))
    assert "lies beyond the bound" in verify(library, spec)[0].message
    library.record(entry)

    model.unlink()
    assert verify(library, spec) == []  # built anew


def test_improve_records_only_what_is_better(library):
    build_all(library)
    spec = library.suite["oct-iris"]
    assert library.entries()[spec.name].status == "open"
    entry = improve(library, spec, "highs", SolveSettings(time_limit=20))
    assert (entry.status, entry.difficulty) == ("unconfirmed", "")  # nobody else has found it
    assert entry.gap <= 1e-4
    assert entry.solver.startswith("highs ")
    again = improve(library, spec, "highs", SolveSettings(time_limit=20))
    assert str(again) == str(entry) == str(library.entries()[spec.name])  # NaN differs from itself


def test_what_another_process_finds_meanwhile_is_not_lost(library, monkeypatch):
    build_all(library)
    spec = library.suite["oct-iris"]
    slow, solve = SolveSettings(time_limit=0), Problem.solve

    def overtaken(problem, *args, **kwargs):
        found = solve(problem, *args, **kwargs)
        monkeypatch.setattr(Problem, "solve", solve)
        improve(library, spec, "highs", SolveSettings(time_limit=20))
        return found

    monkeypatch.setattr(Problem, "solve", overtaken)
    entry = improve(library, spec, "highs", slow)  # no more than its start
    assert (entry.status, entry.difficulty) == ("unconfirmed", "")  # nobody else has found it
    assert str(library.entries()[spec.name]) == str(entry)
    assert verify(library, spec) == []


def test_best_values_are_kept_while_the_model_stays(library):
    build_all(library)
    spec = library.suite["oct-iris"]
    best = improve(library, spec, "highs", SolveSettings(time_limit=20))
    assert str(build_instance(library, spec, version="test")) == str(best)
    changed = replace(spec, parameters={"alpha": 0.1})
    entry = build_instance(library, changed, version="test")
    assert np.isnan(entry.objective)
    assert not library.solution_path(spec).exists()


def test_choosing(library):
    def names(*only):
        return [spec.name for spec in library.chosen(only)]

    assert names() == ["oct-iris", "margot-4"]
    assert names("margot") == names("medium") == names("margot-4") == ["margot-4"]
    with pytest.raises(SuiteError, match="called 'margo'"):
        names("margo")


def test_a_folder_without_a_suite(tmp_path):
    with pytest.raises(SuiteError, match="there is no instance library in"):
        Library(tmp_path).suite  # noqa: B018


def test_catalogue_round_trip_and_damage(library):
    entries = {entry.name: entry for entry in build_all(library)}
    path = library.catalogue_path
    assert str(read_catalogue(path)) == str(entries)  # NaN differs from itself
    text = path.read_text()
    for broken, message in (
        (text.replace("columns", "cols", 1), "the columns are not"),
        (text.replace(",1,", ",one,", 1), "no number"),
        (text + "short,line\n", "the columns are not"),
    ):
        path.write_text(broken)
        with pytest.raises(CatalogueError, match=message):
            read_catalogue(path)
    write_catalogue(entries, path)
    assert path.read_text() == text


def test_the_shipped_small_instances_are_what_the_catalogue_says():
    library = Library(SHIPPED)
    for spec in library.chosen(("small",)):
        assert library.model_path(spec).is_file()
        assert verify(library, spec) == []


def test_shipped_models_are_built_byte_for_byte():
    library = Library(SHIPPED)
    for name in ("margot-4-partitions-d2", "oct-tight-iris-d2", "oct-paper-iris-d2", "ort-tight-diabetes-d2"):
        assert verify(library, library.suite[name], rebuild=True) == []


def test_committed_models_stay_within_six_megabytes():
    stored = list((SHIPPED / "small").glob("*.mps.gz"))
    assert stored
    assert sum(path.stat().st_size for path in stored) <= 6_000_000


def test_families_are_by_size():
    limits = {"small": (1000, 20_000), "medium": (10_000, 200_000)}
    for entry in Library(SHIPPED).entries().values():
        fits = [
            f
            for f, (columns, nonzeros) in limits.items()
            if entry.columns < columns and entry.nonzeros < nonzeros
        ]
        assert entry.family == (fits or ["large"])[0], entry.name


def test_no_two_instances_are_nearly_the_same():
    """Of a model, variant, status and difficulty, no two have the same sizes and dynamism within a hundredth."""

    def statistics(entry):
        sizes = (
            entry.columns,
            entry.rows,
            entry.nonzeros,
            entry.dynamism,
            entry.binary + 1,
            entry.quadratic_terms + 1,
        )
        return np.log(sizes)

    kinds = {}
    for entry in Library(SHIPPED).entries().values():
        kinds.setdefault((entry.model, entry.variant, entry.status, entry.difficulty), []).append(entry)
    for alike in kinds.values():
        for one, other in combinations(alike, 2):
            distance = np.abs(statistics(one) - statistics(other)).max()
            assert less(np.log(1.01), distance), (one.name, other.name)


def test_data_of_users_are_checked_before_a_model_is_built(tmp_path):
    table = "a,b,y\n" + "".join(f"{k},{k % 3},{'no' if k < 4 else 'yes'}\n" for k in range(8))
    digest = hashlib.sha256(table.encode()).hexdigest()
    text = MINIMAL.replace(
        '"iris"', f'"own.csv"\nsha256 = "{digest}"\nsource = "doi:10.1/x, CC BY 4.0"\ntarget = "y"'
    )
    spec = suite_of(tmp_path, text)["a"]
    library = Library(tmp_path)
    with pytest.raises(
        SuiteError, match=r"doi:10.1/x, CC BY 4.0. are the file .*own.csv, which is not there"
    ):
        build_instance(library, spec, version="test")
    (tmp_path / "own.csv").write_text(table)
    assert build_instance(library, spec, version="test").samples == 8
    (tmp_path / "own.csv").write_text(table + "9,1,yes\n")
    with pytest.raises(SuiteError, match="take the file that the suite names"):
        build_instance(library, spec, version="test")


HEADLESS = """
[[instance]]
name = "oct-patients-d1"
family = "small"
model = "oct"
depth = 1
data = "patients.data"
columns = ["age", "ill"]
target = "ill"
missing = "drop"
sha256 = "{sha256}"
source = "UCI Patients, doi:10.24432/NONE, CC BY 4.0"
"""


def test_a_file_without_names_gets_those_of_the_suite(tmp_path):
    text = b"40,yes\n30,no\n?,no\n50,yes\n"
    (tmp_path / "suite.toml").write_text(HEADLESS.format(sha256=hashlib.sha256(text).hexdigest()))
    library = Library(tmp_path)
    spec = library.suite["oct-patients-d1"]
    with pytest.raises(SuiteError, match=r"UCI Patients, doi.*patients\.data, which is not there"):
        build_problem(library, spec)
    (tmp_path / "patients.data").write_bytes(text)
    for _ in range(2):
        data = build_problem(library, spec).problem.data
        assert (data.n, tuple(data.features.labels)) == (3, ("age",))
    (tmp_path / "patients.data").write_bytes(text + b"60,yes\n")
    with pytest.raises(SuiteError, match="have the checksum"):
        build_problem(library, spec)


def test_a_file_of_another_kind_needs_names(tmp_path):
    unnamed = HEADLESS.replace('columns = ["age", "ill"]\n', "").replace("patients.data", "patients.dat")
    (tmp_path / "suite.toml").write_text(unnamed)
    with pytest.raises(SuiteError, match=r"the data are 'patients\.dat'"):
        Library(tmp_path).suite  # noqa: B018 - reading is what is tested


def test_uci_data_are_named_with_their_doi_licence_and_checksum():
    suite, entries = read_suite(SHIPPED / "uci" / "suite.toml"), Library(SHIPPED / "uci").entries()
    assert suite.keys() == entries.keys()
    for spec in suite.values():
        assert "doi:10.24432/" in spec.source
        assert spec.source.endswith("CC BY 4.0")
        assert len(spec.sha256) == 64
        assert spec.columns[-1] == spec.target


@pytest.mark.slow
def test_violations_of_the_best_known_solution_and_tags():
    library = Library(SHIPPED)
    tags = {tag for entry in library.entries().values() for tag in entry.tags.split()}
    assert {"quadratic", "indicators"} <= tags
    for spec in library.chosen(("small",)):
        entry = library.entries()[spec.name]
        assert ("numerics" in entry.tags) == (entry.dynamism > 1e6)
        if entry.has_solution:
            form = read_mps(library.model_path(spec))
            path = library.solution_path(spec)
            found = violations(form, point_of(form, read_point(path), path).x)
            assert max(entry.violation, entry.integrality) == pytest.approx(
                found.max, abs=FEASIBILITY_TOLERANCE
            )
            assert at_most(entry.relative_violation, entry.violation)


def test_an_archive_has_the_same_bytes_and_checksums_of_all_files(library, tmp_path):
    with pytest.raises(SuiteError, match="2 of 2 instances are not built, such as oct-iris"):
        pack(library, tmp_path / "a.tar.gz")
    build_all(library)
    names = pack(library, tmp_path / "a.tar.gz")
    assert {"suite.toml", "catalogue.csv", "small/oct-iris.mps.gz", "MANIFEST.sha256"} <= set(names)
    pack(library, tmp_path / "b.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        held = {m.name: archive.extractfile(m).read() for m in archive.getmembers()}
    for line in held.pop("mipforest-instances/MANIFEST.sha256").decode().splitlines():
        digest, name = line.split()
        assert hashlib.sha256(held.pop(f"mipforest-instances/{name}")).hexdigest() == digest
    assert not held
    with pytest.raises(SuiteError, match=r"ends in .tar.gz"):
        pack(library, tmp_path / "a.zip")


def test_no_record_of_concurrent_writers_is_lost(tmp_path):
    """Eight at once, each of its own instance: without turns, the last one's catalogue would win."""
    names = [f"n{k}" for k in range(8)]
    entries = "".join(
        f'[[instance]]\nname = "{name}"\nfamily = "small"\nmodel = "oct"\ndepth = 1\ndata = "iris"\n'
        for name in names
    )
    (tmp_path / "suite.toml").write_text(entries)
    sizes = dict.fromkeys(("samples", "features", "columns", "binary", "integer", "continuous"), 1)
    sizes |= dict.fromkeys(("rows", "indicators", "nonzeros", "quadratic_terms", "depth"), 1)
    texts = {"family": "small", "model": "oct", "data": "iris"} | dict.fromkeys(
        ("variant", "nonzeros_by_class", "sha256"), ""
    )

    def record(name):
        for _ in range(5):
            Library(tmp_path).record(Entry(name=name, **sizes, **texts))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(record, names))
    assert list(Library(tmp_path).entries()) == names
