"""Groups of options: a command names a group, the command line has its fields."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from mipforest.cli import options as o
from mipforest.cli.exchange import export
from mipforest.cli.solve import solve
from mipforest.cli.tune import tune


@dataclass(frozen=True, kw_only=True)
class Fruit:
    """Two options."""

    kind: Annotated[str, typer.Option(help="Which.")]
    number: Annotated[int, typer.Option(help="How many.")] = 2


def names(command):
    return set(inspect.signature(command).parameters)


def test_a_group_becomes_its_options():
    app, seen = typer.Typer(), []

    @app.command()
    @o.grouped
    def eat(*, fruit: Fruit, soon: bool = False) -> None:
        """Eat."""
        seen.append((fruit, soon))

    assert CliRunner().invoke(app, ["--kind", "pear", "--soon"]).exit_code == 0
    assert seen == [(Fruit(kind="pear"), True)]
    assert CliRunner().invoke(app, ["--number", "3"]).exit_code == 2  # --kind is required


def test_a_command_can_leave_options_out():
    @o.grouped
    def eat(*, fruit: Annotated[Fruit, o.Without("number")]) -> int:
        return fruit.number

    assert names(eat) == {"kind"}
    assert eat(kind="pear") == 2


def test_commands_share_their_options():
    shared = names(solve) & names(tune) & names(export)
    assert {"model", "depth", "param", "variant", "ensemble", "data", "target", "scaling", "seed"} <= shared
    assert "test" not in names(export)
    assert inspect.signature(solve).parameters["threads"].default is None
    assert inspect.signature(tune).parameters["threads"].default == 1
