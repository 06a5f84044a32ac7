"""The first hour of four new users: twenty tasks by an installed wheel, from an empty folder, each with its seconds.

    python benchmarks/first_hour.py [--output docs/benchmarks/first_hour.md]

A wheel is built and installed into a virtual environment of its own, which takes the dependencies from this one.
Every task is a process, and ends with what the user came for: a pattern in its output. One that does not, ends this
script with 1.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from time import monotonic
from typing import NamedTuple

HERE = Path(__file__).parents[1]

#: A table as people have it: a title, thousands, shares and dates.
MESSY = "Export of 3 May 2024,,,\npay,rate,since,left\n"
for _k in range(120):
    _pay = 1000 + 137 * _k % 9000
    MESSY += (
        f'"{_pay:,}",{_k % 90}%,{1 + _k % 28}.{1 + _k % 12}.201{_k % 10},{"yes" if _pay > 5000 else "no"}\n'
    )

NEW = 'pay,rate,since\n"2,000",10%,3.4.2015\n"9,500",11%,4.4.2015\n'

READ = "--skip-lines 1 --thousands , --dates days --target left"

SUITE = "campaigns/orct-bundled.toml"

PRINT_MODEL = """
import mipforest
problem = mipforest.get_formulation("oct")().build(mipforest.load("iris"), depth=1)
problem.model.add("mine", problem.model["d"].sum() <= 1)
print(problem.model)
print(problem.solve(time_limit=20))
"""

PIPELINE = """
import mipforest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score
X, y = load_breast_cancer(return_X_y=True, as_frame=True)
print("accuracy", cross_val_score(mipforest.OCTClassifier(depth=1, time_limit=20), X, y, cv=3).mean().round(3))
"""

CONSTRAINED = """
import mipforest
from mipforest.problem.constraints import Recall
from sklearn.datasets import load_iris
X, y = load_iris(return_X_y=True, as_frame=True)
tree = mipforest.OCTClassifier(depth=1, time_limit=20, constraints=[Recall("True", 0.9)]).fit(X, y == 1)
print("recall", (tree.predict(X)[y == 1]).mean())
"""


class Task(NamedTuple):
    """What a user wants, what brings it (arguments of the command line, or a program), and what the output shows."""

    wants: str
    asked: str
    shows: str


CANCER = "--data breast_cancer --time-limit 20"

TASKS = {
    "A newcomer with a table": [
        Task("a first tree", "solve --model oct --depth 2 --data breast_cancer", "22 of 569"),
        Task(
            "a table as it is", f"solve --model oct --depth 1 --data messy.csv {READ} --out run", "0 of 120"
        ),
        Task("a page to show", "report run", r"report\.html"),
        Task("a picture", "plot run -o tree.svg", r"tree\.svg"),
        Task("labels for new rows", "predict run new.csv", "yes"),
    ],
    "A researcher of solvers": [
        Task("an instance", "export --model oct --depth 2 --data iris -o oct.mps.gz", r"oct\.mps\.gz"),
        Task("to solve it", "solve-model oct.mps.gz --solver highs --time-limit 20 -o oct.sol", "bjective"),
        Task("to check the solution", "check oct.mps.gz oct.sol", "feasible"),
        Task("the library", "instances list", "open"),
        Task("a model of one's own", PRINT_MODEL, "mine"),
    ],
    "A reader of a paper": [
        Task("which models there are", "models", "margot"),
        Task(
            "a tree of the paper",
            "solve --model margot --depth 2 --data iris --positive versicolor --certificate proof.gz",
            "optimal",
        ),
        Task("to check the proof", "certify proof.gz", "proven|holds|valid"),
        Task("the cells of a table", f"campaign {SUITE} --dry-run", "cells|experiments|runs"),
        Task(
            "a hyperparameter",
            "tune --model oct --depth 1 --data iris --grid alpha=0,0.01 --out tuned",
            "alpha",
        ),
    ],
    "A clinic": [
        Task(
            "a card with its proof",
            "solve --model ogrs --param rules=2 --data breast_cancer",
            "isk of malignant",
        ),
        Task(
            "few missed cases",
            f"solve --model oct --depth 2 {CANCER} --recall malignant=97%",
            "recall malignant",
        ),
        Task(
            "a tree without a column",
            f"solve --model oct --depth 1 {CANCER} --forbid 'worst area'",
            "forbid worst area",
        ),
        Task("scikit-learn", PIPELINE, r"accuracy 0\.[89]"),
        Task("a constraint there", CONSTRAINED, r"recall (0\.9|1)"),
    ],
}


def installed(folder: Path) -> Path:
    """Build a wheel, and return the Python of an environment that has it."""
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(HERE),
    ]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps", wheel], check=True, capture_output=True
    )
    (own,) = (folder / "venv").glob("lib/python*/site-packages")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    (own / "dependencies.pth").write_text(f"{packages}\n")
    return python


def main() -> None:
    from markdown import add_output, measured_with, publish, table

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_output(parser)
    output = parser.parse_args().output
    rows, failed = [], []
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryDirectory() as empty:
        python, folder = installed(Path(made)), Path(empty)
        (folder / "messy.csv").write_text(MESSY)
        (folder / "new.csv").write_text(NEW)
        for role, tasks in TASKS.items():
            for task in tasks:
                words = (
                    ["-c", task.asked] if isinstance(task.asked, str) else ["-m", "mipforest", *task.asked]
                )
                program = "\n" in task.asked
                asked = task.asked.replace(SUITE, str(HERE / SUITE))
                words = ["-c", asked] if program else ["-m", "mipforest", *shlex.split(asked)]
                began = monotonic()
                done = subprocess.run([python, "-P", *words], cwd=folder, capture_output=True, text=True)
                seconds = monotonic() - began
                came = done.returncode == 0 and re.search(task.shows, done.stdout)
                if not came:
                    failed.append(f"{task.wants}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
                shown = "a program" if program else f"`{task.asked}`"
                rows.append([role, task.wants, shown, f"{seconds:.1f}", "yes" if came else "**no**"])
    page = PAGE.format(
        table=table(["who", "wants", "asks", "seconds", "gets it"], rows),
        versions=measured_with(["mipforest", "scikit-learn", "highspy", "numba"]),
    )
    publish(page, output)
    if failed:
        sys.exit("\n\n".join(failed))


PAGE = """# The first hour

What four new users ask first, with an installed wheel and from an empty folder. Each task is a process of its own,
timed from outside. The first task of its kind compiles its search, once on a machine.

{table}

{versions}
Run again: `python benchmarks/first_hour.py --output FILE`. It fails where a task does not end with what was asked for.
"""

if __name__ == "__main__":
    main()
