"""Start-up: processor seconds of commands, and what scikit-learn needs for its CART on the same machine.

    python benchmarks/start_up.py [--rounds N] [--output FILE]

Every command is a process of its own, warm: modules and searches were compiled by a run before. Both sides take turns.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence

CART = """
from sklearn.datasets import load_breast_cancer
from sklearn.tree import DecisionTreeClassifier
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X.to_csv("new.csv", index=False)
DecisionTreeClassifier(max_depth=2).fit(X, y)
"""

OCT = ("solve", "--model", "oct", "--depth", "2")

#: What is measured: its name, and the arguments of the command line.
COMMANDS = {
    "`--version`": ("--version",),
    "`--help`": ("--help",),
    "wrong option": (*OCT, "--modle", "oct"),
    "wrong model": ("solve", "--model", "octt", "--depth", "2", "--data", "iris"),
    "wrong file": (*OCT, "--data", "absent.csv"),
    "wrong column": (*OCT, "--data", "new.csv", "--target", "absent"),
    "`solve` of breast_cancer, depth 2": (*OCT, "--data", "breast_cancer", "-q"),
    "the same with `--out`, which draws the tree": (
        *OCT,
        "--data",
        "breast_cancer",
        "--out",
        "run",
        "--force",
        "-q",
    ),
    "`report` of the run": ("report", "run", "--force"),
    "`predict` of 569 rows": ("predict", "run", "new.csv"),
}

#: The reference.
REFERENCE = "scikit-learn: import and CART of breast_cancer, depth 2"

#: Lines of ``-X importtime``: own and cumulative microseconds, depth by two blanks, module.
IMPORT = re.compile(r"import time:\s+(\d+) \|\s+(\d+) \| (\s*)([\w.]+)")


def seconds(words: Sequence[str], folder: str) -> float:
    """Return the processor seconds of a process and of those that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-P", *words]
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def packages(words: Sequence[str], folder: str) -> dict[str, float]:
    """Return the seconds that each package takes to import, its own modules only, the longest first."""
    command = [sys.executable, "-P", "-X", "importtime", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    own: dict[str, float] = {}
    for line in done.stderr.splitlines():
        if match := IMPORT.match(line):
            package = match[4].partition(".")[0]
            own[package] = own.get(package, 0.0) + int(match[1]) / 1e6
    return dict(sorted(own.items(), key=lambda entry: -entry[1]))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure."""
    from markdown import add_output, measured_with, publish, table

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    add_output(parser)
    given = parser.parse_args(arguments)
    sides = {REFERENCE: ("-c", CART)} | {
        name: ("-m", "mipforest", *words) for name, words in COMMANDS.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        for words in sides.values():  # compiles what is compiled once
            seconds(words, folder)
        found: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(given.rounds):
            for name, words in sides.items():
                found[name].append(seconds(words, folder))
        imports = packages(sides["`solve` of breast_cancer, depth 2"], folder)
    medians = {name: statistics.median(values) for name, values in found.items()}
    rows = [[name, f"{value:.2f}", f"{value / medians[REFERENCE]:.2f}"] for name, value in medians.items()]
    longest = ", ".join(f"{package} {value:.2f}" for package, value in list(imports.items())[:6])
    page = PAGE.format(
        table=table(["command", "processor seconds", "of CART's"], rows),
        rounds=given.rounds,
        imports=longest,
        versions=measured_with(["mipforest", "scikit-learn", "pandas", "numba"]),
    )
    publish(page, given.output)


PAGE = """# Start-up

Processor seconds of commands, warm: modules and searches were compiled before. Beside them stands their share of what
scikit-learn needs to be imported and to fit CART to the same data. All took turns; medians, rounds: {rounds}.

{table}

A command imports its own modules only. Answers that need no data import neither numpy nor scipy. Bundled data are read
from scikit-learn's files without importing it. The search of `solve` needs no CART; the outcome has one beside the
tree, which imports scikit-learn: that is most of what is left of `solve`. By the clock of
`python -X importtime`, the modules of these packages take longest, in seconds:
{imports}.

{versions}
Run again: `python benchmarks/start_up.py --output FILE`.
"""

if __name__ == "__main__":
    main()
