"""Damage files of every format that is read, and read them: only documented errors, no hang, bounded memory.

python tests/fuzz/fuzz_readers.py --files 10000 --seed 0
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter

import numpy as np
from mutations import mutated
from typer.testing import CliRunner

from mipforest.cli.main import app
from mipforest.data import DataError
from mipforest.files import MpsError, read_mps
from mipforest.files.solutions import PointError, point_in, read_solution
from mipforest.instances import SuiteError, read_suite
from mipforest.model.check import violations
from mipforest.model.matrix import MatrixForm
from mipforest.problem.parameters import ParameterError
from mipforest.problem.registry import UnknownFormulation
from mipforest.runs import RunError, load_saved_tree
from mipforest.runs.instance import read_metadata
from mipforest.trees import TreeFileError, load, to_text

#: Seconds after which reading one small file counts as a hang.
HANG = 30

#: What reading may need beyond the memory at the start: twice the largest file that is unpacked.
MEMORY = 1 << 30


class Hang(BaseException):
    """A file took too long; no reader catches it."""


@dataclass
class Figures:
    """What came out of a run, by format."""

    read: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_file: str = ""
    bytes: int = 0


Reader = Callable[[Path], object]

#: By name: content of a file, how it is read, and the errors that reading it may raise.
Corpus = dict[str, tuple[bytes, Reader, tuple[type[Exception], ...]]]

#: A suite with every key and every kind of value.
SUITE = b"""# Instances of the library.
[[instance]]
name = "margot-iris-virginica-d2"
family = "small"
model = "margot"
variant = "paper"
depth = 2
data = "iris"
task = "classification"
scaling = "minmax"
positive = ["virginica"]
test_size = 0.6
seed = 3
parameters = { C = [1.0, 2.0], big_M = "paper", B = 1, strict = true }

[[instance]]
name = "miret-4-partitions-d2"
family = "large"
model = "miret"
depth = 2
data = "synthetic:4-partitions"
ensemble = "random-forest"
"""


def corpus(folder: Path) -> Corpus:
    """Make real files; give each with its reader and the errors that this may raise."""
    runner = CliRunner()

    def mipforest(*arguments: object) -> None:
        done = runner.invoke(app, [str(argument) for argument in arguments])
        assert done.exit_code == 0, done.output

    data = ("--depth", 2, "--data", "synthetic:4-partitions")
    run, instance = folder / "run", folder / "m.mps"
    mipforest("solve", "--model", "margot", *data, "--time-limit", 0, "--out", run)
    mipforest("export", "--model", "oct", *data, "--variant", "paper", "-o", instance)
    form = read_mps(instance)
    solutions = _solutions(form, folder)
    small = _smaller(folder)

    def solution(path: Path) -> None:
        violations(form, point_in(form, read_solution(path)).x)

    def tree(path: Path) -> None:
        found = load(path)
        with np.errstate(over="ignore", invalid="ignore"):  # weights may be huge
            found.predict(np.zeros((2, found.n_features)))
            to_text(found)

    def saved(path: Path) -> None:
        found = load_saved_tree(path)
        with np.errstate(over="ignore", invalid="ignore"):
            to_text(found.tree, found.statistics)
        json.dumps(found.to_dict(), allow_nan=False)

    def shown(path: Path) -> None:
        shutil.copy(path, run / "result.json")
        with np.errstate(over="ignore", invalid="ignore"):
            _expect_known_exit(runner, "show", run)
        _expect_known_exit(runner, "show", run, "--json")

    def metadata(path: Path) -> None:
        shutil.copy(path, instance.with_suffix(".json"))
        read_metadata(instance).formulation({}, None)

    files: Corpus = {
        "m.mps": (small, _read_mps, (MpsError,)),
        "m.mps.gz": (gzip.compress(small, mtime=0), _read_mps, (MpsError,)),
        "tree.json": ((run / "tree.json").read_bytes(), tree, (TreeFileError,)),
        "saved.json": ((run / "tree.json").read_bytes(), saved, (TreeFileError,)),
        "result.json": ((run / "result.json").read_bytes(), shown, ()),
        "metadata.json": (
            instance.with_suffix(".json").read_bytes(),
            metadata,
            (RunError, ParameterError, UnknownFormulation, DataError),
        ),
        "suite.toml": (SUITE, read_suite, (SuiteError,)),
    }
    return files | {name: (content, solution, (PointError,)) for name, content in solutions.items()}


def _smaller(folder: Path) -> bytes:
    """An instance of a few hundred lines, so that most damage hits something that matters."""
    path = folder / "small.mps"
    options = ("--model", "margot", "--depth", "1", "--data", "synthetic:tree,n=12,p=2")
    done = CliRunner().invoke(app, ["export", *options, "-o", str(path)])
    assert done.exit_code == 0, done.output
    return path.read_bytes()


def _solutions(form: MatrixForm, folder: Path) -> dict[str, bytes]:
    """The start of an instance, in the formats of Gurobi, HiGHS, SCIP, Cbc and GLPK."""
    start = (folder / "m.mst").read_text()
    point = point_in(form, read_solution(folder / "m.mst"))
    names, x = form.column_names, point.x.tolist()
    pairs = list(zip(names, x, strict=True))
    n, objective = len(pairs), form.objective(point.x)
    body = "".join(f"{name} {value!r}\n" for name, value in pairs)
    highs = (
        f"Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective {objective}\n# Columns {n}\n"
    )
    scip = "".join(f"{name:<40} {value!r:>20} \t(obj:0)\n" for name, value in pairs if value)
    cbc = "".join(f"{j:7} {name} {value!r} 0\n" for j, (name, value) in enumerate(pairs) if value)
    glpk = "".join(f"j {j + 1} {value!r}\n" for j, value in enumerate(x))
    pretty = "".join(f" {j} 0 1 {value!r} Integer {name}\n" for j, (name, value) in enumerate(pairs))
    columns = [{"VarName": name, "X": value} for name, value in pairs if value]
    texts = {
        "start.mst": start,
        "highs.sol": f"{highs}{body}# Rows 0\n",
        "pretty.sol": f"Columns\n Index Status Lower Upper Primal Dual Type Name\n{pretty}Rows\n",
        "scip.sol": f"objective value: {objective}\n{scip}",
        "cbc.sol": f"Optimal - objective value {objective}\n{cbc}",
        "glpk.sol": f"c Status:     INTEGER OPTIMAL\ns mip 0 {n} o {objective}\n{glpk}e o f\n",
        "gurobi.json": json.dumps({"SolutionInfo": {"Status": 2, "ObjVal": objective}, "Vars": columns}),
    }
    contents = {name: text.encode() for name, text in texts.items()}
    return contents | {"start.sol.gz": gzip.compress(contents["start.mst"], mtime=0)}


def _read_mps(path: Path) -> None:
    form = read_mps(path)
    with np.errstate(over="ignore", invalid="ignore"):
        violations(form, np.zeros(form.n_columns))


def _expect_known_exit(runner: CliRunner, *arguments: object) -> None:
    done = runner.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code in (0, 2, 3), f"exit code {done.exit_code}\n{done.output[-3000:]}"
    assert "\x1b" not in done.output, "an escape sequence reached the terminal"


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise :class:`Hang` in the main thread once a block takes too long."""

    def ring(signum: int, frame: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(count: int, seed: int, folder: Path) -> Figures:
    """Read ``count`` damaged files; every exception but the documented ones fails, with the file kept."""
    return damage_and_use(corpus(folder), count, seed, folder, HANG)


def damage_and_use(files: Corpus, count: int, seed: int, folder: Path, longest: int) -> Figures:
    """Damage the files in turn, ``count`` times, and use each within ``longest`` seconds."""
    chance = Random(seed)
    figures = Figures()
    names = list(files)
    for k in range(count):
        name = names[k % len(names)]
        content, read, errors = files[name]
        damaged = mutated(chance, content)
        path = folder / f"damaged-{name}"
        path.write_bytes(damaged)
        began = perf_counter()
        try:
            with at_most(longest):
                read(path)
            figures.read[name] += 1
        except errors:
            figures.refused[name] += 1
        except BaseException as error:
            kept = Path(tempfile.gettempdir()) / f"fuzz-{seed}-{k}-{name}"
            shutil.copy(path, kept)
            raise AssertionError(
                f"file {k} of seed {seed} ({kept}): {type(error).__name__}: {error}"
            ) from error
        seconds = perf_counter() - began
        figures.seconds += seconds
        figures.bytes += len(damaged)
        if seconds > figures.slowest:
            figures.slowest, figures.slowest_file = seconds, name
    return figures


def main() -> None:
    run_program(__doc__, fuzz, 40, MEMORY, limited=True)


def run_program(
    description: str | None,
    fuzz: Callable[[int, int, Path], Figures],
    first: int,
    memory: int,
    *,
    limited: bool,
) -> None:
    """Fuzz as many files as the arguments say, and print what came out.

    Parameters
    ----------
    description
        Shown by ``--help``.
    fuzz
        Reads so many damaged files of a seed, in a folder.
    first
        Files of a first run, which loads everything that is loaded lazily.
    memory
        Bytes that the process may grow by after that.
    limited
        Whether more memory is out of reach, or counted in the end: what reserves more than it uses bears no limit.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fuzz(first, arguments.seed + 1, _made(Path(folder) / "first"))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if limited:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            most = resource.getrlimit(resource.RLIMIT_AS)[1]
            resource.setrlimit(resource.RLIMIT_AS, (used + memory, most))
        figures = fuzz(arguments.files, arguments.seed, _made(Path(folder) / "second"))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - peak
    assert limited or grown < memory, f"memory grew by {grown / 1e6:.0f} MB"
    tell(figures, arguments.files, grown)


def tell(figures: Figures, count: int, grown: int) -> None:
    """Print what came out of a run, by format, and the bytes that the process grew by."""
    for name in sorted(figures.read | figures.refused):
        print(f"{name:<14} {figures.read[name]:>6} read {figures.refused[name]:>6} refused")
    print(
        f"{count} files, {figures.bytes / 1e6:.0f} MB, {figures.seconds:.0f} s; slowest "
        f"{figures.slowest:.2f} s ({figures.slowest_file}); peak memory grew by {grown / 1e6:.0f} MB"
    )


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


if __name__ == "__main__":
    main()
