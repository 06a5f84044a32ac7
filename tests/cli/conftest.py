"""Small data, and runs of the command line inside this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mipforest.cli.main import app


class Outcome:
    """Exit code and output of one command line."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)


@pytest.fixture(scope="session")
def mipforest() -> Callable[..., Outcome]:
    """Run the command line in this process."""

    def call(*args: object) -> Outcome:
        result = CliRunner().invoke(app, [str(arg) for arg in args], prog_name="mipforest")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    """24 people with two numbers, a categorical column, and an answer that age and colour decide."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, size=24)
    colour = rng.choice(["red", "green", "blue"], size=24)
    answer = np.where((age > 45) & (colour != "red"), "yes", "no")
    return pd.DataFrame(
        {"age": age, "height": rng.normal(170, 10, 24).round(1), "colour": colour, "answer": answer}
    )


@pytest.fixture(scope="session")
def people_csv(people: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.csv"
    people.to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def people_options(people_csv: Path) -> tuple[str, ...]:
    """A solve of a moment: the start tree alone."""
    data = ("--data", str(people_csv), "--target", "answer")
    return ("solve", "--model", "margot", "--depth", "2", *data, "--time-limit", "0")


@pytest.fixture(scope="session")
def finished_run(people_options: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder; read only."""
    out = tmp_path_factory.mktemp("runs") / "run"
    result = CliRunner().invoke(app, [*people_options, "--out", str(out)])
    assert result.exit_code == 0, result.output
    return out
