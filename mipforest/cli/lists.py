"""``mipforest models``, ``solvers`` and ``data``."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from mipforest.cli import options as o
from mipforest.cli.doctor import version_of
from mipforest.cli.output import print_json, print_table, print_text

if TYPE_CHECKING:
    from mipforest.problem.formulation import Formulation
    from mipforest.problem.parameters import Parameter
    from mipforest.problem.tree_search import TreeSearch
    from mipforest.solvers.base import Solver


CARDS = "cards"

#: Headings of the list of models, by task.
HEADINGS = {
    "classification": "Trees that predict a class",
    "regression": "Trees that predict a number",
    "multi-output": "Trees that predict several targets at once, numbers or labels",
    CARDS: "Score cards, which give the risk of one of two classes",
    "prescription": "Trees that prescribe a treatment, from records of treatments and outcomes",
    "decision": "Trees that decide, for rewards of decisions",
}


def models(
    name: Annotated[str | None, Argument(metavar="[NAME]", help="Model to describe.")] = None,
    as_json: o.Json = False,
) -> None:
    """List the models by task, or describe one: variants, starts, scaling, parameters."""
    from mipforest.problem.registry import formulation_classes, get_formulation

    if name is not None:
        described = _model(get_formulation(name))
        if as_json:
            print_json(described)
        else:
            _describe(described)
        return
    classes = formulation_classes()
    if as_json:
        print_json({"models": [_model(cls) for cls in classes.values()]})
        return
    by_task: dict[str, list[tuple[str, str]]] = {}
    for name, cls in classes.items():
        task = cls.task if cls.gives.is_tree else CARDS
        by_task.setdefault(HEADINGS.get(task, task), []).append((f"  {name}", cls.summary))
    # Tasks of plug-ins, which no heading names, come last.
    known = [heading for heading in HEADINGS.values() if heading in by_task]
    for heading in dict.fromkeys([*known, *by_task]):
        print_text(heading)
        for name, summary in by_task[heading]:
            print_text(f"{name:<20}{summary}")
        print_text()
    print_text("'mipforest models NAME' describes one: source, variants, starts, scaling and parameters.")


def _model(cls: type[Formulation]) -> dict[str, Any]:
    from mipforest.problem.parameters import plain_parameters_of

    return {
        "name": cls.name,
        "summary": cls.summary,
        "source": cls.source,
        "task": cls.task,
        "variants": list(cls.variants),
        "starts": list(cls.starts),
        "scaling": cls.scaling,
        "parameters": [_parameter(parameter) for parameter in plain_parameters_of(cls).values()],
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "type": parameter.kind.label,
        "range": parameter.range,
        "default": parameter.default,
        "help": parameter.help,
    }


def _describe(model: dict[str, Any]) -> None:
    print_text(f"{model['name']}: {model['summary']}")
    print_text(f"  {model['task']}; {model['source']}")
    print_text(f"  variants: {', '.join(model['variants'])}")
    print_text(f"  starts:   {', '.join(model['starts'])}")
    print_text(f"  scaling:  {model['scaling']} of features, unless --scaling says otherwise")
    print_text("  The first variant and start are the defaults. Parameters are given as --param NAME=VALUE.")
    rows = [
        (f"  {p['name']}", p["type"], p["range"], _written(p["default"]), p["help"])
        for p in model["parameters"]
    ]
    if rows:
        print_table(
            ("  parameter", "type", "range", "default", "meaning"), rows, wrapped=("type", "range", "meaning")
        )


def _written(default: Any) -> str:
    if default is None:
        return "-"
    values = default if isinstance(default, tuple) else (default,)
    return ",".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def solvers(as_json: o.Json = False) -> None:
    """List the solvers and tree searches: which are installed, and what they take."""
    from mipforest.problem.tree_search import search_classes
    from mipforest.solvers.base import solver_classes

    found = [
        _availability(name, cls) | {"features": sorted(cls.features)}
        for name, cls in solver_classes().items()
    ]
    searches = [
        _availability(name, cls)
        | {
            "summary": cls.summary,
            "models": _taken_by(cls),
            "proves": cls.proves,
        }
        for name, cls in search_classes().items()
    ]
    if as_json:
        print_json({"solvers": found, "searches": searches})
        return
    for solver in found:
        _print_availability(solver)
        print_text(fill(", ".join(solver["features"]), initial_indent="  ", subsequent_indent="  "))
    print_text("\nTree searches, which see the structure of a tree and no added constraints:")
    for search in searches:
        _print_availability(search)
        words = (
            f"{search['summary']}{'' if search['proves'] else ', without a bound'}; takes {search['models']}"
        )
        print_text(fill(words, initial_indent="  ", subsequent_indent="  "))


def _availability(name: str, cls: type[Solver] | type[TreeSearch]) -> dict[str, Any]:
    return {
        "name": name,
        "available": cls.available(),
        "version": version_of(cls.package) if cls.available() else None,
        "install": cls.install,
    }


def _print_availability(plugin: dict[str, Any]) -> None:
    absent = f"not installed; run: pip install '{plugin['install']}'"
    print_text(f"{plugin['name']}: {plugin['version'] or 'installed' if plugin['available'] else absent}")


def _taken_by(search: type[TreeSearch]) -> str:
    """Say which structures a search takes, and the models that have them."""
    from mipforest.problem.registry import models_of

    structures = " or ".join(kind.words for kind in search.structures)
    limits = f" ({search.limits_in_words})" if search.limits_in_words else ""
    return f"{structures}{limits}: {', '.join(models_of(search))}"


def data(as_json: o.Json = False) -> None:
    """List the data sets that need neither a file nor a network."""
    from mipforest.data import catalogue

    entries = catalogue()
    if as_json:
        print_json({"data": [entry._asdict() for entry in entries]})
        return
    rows = [
        (entry.name, str(entry.n), str(entry.p), str(entry.classes or "regression"), entry.description)
        for entry in entries
    ]
    print_table(("data", "samples", "features", "classes", "about"), rows, wrapped=("about",))
    print_text(
        "\n--data also takes openml:NAME, and .csv, .tsv, .txt, .data, .arff and .parquet files (with --target COLUMN)."
    )
