"""``mipforest explore``: a page on this machine on which the best tree is edited by hand."""

from __future__ import annotations

import tempfile
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from mipforest.cli import options as o
from mipforest.cli.constraint_options import ConstraintOptions
from mipforest.cli.early import refuse_unknown
from mipforest.cli.errors import CommandError
from mipforest.cli.outcome import JobResult
from mipforest.cli.output import print_note
from mipforest.cli.progress import Progress
from mipforest.cli.solve import Job

if TYPE_CHECKING:
    from mipforest.edits import EditSession
    from mipforest.problem.result import Result
    from mipforest.runs import LoadedData


@o.grouped
def explore(
    run: Annotated[
        Path | None,
        Argument(
            metavar="[RUN]",
            help="Run folder to go on from, in place of --model and --data; its edits are kept in it.",
            show_default=False,
        ),
    ] = None,
    *,
    model: Annotated[
        str | None,
        Option(
            "--model",
            metavar="NAME",
            help="Model; 'mipforest models' lists them.",
            autocompletion=o.model_names,
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    model_options: o.ModelOptions,
    data: Annotated[
        str | None,
        Option(
            "--data",
            metavar="DATA",
            help="Data as for 'mipforest solve'; of a run, other data with its columns.",
            autocompletion=o.data_names,
            rich_help_panel=o.DATA,
        ),
    ] = None,
    data_options: o.DataOptions,
    constraint_options: ConstraintOptions,
    solver_options: o.SolverOptions,
    out: Annotated[
        Path | None,
        Option(
            "--out",
            metavar="DIR",
            help="Run folder that the page writes when it is told to: tree, report's data and edits.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    port: Annotated[
        int,
        Option(
            "--port", min=0, max=65535, help="Where to listen on this machine; 0 for any port that is free."
        ),
    ] = 0,
    browser: Annotated[
        bool, Option("--browser/--no-browser", help="Whether to open the page in a browser.")
    ] = True,
    quiet: o.Quiet = False,
) -> None:
    """Edit the best tree by hand on a page: keep, change or forbid splits; the rest is searched again, with a proof.

    The page is served on this machine alone (127.0.0.1), at an address that nobody can guess. Ctrl-C ends it.

    Exit code: 0 ended by Ctrl-C; 2 wrong usage or input.

    Example: mipforest explore --model oct --depth 3 --data breast_cancer
    """
    if run is None and (model is None or data is None):
        raise CommandError("explore needs a run folder, or --model and --data; name one of them")
    if run is not None and model is not None:
        raise CommandError("explore takes a run folder or --model, not both: the run has its model")
    if model is not None and data is not None:
        refuse_unknown(model, data)
    with Progress(quiet=quiet) as progress:
        from mipforest.edits import EditSession
        from mipforest.explore.explorer import Explorer
        from mipforest.explore.server import ExploreServer
        from mipforest.runs import RunError, read_run
        from mipforest.runs.folder import EDITS

        settings, constraints = solver_options.settings(), constraint_options.read()
        before, encoding = None, None
        if run is not None:
            found = read_run(run)
            before = found.result.get("data", {}).get("sha256")
            encoding = None if data is None else found.found.encoding
            job = Job.of_run(found, solver_options.solver, settings, data)
            job = replace(job, constraints=(*job.constraints, *constraints))
        else:
            assert model is not None
            assert data is not None
            source = data_options.source(data, model=model, seed=solver_options.seed)
            job = Job.of(
                model, model_options, source, solver_options.solver, settings, constraints=constraints
            )
        if not job.formulation.gives.is_tree:
            raise CommandError(
                f"model {job.formulation.name} gives no tree that could be edited; 'mipforest models' lists those that "
                "do"
            )
        budget = settings.budget(progress.phase)
        loaded = job.load(budget)
        if encoding is not None:
            loaded = job.with_columns_of(encoding, loaded, budget)
        problem = job.build(loaded.train, budget, progress)
    if run is not None and data is None and loaded.train.sha256 != before:
        print_note(f"{loaded.train.name} has changed since the run: trees are searched on what it is now")
    kept = None if run is None else run / EDITS
    if kept is not None and kept.exists():
        try:
            session = EditSession.load(problem, kept, job.solver, settings=job.settings)
        except OSError as error:
            raise RunError(f"{kept} cannot be read: {error}") from error
    else:
        session = EditSession(problem, job.solver, settings=job.settings)
    explorer = Explorer(session, loaded.test, file=kept, writer=_Writer(job, loaded, out))
    try:
        server = ExploreServer(explorer, port)
    except OSError as error:
        explorer.close()
        raise CommandError(
            f"port {port} cannot be listened on ({error}); leave --port out, or name another one"
        ) from None
    print_note(f"open {server.address}")
    if browser:
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print_note("ended")
    finally:
        server.server_close()
        explorer.close()


class _Writer:
    """Writes reports, and runs where the command was told to."""

    def __init__(self, job: Job, loaded: LoadedData, out: Path | None) -> None:
        self._job, self._loaded, self._out, self._written = job, loaded, out, False

    def report(self, result: Result) -> str:
        """Return the report page of a run with this result."""
        from mipforest.report import content_of, report_page
        from mipforest.runs import read_run

        with tempfile.TemporaryDirectory() as folder:
            JobResult.of(self._job, self._loaded, result).write_files(Path(folder))
            return report_page(content_of(read_run(folder))).decode()

    def run(self, result: Result, session: EditSession) -> str:
        """Write the run folder with the edits; one that the page has written before is replaced."""
        from mipforest.runs import RunFolder
        from mipforest.runs.folder import EDITS

        if self._out is None:
            raise CommandError("no folder was named for a run; start explore with --out DIR")
        with RunFolder(self._out.expanduser(), replace=self._written) as folder:
            session.save(folder.staging / EDITS)
            JobResult.of(self._job, self._loaded, result).write(folder)
        self._written = True
        return f"Written to {self._out}"
