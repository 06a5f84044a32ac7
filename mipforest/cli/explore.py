"""``mipforest explore``: a page on this machine on which the best tree is edited by hand."""

from __future__ import annotations

import webbrowser
from typing import Annotated

from typer import Option

from mipforest.cli import options as o
from mipforest.cli.constraint_options import ConstraintOptions
from mipforest.cli.early import refuse_unknown
from mipforest.cli.errors import CommandError
from mipforest.cli.output import print_note
from mipforest.cli.progress import Progress
from mipforest.cli.solve import Job


@o.grouped
def explore(
    *,
    model: o.ModelName,
    model_options: o.ModelOptions,
    data: o.DataName,
    data_options: o.DataOptions,
    constraint_options: ConstraintOptions,
    solver_options: o.SolverOptions,
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
    refuse_unknown(model, data)
    with Progress(quiet=quiet) as progress:
        from mipforest.edits import EditSession
        from mipforest.explore.explorer import Explorer
        from mipforest.explore.server import ExploreServer

        source = data_options.source(data, model=model, seed=solver_options.seed)
        settings = solver_options.settings()
        job = Job.of(
            model,
            model_options,
            source,
            solver_options.solver,
            settings,
            constraints=constraint_options.read(),
        )
        if not job.formulation.gives.is_tree:
            raise CommandError(
                f"model {model} gives no tree that could be edited; 'mipforest models' lists those that do"
            )
        budget = settings.budget(progress.phase)
        loaded = job.load(budget)
        problem = job.build(loaded.train, budget, progress)
    session = EditSession(problem, job.solver, settings=job.settings)
    explorer = Explorer(session, loaded.test)
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
