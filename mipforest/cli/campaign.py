"""``mipforest campaign``: campaigns of many solves, and their tables and pictures."""

from __future__ import annotations

from dataclasses import asdict
from functools import reduce
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Exit, Option, Typer

from mipforest.cli import options as o
from mipforest.cli.errors import INTERRUPTED, NO_ANSWER, ReportingGroup
from mipforest.cli.output import print_json, print_text
from mipforest.cli.quantities import seconds
from mipforest.formatting import duration, percent, printable, value_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mipforest.campaigns import Campaign, Counts
    from mipforest.campaigns.campaign import Outlook
    from mipforest.campaigns.experiment_result import ExperimentResult
    from mipforest.campaigns.experiments import PlannedExperiment
    from mipforest.campaigns.run import CampaignProgress


class CampaignGroup(ReportingGroup):
    """Takes a suite where a command is expected: ``campaign SUITE.toml`` is ``campaign run SUITE.toml``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments name."""
        if args and args[0].endswith(".toml"):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


app = Typer(
    cls=CampaignGroup,
    help="Campaigns: every model of a suite on all its data, once. "
    "'campaign SUITE.toml' is short for 'campaign run SUITE.toml'.",
    no_args_is_help=True,
)


@app.command("run")
@o.grouped
def run_campaign(
    suites: Annotated[list[Path], Argument(metavar="SUITE.toml ...", help="One suite or several.")],
    *,
    results: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="SQLite file for the results; by default the suite's name with .sqlite, in this folder. "
            "Of several suites, the folder for these files.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Write the report at the end, as 'campaign report' does. Each of several suites has a folder there.",
        ),
    ] = None,
    data: Annotated[
        Path | None, Option(metavar="DIR", help="Folder with the files of data that the suite reads.")
    ] = None,
    workers: o.WorkerOptions,
    only: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="Model, data or solver of the suite; all if not given. Repeatable."),
    ] = None,
    time_limit: Annotated[
        float | None,
        Option(
            parser=seconds, metavar="TIME", help="Limit of each solve instead of the suite's; inf for none."
        ),
    ] = None,
    retry_failed: Annotated[
        bool, Option("--retry-failed", help="Run cells again that failed before.")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Say how many cells are left, and their time limits; run nothing.")
    ] = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Run the cells of suites that have no result yet, one suite after the other.

    A suite that includes others stands for them.
    A run that was stopped, by Ctrl-C or a crash, goes on with the same command: finished cells are kept.
    Several processes may run the same suite into the same file.

    Exit code: 0 all cells are done, or run by another process; 3 some failed; 130 stopped by Ctrl-C.
    """
    from mipforest.campaigns import campaigns, run

    chosen = campaigns(suites, results, folder=data, only=tuple(only or ()), time_limit=time_limit)
    several = len(chosen) > 1 or chosen[0].suite_path not in suites
    if dry_run:
        print_outlook(chosen, as_json)
        return
    if several and results is not None:
        results.mkdir(parents=True, exist_ok=True)
    summaries, failed = [], 0
    for campaign in chosen:
        path = campaign.results
        try:
            counts = run(
                campaign,
                jobs=workers.jobs,
                dask=workers.dask,
                retry_failed=retry_failed,
                finished=None if quiet or as_json else print_experiment,
            )
        except KeyboardInterrupt:
            print_text(f"stopped; {path} keeps the finished cells, the same command goes on")
            raise Exit(INTERRUPTED) from None
        failed += counts.failed
        summaries.append(
            {"results": str(path), "done": counts.done, "failed": counts.failed, "waiting": counts.waiting}
        )
        if not quiet and not as_json:
            print_text(_summary(counts, path, reported=report is not None))
        if report is not None:
            write_campaign_report(path, report / path.stem if several else report, quiet or as_json)
    if as_json:
        print_json({"suites": summaries} if several else summaries[0])
    raise Exit(NO_ANSWER if failed else 0)


def print_outlook(chosen: Sequence[Campaign], as_json: bool) -> None:
    """Print what is left of campaigns: a line for each suite, and the sum."""
    left = [(campaign, campaign.outlook()) for campaign in chosen]
    if as_json:
        print_json(
            {"suites": [{"results": str(campaign.results), **asdict(outlook)} for campaign, outlook in left]}
        )
        return
    for campaign, outlook in left:
        print_text(f"{campaign.suite_path.stem}: {_left(outlook)}")
    if len(left) > 1:
        print_text(f"all: {_left(reduce(add, (outlook for _, outlook in left)))}")


def _left(outlook: Outlook) -> str:
    parts = [f"{outlook.waiting} of {outlook.cells} cells are left"]
    if outlook.waiting > outlook.without_limit:
        parts.append(
            f"{outlook.waiting - outlook.without_limit} with limits of {duration(outlook.seconds)} in all"
        )
    if outlook.without_limit:
        parts.append(f"{outlook.without_limit} without a limit, or tuned")
    return "; ".join(parts)


def print_experiment(
    planned: PlannedExperiment, result: ExperimentResult, standing: CampaignProgress
) -> None:
    """Print a line on a finished experiment; called in whichever process ran it."""
    counts = standing.counts
    far = f"{counts.all - counts.waiting} of {counts.all}"
    if counts.waiting:
        far += f", about {duration(standing.seconds_left)} left"
    experiment, values = planned.experiment, result.values
    what = f"{planned.setting}, {experiment.data_label}, seed {experiment.settings.seed}"
    if values["state"] == "failed":
        print(printable(f"{what}: failed: {values['error']} ({far})"), flush=True)
        return
    found = ""
    if values["objective"] is not None:
        gap = "no bound" if values["bound"] is None else f"bound {value_text(values['bound'])}"
        if values["gap"] is not None:
            gap = f"gap {percent(values['gap'])}"
        found = f", objective {value_text(values['objective'])}, {gap}"
    print(printable(f"{what}: {values['status']}{found}, {duration(values['seconds'])} ({far})"), flush=True)


def _summary(counts: Counts, path: Path, *, reported: bool) -> str:
    parts = [f"{counts.done} of {counts.all} cells are done"]
    if counts.failed:
        parts.append(f"{counts.failed} failed (--retry-failed runs them again)")
    if counts.waiting:
        parts.append(f"{counts.waiting} are run by other processes")
    following = "" if reported else f" Next: mipforest campaign report {path} -o DIR"
    return f"{'; '.join(parts)}.{following}"


@app.command("data")
def prepare_data(
    suites: Annotated[list[Path], Argument(metavar="SUITE.toml ...", help="One suite or several.")],
    *,
    data: Annotated[
        Path,
        Option(metavar="DIR", help="Folder for the files of data that the suites read; made where missing."),
    ],
    uci: Annotated[
        Path | None, Option(metavar="DIR", help="Folder with files as you fetched them from UCI.")
    ] = None,
    openml: Annotated[bool, Option("--openml", help="Fetch what is missing then from OpenML.")] = False,
    as_json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Prepare the files of data that suites read, and say what is missing and where it comes from.

    A file is made of what scikit-learn bundles, else of files of UCI, else, with --openml, of OpenML. A file that is
    there is kept. Checksums tell whether its values are those that the results of the documentation were computed with.

    Exit code: 0 all files are there; 3 some are missing.

    Example: mipforest campaign data campaigns/margot-tables-5-6.toml --data data --uci Downloads
    """
    from mipforest.campaigns.data_files import files_of, prepare

    names = dict.fromkeys(name for suite in suites for name in files_of(suite))
    prepared = prepare(names, data, uci=uci, openml=openml)
    missing = [file for file in prepared if file.state == "missing"]
    if as_json:
        print_json({"data": str(data), "files": [asdict(file) for file in prepared]})
    elif not quiet:
        for file in prepared:
            about = f" {file.about}" if file.state == "made" else f": {file.about}" if file.about else ""
            print_text(f"{file.name}: {file.state}{about}{_ORIGINALS[file.as_published]}")
        has = f"{len(prepared) - len(missing)} of {len(prepared)} files are in {data}"
        print_text(has if prepared else "the suites read no files: all their data are bundled or generated")
    raise Exit(NO_ANSWER if missing else 0)


#: What is said of a file, by whether its values are those of the documentation's results.
_ORIGINALS = {
    True: "; its checksum is right",
    False: "; its values, or the order of its rows, are others than those of the documentation's results",
    None: "",
}


@app.command()
def report(
    results: Annotated[
        Path,
        Argument(
            metavar="RESULTS", help="Results file of 'campaign run', or a folder of such files (.sqlite)."
        ),
    ],
    out: Annotated[
        Path, Option("--out", "-o", metavar="DIR", help="Folder for tables and pictures; made where missing.")
    ],
    quiet: o.Quiet = False,
) -> None:
    """Write tables (Markdown, CSV) and pictures (SVG, PNG) of what there is so far.

    Each file of a folder of results has a folder in DIR. The same results give the same files.
    """
    if not results.is_dir():
        write_campaign_report(results, out, quiet)
        return
    files = sorted(results.glob("*.sqlite"))
    if not files:
        raise BadParameter(
            f"there is no results file (.sqlite) in {results}; give a results file or their folder"
        )
    for path in files:
        write_campaign_report(path, out / path.stem, quiet)


def write_campaign_report(results: Path, out: Path, quiet: bool) -> None:
    """Write the report of a results file, and say which files it has."""
    from mipforest.campaigns.report import write_report

    written = write_report(results, out)
    if not quiet:
        print_text(f"Written to {out}: {', '.join(path.name for path in written)}")
