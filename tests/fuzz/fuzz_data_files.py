"""Damage files of data, suites, results and runs, and use them: only errors of this package, bounded time and memory.

python tests/fuzz/fuzz_data_files.py --files 10000 --seed 0
"""

from __future__ import annotations

import gzip
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from fuzz_readers import Figures, damage_and_use, run_program
from typer.testing import CliRunner

from mipforest.campaigns import Campaign, read_suite, run
from mipforest.campaigns.experiments import plan
from mipforest.campaigns.report import read_results
from mipforest.cli.main import app
from mipforest.data import load
from mipforest.data.loading import read_file
from mipforest.errors import MipforestError
from mipforest.runs.run import load_saved_tree

#: Seconds that one file may take, on a machine that is busy.
LONGEST = 10

#: Bytes that all files together may add to the greatest memory of the process.
MEMORY = 1 << 30

SUITE = """
name = "pair"
summary = "Two cells."
seeds = [2, 3]
solvers = ["highs"]
time_limits = [60.0, inf]
gap = 1e-4
threads = 1

[solver_options.highs]
presolve = "on"
mip_max_nodes = 1000

[split]
test_size = 0.25
stratify = "classes"

[data.tree]
load = "synthetic:tree,depth=1,n=24,p=2"
task = "classification"

[models.oct]
model = "oct"
depth = 1
variant = ["tight", "paper"]
grid = { alpha = [0.0, 0.05] }

[published.oct.tree]
test_accuracy = 0.9
"""

Use = Callable[[Path], object]


def corpus(folder: Path) -> dict[str, tuple[bytes, Use]]:
    """Make real files; give each with how it is used."""
    table = _table()
    text = table.to_csv(index=False).encode()
    table.to_parquet(folder / "data.parquet")
    suite, results, tables = folder / "suite.toml", folder / "results.sqlite", folder / "run"
    suite.write_text(SUITE)
    run(Campaign(suite, results, time_limit=5))
    runner = CliRunner()
    data = ("--depth", "2", "--data", "synthetic:4-partitions", "--time-limit", "0", "--out", str(tables))
    done = runner.invoke(app, ["solve", "--model", "margot", *data])
    assert done.exit_code == 0, done.output

    def load_data(path: Path) -> None:
        load(path, target="label", missing="drop")

    def load_written(path: Path) -> None:
        load(path, target="label", missing="drop", dates="days", missing_values=["-"], date_order="mdy")

    def planned(path: Path) -> None:
        plan(read_suite(path))

    def tree(path: Path) -> None:
        found = load_saved_tree(path)
        found.predict(pd.DataFrame({name: [0.5, 1e9] for name in ("x0", "x1", "x", "y")}))
        found.targets(["-1", "1"])
        json.dumps(found.to_dict(), allow_nan=False)

    def shown(path: Path) -> None:
        shutil.copy(path, tables / "result.json")
        for options in ((), ("--json",)):
            done = runner.invoke(app, ["show", str(tables), *options])
            assert done.exit_code in (0, 2, 3), f"exit code {done.exit_code}\n{done.output[-3000:]}"

    return {
        "data.csv": (text, load_data),
        "data.csv.gz": (gzip.compress(text, mtime=0), load_data),
        "table.csv": (text, read_file),
        "written.data": (_written().encode(), load_written),
        "data.arff": (ARFF.encode(), load_data),
        "data.parquet": ((folder / "data.parquet").read_bytes(), load_data),
        "suite.toml": (SUITE.encode(), planned),
        "results.sqlite": (results.read_bytes(), read_results),
        "tree.json": ((tables / "tree.json").read_bytes(), tree),
        "result.json": ((tables / "result.json").read_bytes(), shown),
    }


ARFF = """@relation fuzz
@attribute size numeric
@attribute 'the colour' {red, 'dark blue'}
@attribute label {yes, no}
@data
""" + "".join(
    f"{k / 7}, {('red', chr(39) + 'dark blue' + chr(39))[k % 2]}, {('yes', 'no')[k % 2]}\n" for k in range(30)
)


def _written() -> str:
    """Thirty rows of numbers, dates and times as people write them."""
    rows = [
        f"2.{k:03d},5;{k}%;7/{k % 28 + 1}/2019 3:{k:02d} pm;{'Jan' if k % 2 else 'Jul'} {k % 28 + 1}, 2020;{k % 24}:15;"
        f"{'-' if k == 9 else k} €;{('yes ', 'no')[k % 2]}"
        for k in range(30)
    ]
    return "\n".join(["sep=;", "number;share;slashes;words;clock;price;label", *rows, ""])


def _table() -> pd.DataFrame:
    """Thirty rows with columns of every kind."""
    k = np.arange(30)
    return pd.DataFrame(
        {
            "size": k / 7,
            "time": 1_700_000_000_000_000_000 + k * k,
            "colour": np.where(k % 3, "red", "green"),
            "kept": k % 2 == 0,
            "holes": np.where(k % 11, k * 1.0, np.nan),
            "label": np.where(k % 2, "yes", "no"),
        }
    )


def fuzz(count: int, seed: int, folder: Path) -> Figures:
    """Use ``count`` damaged files; anything but success or an error of this package fails, with the file kept."""
    files = {
        name: (content, quietly(use), (MipforestError,)) for name, (content, use) in corpus(folder).items()
    }
    return damage_and_use(files, count, seed, folder, LONGEST)


def quietly(use: Use) -> Use:
    """Return the same use without warnings."""

    def used(path: Path) -> object:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return use(path)

    return used


def main() -> None:
    run_program(__doc__, fuzz, 16, MEMORY, limited=False)


if __name__ == "__main__":
    main()
