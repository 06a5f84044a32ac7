"""What came out of a solve: on disk, as JSON, in words."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from typer import Exit

import mipforest
from mipforest.cli.errors import NO_ANSWER, SUCCESS, report_of
from mipforest.cli.output import print_json, print_note, print_text, terminal_width
from mipforest.cli.show import found_as_json, summary

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from mipforest.problem.result import Result
    from mipforest.runs import DataSource, LoadedData, RunError, RunFolder, Saved


class Request(Protocol):
    """What was asked for."""

    @property
    def source(self) -> DataSource:
        """Where the data come from."""

    def to_dict(self) -> dict[str, Any]:
        """Return the options as JSON takes them."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The outcome of a job.

    Attributes
    ----------
    result
        The content of ``result.json``.
    saved
        The tree with all it takes to predict, or ``None``.
    data
        What it was fitted on.
    tables
        Further files of the run folder: name and text.
    """

    result: dict[str, Any]
    saved: Saved | None
    data: LoadedData
    tables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, job: Request, data: LoadedData, result: Result) -> Outcome:
        """Collect what is worth keeping."""
        from mipforest.runs import saved_of

        found = result.to_dict(data.test)
        found["data"] |= {"target": data.train.target, "notes": list(data.train.notes)}
        if data.test is not None:
            found["test_data"] = {"name": data.test.name, "n": data.test.n, "sha256": data.test.sha256}
        found |= {
            "mipforest_version": mipforest.__version__,
            "options": job.to_dict(),
            "data_source": job.source.to_dict(),
        }
        saved = None if result.tree is None else saved_of(result.tree, data)
        # The events are by far the longest part: they stand at the end.
        found["events"] = found.pop("events")
        return cls(found, saved, data)

    @property
    def exit_code(self) -> int:
        """0 for a verified tree, else 3."""
        return SUCCESS if self.result["verified"] else NO_ANSWER

    def write(self, folder: RunFolder) -> None:
        """Write the run folder.

        Raises
        ------
        OSError
            If the disk is full, or anything else comes in between; nothing is left then.
        """
        # Whoever removed the folder during the solve has not removed what was found.
        folder.staging.mkdir(parents=True, exist_ok=True)
        self.write_files(folder.staging)
        folder.commit()

    def write_files(self, place: Path) -> None:
        """Write the files of a run into a folder; OSError if that is impossible."""
        from mipforest.runs import SavedTree
        from mipforest.runs.digests import with_digests
        from mipforest.runs.folder import CARD, CARD_PICTURE, LOG, PICTURE, RESULT, TREE
        from mipforest.runs.text_files import json_text

        (place / LOG).touch()
        of_tree = isinstance(self.saved, SavedTree)
        found = {} if self.saved is None else {(TREE if of_tree else CARD): self.saved.to_dict()}
        texts = {RESULT: json_text(with_digests(self.result, found)), **self.tables}
        for name, text in (texts | {name: json_text(file) for name, file in found.items()}).items():
            (place / name).write_text(text, encoding="utf-8")
        if self.saved is not None:
            from mipforest.trees import save_figure

            drawn = self.saved.fitted.plot(self.data.train.X_raw, self.data.train.labels)
            save_figure(drawn, place / (PICTURE if of_tree else CARD_PICTURE))

    def as_json(self, folder: RunFolder | None) -> dict[str, Any]:
        """Return everything in one object, the tree included."""
        return self.result | {
            **found_as_json(self.saved),
            "out": None if folder is None else str(folder.path),
            "exit_code": self.exit_code,
        }

    def print_summary(self, out: Path | None, *, failed: bool) -> None:
        """Print the outcome in words, and what can be done next.

        Parameters
        ----------
        out
            The run folder as the user named it, or ``None``.
        failed
            Whether it could not be written: the error will say so.
        """
        print_text(summary(self.result, self.saved, terminal_width()))
        if failed:
            return
        print_text()
        if out is None:
            print_text(
                "Nothing was written; --out DIR keeps the result, the tree, a picture and the solver's log."
            )
            return
        run = shlex.quote(str(out))
        print_text(f"Written to {out}: {', '.join(sorted(entry.name for entry in out.iterdir()))}")
        if self.saved is None:
            return
        name = self.saved.fitted.noun.split()[-1]
        print_text(f"Next: mipforest predict {run} NEW.csv    mipforest plot {run} -o {name}.png")
        stopped = self.result["status"] in ("time_limit", "interrupted")
        if stopped and "tuning" not in self.result:  # a tuning takes no --start
            print_text(
                f"To go on from this tree: the same command with --start {run}, more time and another --out."
            )


def run_folder(out: Path | None, *, replace: bool) -> AbstractContextManager[RunFolder | None]:
    """Refuse a folder that cannot be written before any work is done."""
    from mipforest.runs import RunFolder

    return nullcontext() if out is None else RunFolder(out.expanduser(), replace=replace)


def write_outcome(outcome: Outcome, folder: RunFolder | None) -> OSError | RunError | None:
    """Write the run folder; a failure must not keep the user from seeing what was found."""
    from mipforest.runs import RunError

    try:
        if folder is not None:
            outcome.write(folder)
    except RunError as error:
        return error
    except OSError as error:
        error.filename = folder and str(folder.path)
        return error
    return None


def end(
    outcome: Outcome,
    folder: RunFolder | None,
    failure: OSError | RunError | None,
    *,
    out: Path | None,
    as_json: bool,
    quiet: bool,
    more: Mapping[str, Any] | None = None,
) -> NoReturn:
    """Print the outcome and end the command with its exit code, or with that of a failure to write it.

    Parameters
    ----------
    outcome, folder, failure
        What came out, the run folder or ``None``, and what :func:`write_outcome` gave.
    out
        The run folder as the user named it, or ``None``.
    as_json, quiet
        How to print.
    more
        Further entries of the JSON object.
    """
    if failure is None:
        told, code = {}, outcome.exit_code
    else:
        told, code = report_of(failure).to_dict(), report_of(failure).exit_code
    try:
        if as_json:
            print_json(outcome.as_json(folder if failure is None else None) | dict(more or {}) | told)
        elif not quiet:
            outcome.print_summary(out, failed=failure is not None)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        if folder is None and failure is None:  # then it stands nowhere else
            _keep_elsewhere(outcome)
        raise
    if failure is not None and not as_json:
        _keep_elsewhere(outcome)
        raise failure
    raise Exit(code)


def _keep_elsewhere(outcome: Outcome) -> None:
    """Keep what cannot be written where it belongs: in a temporary folder, or on standard output."""
    from mipforest.runs.text_files import json_text

    place = None
    try:
        place = Path(tempfile.mkdtemp(prefix="mipforest-run-"))
        outcome.write_files(place)
    except OSError:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)
        if outcome.saved is not None:
            print_text(f"The {outcome.saved.fitted.noun}, as its file would have been:")
            print_text(json_text(outcome.saved.to_dict()))
        return
    print_note(f"the run could not be written where it belongs; its files are in {place}")
