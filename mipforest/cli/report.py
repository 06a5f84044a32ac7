"""``mipforest report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from mipforest.cli import options as o
from mipforest.cli.errors import CommandError
from mipforest.cli.output import print_json, print_note, print_text

SUFFIXES = (".html", ".htm")


def report(
    run: o.RunPath,
    output: Annotated[
        Path | None,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Page to write, .html; by default report.html in the run folder.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace a file that is there already.")] = False,
    as_json: o.Json = False,
) -> None:
    """Write a run as one HTML page: the tree to walk through, how well it predicts, and how it was found.

    The page needs nothing but itself: no network, no other file. It can be sent, printed, and read without
    scripts. The samples are loaded again for what the run did not note down; where they have changed or are
    gone, the page says what is missing.
    """
    from mipforest.runs import RunError, read_run
    from mipforest.runs.folder import REPORT

    path = output or run / REPORT
    _check_target(path, chosen=output is not None, replace=force)
    found = read_run(run)
    from mipforest.atomic import atomic_write
    from mipforest.report import content_of, report_page

    try:
        content = content_of(found)
        page = report_page(content)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        # Whatever changed files may cause.
        kind = "lacks" if isinstance(error, KeyError) else "or its tree.json was changed:"
        raise RunError(f"{run}/result.json {kind} {error}; solve again") from error
    with atomic_write(path) as file:
        file.write(page)
    for gap in content.gaps:
        print_note(gap)
    if as_json:
        print_json({"written": str(path), "missing": list(content.gaps)})
    else:
        print_text(f"{path}")


def _check_target(path: Path, *, chosen: bool, replace: bool) -> None:
    """Refuse, before anything is loaded, what cannot or should not be written."""
    if not chosen and path.is_symlink():
        # A run folder from elsewhere must not decide which file is written.
        raise CommandError(f"{path} is a link to {path.readlink()}; name the page with -o")
    if path.suffix.lower() not in SUFFIXES:
        raise CommandError(f"{path} is no page; end the name in .html")
    if path.is_dir():
        raise CommandError(f"{path} is a folder; name a file")
    if path.exists() and not replace:
        raise CommandError(f"{path} is there already; replace it with --force, or choose another name")
    if chosen and not path.parent.is_dir():
        raise CommandError(f"there is no folder {path.parent}; make it first, or write elsewhere")
