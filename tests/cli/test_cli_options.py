"""Groups of options: a command names a group, the command line has its fields."""

import inspect
from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from mipforest.cli import options as o
from mipforest.cli.exchange import export
from mipforest.cli.main import app
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
    program, seen = typer.Typer(), []

    @program.command()
    @o.grouped
    def eat(*, fruit: Fruit, soon: bool = False) -> None:
        """Eat."""
        seen.append((fruit, soon))

    assert CliRunner().invoke(program, ["--kind", "pear", "--soon"]).exit_code == 0
    assert seen == [(Fruit(kind="pear"), True)]
    assert CliRunner().invoke(program, ["--number", "3"]).exit_code == 2  # --kind is required


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


def test_an_option_reads_the_same_in_every_command():
    program = typer.main.get_command(app)
    texts = {}
    for name in ("solve", "tune", "export", "certify", "import", "vite"):
        for option in program.commands[name].params:
            texts.setdefault(option.name, set()).add(getattr(option, "help", None))
    differing = {name for name, found in texts.items() if len(found) > 1}
    # What these mean depends on the command.
    assert differing == {
        "time_limit",
        "threads",
        "dask",
        "bridge",
        "model",
        "data",
        "ensemble",
        "depth",
        "seed",
        "output",
        "certificate",
    }
