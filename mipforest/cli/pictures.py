"""``mipforest plot``, ``report`` and ``vite``: a tree as a picture, a run as a page, an ensemble from inside."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from mipforest.cli import options as o
from mipforest.cli.errors import CommandError
from mipforest.cli.output import print_json, print_note, print_text
from mipforest.formatting import printable

if TYPE_CHECKING:
    from mipforest.runs import Run
    from mipforest.vite import Vite


#: Whether samples may be fetched; asked for where a run names such data.
Network = Annotated[
    bool | None,
    Option(
        "--network/--no-network",
        help="Fetch the samples of a run on openml:NAME again, or do without them; asked on a terminal unless given.",
    ),
]

SUFFIXES = (".svg", ".png", ".pdf")
#: Forms of a tree that are no pictures; those of a score card are the last two.
FORMS = (".dot", ".py", ".joblib", ".onnx", ".sql")


def plot(
    run: o.RunPath,
    output: Annotated[
        Path | None,
        o.output_file(
            "Picture: .svg, .png or .pdf; by default tree.svg, card.svg or partition.svg in the run folder. "
            "To use a tree elsewhere: .py, a function without dependencies; .sql, an expression; .onnx, an ONNX "
            "model; .joblib, a decision tree of scikit-learn; .dot for Graphviz. A card also as .sql and .onnx."
        ),
    ] = None,
    partition: Annotated[
        bool, Option("--partition", help="Draw how the tree cuts the plane (data of two features).")
    ] = False,
    max_terms: Annotated[
        int, Option(min=1, metavar="N", help="Most terms and influences of an oblique split to show.")
    ] = 3,
    dialect: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Database that reads a .sql file: bigquery, databricks, duckdb, mysql, postgres, snowflake, sqlite, "
            "sqlserver; by default standard SQL.",
        ),
    ] = None,
    network: Network = None,
    as_json: o.Json = False,
) -> None:
    """Draw the tree of a run, or how it cuts the plane.

    The training samples are loaded again to be counted and drawn; if they have changed or are gone, the tree
    is drawn without them.
    """
    from mipforest.runs import read_run

    found = read_run(run)
    name = found.found.fitted.noun.split()[-1]
    path = output or run / ("partition.svg" if partition else f"{name}.svg")
    if output is None and path.is_symlink():
        # A run folder from elsewhere must not decide which file is written.
        raise CommandError(f"{path} is a link to {path.readlink()}; name the picture with -o")
    if dialect is not None and path.suffix != ".sql":
        raise CommandError(
            f"--dialect {dialect} is for .sql files, and {path} is none; leave it out, or end the name in .sql"
        )
    if path.suffix in FORMS and not partition:
        _write_form(found, path, max_terms, dialect or "standard")
    else:
        _draw(found, path, max_terms, network, partition=partition)
    if as_json:
        print_json({"written": str(path)})
    else:
        print_text(f"{path}")


def _write_form(run: Run, path: Path, max_terms: int, dialect: str) -> None:
    """Write a tree or card in a form that is no picture."""
    from mipforest.atomic import atomic_write
    from mipforest.deployment import to_onnx, to_sklearn, to_sql
    from mipforest.runs import SavedTree
    from mipforest.trees import shown_tree, to_dot, to_python

    saved = run.found
    statistics = saved.statistics if isinstance(saved, SavedTree) else None
    written: str | bytes
    try:
        if path.suffix == ".sql":
            written = to_sql(saved.fitted, statistics, encoding=saved.encoding, dialect=dialect) + "\n"
        elif path.suffix == ".onnx":
            written = to_onnx(saved.fitted, statistics, encoding=saved.encoding).SerializeToString()
        elif not isinstance(saved, SavedTree):
            raise CommandError(
                f"{run.path} has a {saved.fitted.noun}, and {path.suffix} is for trees; write it as .sql or .onnx, "
                f"draw it as {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, or read its points from card.json"
            )
        elif path.suffix == ".joblib":
            from io import BytesIO

            import joblib

            buffer = BytesIO()
            joblib.dump(to_sklearn(saved.tree, statistics, encoding=saved.encoding), buffer)
            written = buffer.getvalue()
        elif path.suffix == ".py":
            written = to_python(saved.tree)
        else:
            root = shown_tree(saved.tree, statistics)
            written = to_dot(saved.tree, statistics, max_terms=max_terms, root=root)
    except ValueError as error:
        raise CommandError(f"{path.suffix}: {error}") from error
    with atomic_write(path, "wb" if isinstance(written, bytes) else "w") as file:
        file.write(written)


def _draw(found: Run, path: Path, max_terms: int, network: bool | None, *, partition: bool) -> None:
    """Draw the tree of a run, with its samples if they can be had, or how it cuts the plane."""
    from mipforest.runs import samples_of

    shown = (found.found_tree if partition else found.found).fitted
    check_picture(path)
    if partition and shown.n_features != 2:
        raise CommandError(f"--partition needs 2 features, these data have {shown.n_features}; leave it out")
    loaded, reason = samples_of(found, network=_may_fetch(found, network))
    samples = None if loaded is None else loaded.train
    if samples is None:
        if partition:
            raise CommandError(f"--partition draws the training samples, but {reason}")
        print_note(f"drawn without numbers of samples: {reason}")
    from mipforest.runs import SavedTree
    from mipforest.trees import plot_partition, plot_tree, save_figure

    if samples is None and isinstance(found.found, SavedTree):
        saved = found.found
        save_figure(plot_tree(saved.tree, max_terms=max_terms, training=saved.statistics), path)
    elif samples is None:
        save_figure(shown.plot(max_terms=max_terms), path)
    elif partition:
        save_figure(plot_partition(found.found_tree.tree, samples.X_raw, samples.labels), path)
    else:
        save_figure(shown.plot(samples.X_raw, samples.labels, max_terms=max_terms, training=True), path)


def _may_fetch(run: Run, allowed: bool | None) -> bool:
    """Return whether samples may be fetched from the network; ask where the run names such and nothing is said."""
    from mipforest.runs import network_data

    named = network_data(run)
    if named is None or allowed is not None:
        return bool(allowed)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CommandError(
            f"{run.path}/result.json names {named}, and a run that may be from others fetches nothing from the network "
            "unasked: allow it with --network, or do without the samples with --no-network"
        )
    question = f"{run.path}/result.json names {named}: fetch it from the network? [y/N] "
    print(printable(question), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def check_picture(path: Path) -> None:
    """Refuse a name that does not end as that of a picture."""
    if path.suffix.lower() not in SUFFIXES:
        raise CommandError(f"{path} is no picture that can be drawn; end the name in {', '.join(SUFFIXES)}")


PAGE_SUFFIXES = (".html", ".htm")


def report(
    run: o.RunPath,
    output: Annotated[
        Path | None, o.output_file("Page to write, .html; by default report.html in the run folder.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace a file that is there already.")] = False,
    network: Network = None,
    as_json: o.Json = False,
) -> None:
    """Write a run as one HTML page: the tree to walk through, how well it predicts, and how it was found.

    The page needs no network and no other file. It can be sent, printed, and read without scripts. The samples are
    loaded again for what the run folder does not hold; where they have changed or are gone, the page says what is
    missing.
    """
    from mipforest.runs import RunError, read_run
    from mipforest.runs.folder import REPORT

    path = output or run / REPORT
    _check_target(path, chosen=output is not None, replace=force)
    found = read_run(run)
    fetch = _may_fetch(found, network)
    from mipforest.atomic import atomic_write
    from mipforest.report import content_of, report_page

    try:
        content = content_of(found, network=fetch)
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
    if path.suffix.lower() not in PAGE_SUFFIXES:
        raise CommandError(f"{path} is no page; end the name in .html")
    if path.is_dir():
        raise CommandError(f"{path} is a folder; name a file")
    if path.exists() and not replace:
        raise CommandError(f"{path} is there already; replace it with --force, or choose another name")
    if chosen:
        o.require_folder_of(path)


#: Features that are printed per level.
PRINTED = 5


@o.grouped
def vite(
    ensemble: Annotated[
        str,
        Argument(
            metavar="ENSEMBLE",
            help="random-forest, extra-trees, gradient-boosting or xgboost, fitted here (options behind a colon: "
            "random-forest:trees=100,seed=100); or a .joblib file with a fitted classifier, whose loading runs code "
            "that it contains.",
        ),
    ],
    *,
    depth: Annotated[
        int, Option(metavar="D", help="Levels to show, 1 to 10, and depth of trees that are fitted here.")
    ],
    data: o.DataName,
    data_options: Annotated[o.DataOptions, o.Without("treatment", "outcomes", "weight", "scaling", "test")],
    seed: Annotated[
        int,
        Option(min=0, metavar="N", help="Seed of the split, and of generated data.", rich_help_panel=o.DATA),
    ] = 0,
    output: Annotated[Path | None, o.output_file("Draw a picture: .svg, .png or .pdf.")] = None,
    csv: Annotated[
        Path | None,
        Option(
            "--csv",
            metavar="FOLDER",
            help="Write the numbers to .csv files in this folder.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    max_features: Annotated[
        int,
        Option(
            min=1,
            metavar="N",
            help="Most features to list per node of the picture.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = 6,
    as_json: o.Json = False,
) -> None:
    """Look into a tree ensemble of two classes: which features it splits on, and where.

    The command prints the most used features of every level. The picture (-o) adds the nodes with their ranges of
    split values, the samples that the trees keep together, and how sure the ensemble is. With --test-size, all of
    this is of the training part.

    A .joblib file must hold a scikit-learn or XGBoost classifier that was fitted on the features of the data in
    original units. **Loading such a file runs code that it contains: use only files you trust.**

    Example: mipforest vite random-forest --depth 3 --data breast_cancer -o vite.svg
    """
    o.check_depth(depth)
    _check_outputs(output, csv)
    source = data_options.source(data, model=None, seed=seed)
    from mipforest.vite import vite as inspect

    seen = inspect(ensemble, source.load().train, depth)
    written = []
    if output is not None:
        seen.save(output, max_features=max_features)
        written.append(output)
    if csv is not None:
        written += seen.write_tables(csv)
    if as_json:
        print_json(_summary(seen) | {"written": [str(path) for path in written]})
    else:
        _print(seen)
        for path in written:
            print_text(str(path))


def _check_outputs(output: Path | None, csv: Path | None) -> None:
    """Refuse before anything is fitted what cannot be written."""
    if output is not None:
        check_picture(output)
    for path in (output, csv):
        if path is not None:
            o.require_folder_of(path)
    if csv is not None and csv.exists() and not csv.is_dir():
        raise CommandError(f"{csv} is a file; --csv takes the name of a folder")


def _summary(seen: Vite) -> dict[str, Any]:
    return {
        "kind": seen.ensemble.kind,
        "ensemble": seen.ensemble.description,
        "trees": len(seen.ensemble.members),
        "ensemble_depth": seen.ensemble.depth,
        "data": seen.data.name,
        "samples": seen.data.n,
        "accuracy": seen.accuracy,
        "levels": [seen.levels[level].to_dict() for level in seen.levels],
    }


def _print(seen: Vite) -> None:
    print_text(f"{seen.ensemble.description}; {seen.data.n} samples, accuracy {seen.accuracy:.1%}")
    for level, shares in seen.levels.items():
        most = shares[shares > 0].sort_values(ascending=False, kind="stable")
        shown = ", ".join(f"{name} {share:.0f}%" for name, share in most[:PRINTED].items())
        more = f", {len(most) - PRINTED} more" if len(most) > PRINTED else ""
        print_text(f"level {level}: {shown}{more}" if len(most) else f"level {level}: no tree splits")
