import math
from dataclasses import replace

import pytest

from mipforest.instances import Library, Race, build_instance, fault_of, read_results, run_race, write_race
from mipforest.instances import race as race_module
from mipforest.settings import SolveSettings

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
family = "small"
model = "margot"
depth = 1
data = "synthetic:4-partitions"
"""


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "suite.toml").write_text(SUITE)
    library = Library(folder)
    for spec in library.suite.values():
        build_instance(library, spec, version="test")
    return library


def race_of(library, tmp_path, solvers, only=("oct-iris",), **settings):
    return Race(
        library=library,
        instances=library.chosen(only),
        solvers=solvers,
        settings=SolveSettings(time_limit=30, threads=1, **settings),
        results=tmp_path / "race" / "results.csv",
        record=True,
    )


def test_a_race_records_runs_proofs_and_difficulties_and_goes_on_where_it_ended(library, tmp_path):
    seen = []
    race = race_of(library, tmp_path, ["exact-search"])
    (by_search,) = run_race(race, seen.append)
    assert by_search.certified
    assert by_search.kind == "search"
    entry = library.entries()["oct-iris"]
    assert (entry.status, entry.proof, entry.difficulty) == ("solved", "certificate of exact-search", "")
    assert math.isnan(entry.matrix_seconds)

    both = run_race(replace(race, solvers=["exact-search", "highs"]), seen.append)
    assert [run.solver for run in both] == ["exact-search", "highs"]
    assert [run.solver for run in seen] == ["exact-search", "highs"]  # the first was not repeated
    assert library.entries()["oct-iris"].difficulty == "easy"
    assert {run.solver for run in read_results(library.results_path)} == {"exact-search", "highs"}
    assert str(run_race(race, seen.append)) == str([by_search])  # NaN differs from itself


def test_errors_of_solvers_are_results(library, tmp_path):
    """Clarabel takes no integers, and the exact search no hyperplanes."""
    runs = run_race(race_of(library, tmp_path, ["clarabel", "exact-search"], only=("margot-4",)))
    assert [run.status for run in runs] == ["failed", "failed"]
    assert all(run.message for run in runs)
    assert library.entries()["margot-4"].difficulty == ""


def test_wrong_answers_come_first_and_are_not_recorded(library, tmp_path, monkeypatch):
    run_race(race_of(library, tmp_path, ["exact-search"]))
    before = library.entries()["oct-iris"]
    right = race_module.solve

    def wrong(model, solver, settings):
        solution = right(model, solver, settings=replace(settings, isolate=False))
        return replace(solution, bound=solution.objective + 1)

    monkeypatch.setattr(race_module, "solve", wrong)
    (run,) = run_race(race_of(library, tmp_path, ["highs"]))
    entries = library.entries()
    assert fault_of(run, entries["oct-iris"]).startswith("claims the bound")
    # Its values stay; a solver that was wrong has not solved it within its limit.
    assert str(entries["oct-iris"]) == str(replace(before, difficulty="hard", matrix_seconds=30.0))
    page, picture = write_race(tmp_path / "report", [run], entries)
    text = page.read_text()
    assert 0 < text.index("claims the bound") < text.index("## Solvers")
    assert picture.stat().st_size > 0
