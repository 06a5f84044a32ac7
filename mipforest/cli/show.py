"""``mipforest show``."""

from __future__ import annotations

from mipforest.cli import options as o
from mipforest.cli.output import print_json, print_text, terminal_width

#: Whatever a changed file may cause.
_CHANGED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)


def show(run: o.RunPath, as_json: o.Json = False) -> None:
    """Show the outcome of a run, and its tree."""
    from mipforest.cli.summary import summary
    from mipforest.runs import RunError, read_run

    found = read_run(run)
    if as_json:
        tree = None if found.saved is None else found.saved.to_dict()
        print_json(found.result | {"tree": tree})
        return
    try:
        print_text(summary(found.result, found.saved, terminal_width()))
    except _CHANGED as error:
        kind = "lacks" if isinstance(error, KeyError) else "was changed:"
        raise RunError(f"{run}/result.json {kind} {error}; solve again") from error
