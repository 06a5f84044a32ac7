"""``mipforest instances``: the instance library."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Exit, Option, Typer

from mipforest.cli import options as o
from mipforest.cli.errors import NO_ANSWER, CommandError, ReportingGroup
from mipforest.cli.output import print_json, print_table, print_text
from mipforest.cli.quantities import seconds
from mipforest.formatting import value_text

if TYPE_CHECKING:
    from mipforest.instances import Entry, Library, Run

app = Typer(
    cls=ReportingGroup,
    help="The instance library: models with statistics, best known solutions and checksums.",
    no_args_is_help=True,
)

LibraryFolder = Annotated[
    Path, Option("--library", metavar="DIR", help="Folder with suite.toml and catalogue.csv.")
]
ReadLibrary = Annotated[
    Path | None,
    Option(
        "--library",
        metavar="DIR",
        help="Folder with suite.toml and catalogue.csv. Default: the folder 'instances' here, or else the library that "
        "comes with mipforest.",
    ),
]
Only = Annotated[
    list[str] | None,
    Option("--only", metavar="NAME", help="Instance, family or model; all if not given. Repeatable."),
]
InstanceName = Annotated[str, Argument(metavar="NAME", help="Name of an instance.")]

FOLDER = Path("instances")


@app.command("list")
def list_instances(library: ReadLibrary = None, only: Only = None, as_json: o.Json = False) -> None:
    """List the instances with size, status and best known values."""
    lib = _library(library)
    entries = _chosen_entries(lib, only)
    if as_json:
        print_json({"instances": [_as_json(entry) for entry in entries]})
        return
    rows = [
        (
            e.name,
            str(e.columns),
            str(e.rows),
            str(e.nonzeros),
            e.status,
            e.difficulty,
            *_best(e),
            e.proven_for,
        )
        for e in entries
    ]
    print_table(
        ("instance", "columns", "rows", "nonzeros", "status", "difficulty", "objective", "gap", "for"),
        rows,
    )
    missing = len(lib.chosen(tuple(only or ()))) - len(entries)
    if missing:
        print_text(f"{missing} more are in the suite and were not built yet: mipforest instances build")


@app.command()
def show(name: InstanceName, library: ReadLibrary = None, as_json: o.Json = False) -> None:
    """Show all that is known of one instance."""
    lib = _library(library)
    (spec,) = _one(lib, name)
    entry = _entry(lib, name)
    if as_json:
        print_json(_as_json(entry))
        return
    for key, value in _as_json(entry).items():
        print_text(f"{key:<18} {_plain(value)}")
    for path in (lib.model_path(spec), lib.start_path(spec), lib.solution_path(spec)):
        print_text(f"{'file':<18} {path}{'' if path.is_file() else ' (not there; build makes it)'}")


@app.command()
def stats(library: ReadLibrary = None, only: Only = None, as_json: o.Json = False) -> None:
    """Sum up the library: instances by family, model and status; nonzeros by class of constraints."""
    entries = _chosen_entries(_library(library), only)
    counts = {
        "family": Counter(e.family for e in entries),
        "model": Counter(e.model for e in entries),
        "status": Counter(e.status for e in entries),
        "difficulty": Counter(e.difficulty for e in entries if e.difficulty),
    }
    classes: Counter[str] = Counter()
    for e in entries:
        for part in filter(None, e.nonzeros_by_class.split(";")):
            name, _, nonzeros = part.rpartition(":")
            classes[name] += int(nonzeros)
    if as_json:
        print_json(
            {"instances": len(entries), **{k: dict(v) for k, v in counts.items()}, "nonzeros": dict(classes)}
        )
        return
    print_text(f"{len(entries)} instances, {sum(e.nonzeros for e in entries)} nonzeros")
    for key, counter in counts.items():
        if counter:
            print_text(f"{key:<10} {', '.join(f'{name} {n}' for name, n in counter.items())}")
    print_table(
        ("class of constraints", "nonzeros"),
        [(n, str(c)) for n, c in classes.most_common()],
        wrapped=("nonzeros",),
    )


@app.command()
def build(
    library: LibraryFolder = FOLDER, only: Only = None, as_json: o.Json = False, quiet: o.Quiet = False
) -> None:
    """Build instances from the suite: model, metadata and start; the same suite gives the same bytes.

    Best known values are kept while the model stays the same. A folder that is empty, or not there, gets the suite,
    the catalogue and the best known solutions that mipforest brings.
    """
    import mipforest
    from mipforest.instances import Library, build_instance

    if not (library / "suite.toml").is_file():
        Library.copied(library)
    lib = _library(library)
    entries = []
    for spec in lib.chosen(tuple(only or ())):
        entry = build_instance(lib, spec, version=mipforest.__version__)
        entries.append(entry)
        if not (quiet or as_json):
            print_text(
                f"{lib.model_path(spec)}: {entry.columns} columns, {entry.rows} rows, {entry.nonzeros} nonzeros"
            )
    if as_json:
        print_json({"instances": [_as_json(entry) for entry in entries]})


@app.command("distributions")
def list_distributions(as_json: o.Json = False) -> None:
    """List the distributions that mipforest brings, with levels and measured seconds of solvers."""
    from mipforest.instances import read_distribution, shipped
    from mipforest.instances.distributions import read_measured, summaries

    measured = {(own.distribution, own.level, own.solver): own for own in summaries(read_measured())}
    solvers = list(dict.fromkeys(solver for _, _, solver in measured))
    known = [read_distribution(name) for name in shipped()]
    if as_json:
        print_json(
            {
                "distributions": [
                    {
                        "name": own.name,
                        "summary": own.summary,
                        "levels": {
                            level: {
                                solver: asdict(measured[own.name, level, solver])
                                for solver in solvers
                                if (own.name, level, solver) in measured
                            }
                            for level in own.levels
                        },
                    }
                    for own in known
                ]
            }
        )
        return
    rows = [
        (
            own.name,
            level,
            *(
                measured[own.name, level, solver].words if (own.name, level, solver) in measured else ""
                for solver in solvers
            ),
            own.summary if number == 0 else "",
        )
        for own in known
        for number, level in enumerate(own.levels)
    ]
    print_table(("distribution", "level", *solvers, "what it is"), rows, wrapped=("what it is",))
    print_text("Seconds are medians, of one processor; > where the median run ended at its time limit.")


@app.command()
def generate(
    distribution: Annotated[
        str,
        Argument(
            metavar="DISTRIBUTION",
            help="From 'mipforest instances distributions', or a file *.toml of your own.",
        ),
    ],
    out: Annotated[
        Path, Option("--out", metavar="DIR", help="Folder; its folders train and test become libraries.")
    ],
    n: Annotated[int, Option("--n", min=1, metavar="N", help="Number of instances.")] = 1,
    level: Annotated[
        str | None, Option("--level", metavar="LEVEL", help="Level of hardness; the first one if not given.")
    ] = None,
    seed: Annotated[int, Option("--seed", min=0, metavar="N", help="Seed of the sample.")] = 0,
    test_share: Annotated[
        float, Option("--test-share", min=0.0, max=0.9, metavar="SHARE", help="Share of test instances.")
    ] = 0.2,
    solver: Annotated[
        str,
        Option(
            "--solver",
            metavar="NAME,NAME,...",
            help="Solvers and tree searches that look for optima; auto: what 'mipforest solve' would take; none: only "
            "build.",
        ),
    ] = "auto",
    time_limit: Annotated[
        float, Option(parser=seconds, metavar="TIME", help="Wall time for each solve.")
    ] = 60.0,
    workers: Annotated[
        int, Option("--workers", min=1, metavar="N", help="Number of processes; each uses one thread.")
    ] = 1,
    dask: Annotated[
        str | None,
        Option(
            "--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster whose workers share the folder."
        ),
    ] = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Draw instances of a distribution, with optima, certificates, graphs and features of their data.

    The same command goes on where an earlier one ended; with a larger --n it extends the sample.
    Exit code: 0 all are there; 3 some could not be built; 2 wrong usage or input.
    """
    from mipforest.instances import Generated, Generation, read_distribution
    from mipforest.instances import generate as generated
    from mipforest.settings import SolveSettings

    drawn_from = read_distribution(distribution)
    worked_on = 0

    def finished(ended: Generated) -> None:
        nonlocal worked_on
        worked_on += 1
        if quiet or as_json:
            return
        if ended.entry is None:
            print_text(f"{ended.name}: {ended.message}")
        else:
            objective, gap = _best(ended.entry)
            print_text(f"{ended.name}: objective {objective or 'unknown'}, gap {gap or 'unknown'}")

    failed = generated(
        Generation(
            distribution=drawn_from,
            level=next(iter(drawn_from.levels)) if level is None else level,
            seed=seed,
            n=n,
            folder=out,
            test_share=test_share,
            solvers=[] if solver == "none" else [name for name in solver.split(",") if name],
            settings=SolveSettings(time_limit=time_limit, threads=1, dask=dask),
            workers=workers,
        ),
        finished,
    )
    if as_json:
        print_json(
            {
                "folder": str(out),
                "instances": n,
                "worked_on": worked_on,
                "failed": [{"instance": own.name, "complaint": own.message} for own in failed],
            }
        )
    elif not quiet:
        print_text(f"{out}: {n - len(failed)} instances, {worked_on - len(failed)} of them new")
    if failed:
        raise Exit(NO_ANSWER)


@app.command()
def scores(
    first: Annotated[Path, Argument(metavar="FIRST", help="A library, as the folder train of a sample.")],
    second: Annotated[Path, Argument(metavar="SECOND", help="Another one, as its folder test.")],
    seed: Annotated[int, Option("--seed", min=0, metavar="N", help="Seed of the random divisions.")] = 0,
    as_json: o.Json = False,
) -> None:
    """Compare two libraries: validity of their instances, likeness of their structure, and hardness.

    The Jensen-Shannon divergence of the histograms of a statistic (5 bins) is 0 where it is distributed alike, and 1
    where no bin has instances of both. Beside it stands its mean over random divisions of all instances. Hardness is
    that of the runs in results.csv of both folders: 'mipforest instances race --record' adds some.
    """
    from mipforest.instances import scores as scores_of

    libraries = [_library(folder) for folder in (first, second)]
    found = scores_of(libraries[0], libraries[1], seed=seed)
    if as_json:
        alike = {"similarity": found.similarity, "similarity_by_chance": found.similarity_by_chance}
        print_json(alike | asdict(found))
        return
    for folder, own in zip((first, second), found.validity, strict=True):
        print_text(
            f"{folder}: {own.instances} instances, {own.feasible} with a feasible solution, {own.bounded} with a "
            f"bound, {own.solved} with a proven optimum"
        )
    print_text(f"similarity {found.similarity:.3f} (random divisions: {found.similarity_by_chance:.3f})")
    print_table(
        ("statistic", "divergence", "by chance"),
        [(own.statistic, f"{own.divergence:.3f}", f"{own.by_chance:.3f}") for own in found.divergences],
    )
    runs = [
        (str(folder), own.solver, str(own.runs), str(own.solved), f"{own.seconds:.3g}", f"{own.nodes:g}")
        for folder, hardness in zip((first, second), found.hardness, strict=True)
        for own in hardness
    ]
    if runs:
        print_table(("library", "solver", "runs", "solved", "seconds", "nodes"), runs)
    else:
        print_text("no runs stand in results.csv; mipforest instances race --record adds some")


@app.command()
def verify(
    library: ReadLibrary = None,
    only: Only = None,
    rebuild: Annotated[
        bool,
        Option(
            "--rebuild", help="Build every model anew, also where its file is there, and check the trees."
        ),
    ] = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check checksums, and feasibility and objectives of starts and best known solutions.

    Exit code: 0 all is well; 3 something is not as the catalogue says; 2 wrong usage or input.
    """
    from mipforest.instances import verify as findings_of

    lib = _library(library)
    wrong = []
    for spec in lib.chosen(tuple(only or ())):
        found = findings_of(lib, spec, rebuild=rebuild)
        wrong += found
        if not (quiet or as_json):
            print_text(f"{'WRONG' if found else 'ok   '}  {spec.name}")
            for finding in found:
                print_text(f"       {finding.message}")
    if as_json:
        print_json({"wrong": [{"instance": f.instance, "complaint": f.message} for f in wrong]})
    if wrong:
        raise Exit(NO_ANSWER)


@app.command()
def improve(
    library: LibraryFolder = FOLDER,
    only: Only = None,
    solver: o.SolverName = "auto",
    time_limit: Annotated[
        float, Option(parser=seconds, metavar="TIME", help="Wall time for each instance.")
    ] = 60.0,
    threads: Annotated[
        int | None, Option(min=1, metavar="N", help="Threads; by default the solver decides.")
    ] = None,
    seed: Annotated[int, Option(min=0, metavar="N", help="Seed of the solver.")] = 0,
    unsolved: Annotated[bool, Option("--unsolved", help="Leave out those whose gap is closed.")] = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Solve instances from their best known solutions, and record what is better in the catalogue."""
    from mipforest.instances import improve as improved
    from mipforest.settings import SolveSettings

    settings = SolveSettings(time_limit=time_limit, threads=threads, seed=seed)
    lib = _library(library)
    entries = []
    for spec in lib.chosen(tuple(only or ())):
        known = lib.entries().get(spec.name)
        if unsolved and known is not None and known.status != "open":
            continue
        entry = improved(lib, spec, solver, settings)
        entries.append(entry)
        if not (quiet or as_json):
            objective, gap = _best(entry)
            print_text(f"{spec.name}: {entry.status}, objective {objective}, gap {gap}")
    if as_json:
        print_json({"instances": [_as_json(entry) for entry in entries]})


@app.command()
def race(
    library: ReadLibrary = None,
    only: Only = None,
    solver: Annotated[
        str,
        Option(
            "--solver",
            metavar="NAME,NAME,...",
            help="Solvers and tree searches, from 'mipforest solvers'; auto: what 'mipforest solve' would take.",
        ),
    ] = "highs",
    time_limit: Annotated[
        float, Option(parser=seconds, metavar="TIME", help="Wall time for each run.")
    ] = 60.0,
    threads: Annotated[
        int | None, Option(min=1, metavar="N", help="Threads; by default the solver decides.")
    ] = None,
    seed: Annotated[int, Option(min=0, metavar="N", help="Seed of the solvers.")] = 0,
    out: Annotated[
        Path, Option("--out", metavar="DIR", help="Folder for results.csv, race.md and profiles.svg.")
    ] = Path("race"),
    record: Annotated[
        bool, Option("--record", help="Record results, and better solutions and bounds, in the library too.")
    ] = False,
    dask: Annotated[
        str | None, Option("--dask", metavar="ADDRESS", help="Scheduler of a Dask cluster that runs them.")
    ] = None,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Run solvers on instances without a start, and compare them: wrong answers, seconds, profiles, primal gaps.

    The same command goes on where an earlier one ended: runs with a result are not repeated.
    Exit code: 0 no answer is wrong; 3 some are; 2 wrong usage or input.
    """
    from mipforest.instances import Race, fault_of, run_race, write_race
    from mipforest.instances.race import solver_table
    from mipforest.settings import SolveSettings

    lib = _library(library)
    if record and not (lib.folder / "suite.toml").is_file():
        raise CommandError("--record needs a library that can be written; give its folder with --library")
    entries = lib.entries()
    chosen = [spec for spec in lib.chosen(tuple(only or ())) if spec.name in entries]
    if not chosen:
        raise CommandError("none of these instances is in the catalogue; run: mipforest instances build")

    def finished(run: Run) -> None:
        if not (quiet or as_json):
            said = run.message if run.status == "failed" else f"{run.status} in {run.seconds:g} s"
            print_text(
                f"{run.instance} by {run.solver}: {said}{'; WRONG' if fault_of(run, entries[run.instance]) else ''}"
            )

    settings = SolveSettings(time_limit=time_limit, threads=threads, seed=seed, dask=dask)
    runs = run_race(
        Race(
            library=lib,
            instances=chosen,
            solvers=[name for name in solver.split(",") if name],
            settings=settings,
            results=out / "results.csv",
            record=record,
        ),
        finished,
    )
    entries = lib.entries()
    files = write_race(out, runs, entries)
    faults = [(run, fault) for run in runs if (fault := fault_of(run, entries[run.instance]))]
    if as_json:
        wrong = [{"instance": r.instance, "solver": r.solver, "complaint": fault} for r, fault in faults]
        print_json({"runs": len(runs), "wrong": wrong, "files": [str(file) for file in files]})
    elif not quiet:
        print_table(*solver_table(runs, entries))
        print_text(f"wrote {', '.join(map(str, files))}")
    if faults:
        raise Exit(NO_ANSWER)


@app.command()
def pack(
    output: Annotated[Path, Argument(metavar="FILE", help="The archive, *.tar.gz.")],
    library: LibraryFolder = FOLDER,
    as_json: o.Json = False,
) -> None:
    """Write the library as one archive with checksums, for an upload; the same library gives the same bytes."""
    from mipforest.instances import pack as packed

    names = packed(_library(library), output)
    if as_json:
        print_json({"archive": str(output), "files": names})
    else:
        print_text(f"wrote {output}: {len(names)} files")


def _library(folder: Path | None) -> Library:
    """Return the library of a folder; without one, a library that is only read."""
    from mipforest.instances import Library

    if folder is None and not (FOLDER / "suite.toml").is_file():
        return Library.installed()
    library = Library(folder or FOLDER)
    library.suite  # noqa: B018 - refuses a folder without a suite before anything is done
    return library


def _chosen_entries(library: Library, only: list[str] | None) -> list[Entry]:
    entries = library.entries()
    return [entries[spec.name] for spec in library.chosen(tuple(only or ())) if spec.name in entries]


def _one(library: Library, name: str) -> list[Any]:
    from mipforest.errors import did_you_mean
    from mipforest.instances import SuiteError

    if name not in library.suite:
        raise SuiteError(f"no instance is called {name!r}{did_you_mean(name, sorted(library.suite))}")
    return [library.suite[name]]


def _entry(library: Library, name: str) -> Entry:
    from mipforest.instances import SuiteError

    entries = library.entries()
    if name not in entries:
        raise SuiteError(f"{name} was not built yet; run: mipforest instances build --only {name}")
    return entries[name]


def _best(entry: Entry) -> tuple[str, str]:
    from mipforest.solvers.solution import gap_in_words

    objective = "" if math.isnan(entry.objective) else value_text(entry.objective)
    return objective, "" if math.isinf(entry.gap) else gap_in_words(entry.objective, entry.bound)


def _as_json(entry: Entry) -> dict[str, Any]:
    values = asdict(entry) | {"gap": entry.gap, "status": entry.status, "difficulty": entry.difficulty}
    unknown = {key for key, value in values.items() if isinstance(value, float) and not math.isfinite(value)}
    return {key: None if key in unknown else value for key, value in values.items()}


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
