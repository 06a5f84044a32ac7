"""What is left when a process is killed at any of its operations on files: nothing is lost, nothing half written."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from campaigns.campaign_suites import PAIR, campaign_of

import mipforest.instances.library as library_module
from mipforest.atomic import atomic_write
from mipforest.campaigns import Store, run
from mipforest.campaigns.experiment_result import ExperimentResult
from mipforest.errors import SolverError
from mipforest.instances import Library, build_instance, build_problem
from mipforest.searches.exact.certificate_writer import Proof

if not hasattr(os, "fork"):
    pytest.skip("needs processes that fork", allow_module_level=True)
from killed_operations import kills

#: Kills of each test, in all about 200.
LEAST = {"atomic_write": 5, "certificate": 30, "copied": 32, "build": 40, "record": 10, "campaign": 20}


def content(folder: Path) -> dict[str, bytes]:
    """Return what is in the files of a folder, but for hidden ones."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def hidden(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob(".*")}


def points(name: str, work: Callable[[], object], check: Callable[[], object]) -> None:
    """Check what is left after each kill."""
    count = 0
    for _ in kills(work):
        check()
        count += 1
    assert count >= LEAST[name]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("mode", ["wb", "w"])
@pytest.mark.parametrize("old", [b"", b"what was there before"])
def test_atomic_write(tmp_path: Path, mode: str, old: bytes) -> None:
    path = tmp_path / "file"
    new = "what is written " * 1000
    if old:
        path.write_bytes(old)

    def work() -> None:
        with atomic_write(path, mode) as file:
            file.write(new.encode() if mode == "wb" else new)

    def check() -> None:
        assert (path.read_bytes() if path.exists() else b"") in (old, new.encode())
        assert all(name.endswith(".part") for name in hidden(tmp_path))
        path.write_bytes(old) if old else path.unlink(missing_ok=True)

    points("atomic_write", work, check)


def test_certificate(tmp_path: Path) -> None:
    path = tmp_path / "proof.gz"
    lines = [f"line {k} " * 100 for k in range(20)]
    writer = SimpleNamespace(lines=lambda *_: lines)

    def work() -> None:
        Proof.write(writer, path, {}, 0.0, [], 0.0)  # type: ignore[arg-type]

    work()
    whole = path.read_bytes()

    def check() -> None:
        assert not path.exists() or path.read_bytes() == whole
        path.unlink(missing_ok=True)

    path.unlink()
    points("certificate", work, check)


SUITE = """
[[instance]]
name = "one"
family = "small"
model = "oct"
depth = 1
data = "iris"

[[instance]]
name = "two"
family = "medium"
model = "oct"
depth = 1
data = "iris"
seed = 1
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """A library of two instances with what is known of them, and no models, as a package brings it."""
    library = Library(tmp_path_factory.mktemp("shipped"))
    (library.folder / "suite.toml").write_text(SUITE)
    for spec in library.suite.values():
        known = build_instance(library, spec, version="0")
        library.record(replace(known, objective=7.0, bound=5.0, solver="someone"))
        shutil.copy(library.start_path(spec), library.folder / "start")
        library.solution_path(spec).write_bytes(
            gzip.compress((library.folder / "start").read_bytes(), mtime=0)
        )
        for path in (library.model_path(spec), library.start_path(spec)):
            path.unlink()
        library.model_path(spec).with_name(f"{spec.name}.json").unlink()
    (library.folder / "start").unlink()
    (library.folder / "results.csv").write_text("")
    return library


def known_values(library: Library) -> dict[str, tuple[float, float, str]]:
    return {name: (entry.objective, entry.bound, entry.solver) for name, entry in library.entries().items()}


def test_first_copy_of_the_library(tmp_path: Path, shipped: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Library, "installed", classmethod(lambda _: shipped))
    folder = tmp_path / "mine"
    wanted = content(shipped.folder)
    wanted.pop("instances.solu")

    def check() -> None:
        if (folder / "suite.toml").is_file():
            assert known_values(Library(folder)) == known_values(shipped)  # exact: a copy
            assert content(folder) == wanted
        else:  # as the command asks
            Library.copied(folder)
            assert content(folder) == wanted
        shutil.rmtree(folder)

    points("copied", lambda: Library.copied(folder), check)


def test_what_is_not_an_unfinished_copy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "catalogue.csv").write_text("mine")
    with pytest.raises(library_module.SuiteError, match="something else"):
        Library.copied(tmp_path)
    assert content(tmp_path) == {"catalogue.csv": b"mine"}


@pytest.mark.slow
def test_build(tmp_path: Path, shipped: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(tmp_path / "library")
    shutil.copytree(shipped.folder, library.folder)
    spec = library.suite["one"]
    built = build_problem(library, spec, library.entries()["one"])
    monkeypatch.setattr(library_module, "build_problem", lambda *_: built)

    def work() -> None:
        build_instance(library, spec, version="0")

    before = content(library.folder)
    work()
    whole = content(library.folder)
    assert set(whole) - set(before) == {"small/one.mps.gz", "small/one.mst", "small/one.json"}

    def check() -> None:
        left = content(library.folder)
        assert all(left[name] in (before.get(name), whole[name]) for name in left)
        assert known_values(library) == known_values(shipped)  # exact: a copy
        work()
        assert content(library.folder) == whole
        shutil.rmtree(library.folder)
        shutil.copytree(shipped.folder, library.folder)

    shutil.rmtree(library.folder)
    shutil.copytree(shipped.folder, library.folder)
    points("build", work, check)


def test_record(tmp_path: Path, shipped: Library) -> None:
    library = Library(tmp_path / "library")
    shutil.copytree(shipped.folder, library.folder)
    before = content(library.folder)
    better = replace(library.entries()["two"], objective=6.0)
    library.record(better)
    after = content(library.folder)

    def check() -> None:
        left = content(library.folder)
        assert all(left[name] in (before[name], after[name]) for name in before)
        library.record(better)
        assert content(library.folder) == after
        for name in ("catalogue.csv", "instances.solu"):
            (library.folder / name).write_bytes(before[name])

    for name in ("catalogue.csv", "instances.solu"):
        (library.folder / name).write_bytes(before[name])
    points("record", lambda: library.record(better), check)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("begun", [False, True])
def test_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: bool) -> None:
    result = ExperimentResult.failed(SolverError("as asked"))
    monkeypatch.setattr(sys.modules["mipforest.campaigns.run"], "_run_experiment", lambda *_: result)
    campaign = campaign_of(tmp_path, PAIR)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if begun:
        with pytest.raises(KeyboardInterrupt):
            run(campaign, finished=interrupt)
    before = campaign.results.read_bytes() if begun else None

    def check() -> None:
        if begun:
            with Store(campaign.results) as store:
                assert store.finished() in (1, 2)
        counts = run(campaign)
        assert (counts.failed, counts.waiting) == (2, 0)
        for path in tmp_path.glob("results.*"):
            path.unlink()
        if before is not None:
            campaign.results.write_bytes(before)

    points("campaign", lambda: run(campaign), check)
