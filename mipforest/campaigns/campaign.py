"""Campaigns: which experiments of which suites are to be run, and where their results are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import chain
from operator import add
from pathlib import Path

from mipforest.campaigns.experiments import ExperimentLocks, PlannedExperiment, plan
from mipforest.campaigns.store import Store
from mipforest.campaigns.suite import Suite, included_suites, read_suite
from mipforest.errors import CampaignError, did_you_mean

#: By which names experiments are chosen.
_KINDS: tuple[Callable[[PlannedExperiment], str], ...] = (
    lambda entry: entry.experiment.model_label,
    lambda entry: entry.experiment.data_label,
    lambda entry: entry.experiment.solver,
    lambda entry: entry.setting,
)


@dataclass(frozen=True)
class Campaign:
    """A suite, its results file, and which of its experiments to run.

    Attributes
    ----------
    suite_path, results
        The files.
    folder
        Where files of data are, or ``None``.
    only
        Labels of models, data or solvers, or whole settings, to run; all if empty. Of several labels of one
        kind any counts; of several kinds all must fit.
    time_limit
        Seconds that count instead of the suite's own limits.
    included
        As ``only``, of the suite that includes this one; both must fit.
    """

    suite_path: Path
    results: Path
    folder: Path | None = None
    only: tuple[str, ...] = ()
    time_limit: float | None = None
    included: tuple[str, ...] = ()

    def read(self) -> tuple[Suite, tuple[PlannedExperiment, ...], tuple[PlannedExperiment, ...]]:
        """Read the suite; return it, all experiments, and the chosen ones.

        Raises
        ------
        CampaignError
            If the suite is malformed, or there is nothing of a chosen name.
        UnknownFormulation, SolverUnavailable
            If a model or solver is unknown or missing.
        """
        suite = read_suite(self.suite_path)
        planned = plan(suite, time_limit=self.time_limit)
        return suite, planned, _chosen(_chosen(planned, self.included), self.only)

    def numbers(self, store: Store, chosen: Collection[PlannedExperiment]) -> tuple[int, ...]:
        """Return the number of each chosen experiment in the results.

        Raises
        ------
        CampaignError
            If the results do not have one: the suite is another than the one that was registered.
        """
        known = store.numbers({entry.experiment.key for entry in chosen})
        numbers = tuple(known[entry.experiment.key] for entry in chosen if entry.experiment.key in known)
        if len(numbers) < len(chosen):
            raise CampaignError(f"{self.suite_path} changed while it was read; run it again")
        return numbers

    def locks(self) -> ExperimentLocks:
        """Return the locks of this process on the experiments."""
        return ExperimentLocks(self.results.with_name(f"{self.results.name}.lock"))

    def outlook(self) -> Outlook:
        """Return how much of the campaign is left; nothing is run or written.

        Raises
        ------
        CampaignError, UnknownFormulation, SolverUnavailable
            As for :meth:`read`, or if the results file cannot be used.
        """
        _, _, chosen = self.read()
        waiting = chosen
        if self.results.exists():
            with Store(self.results) as store:
                known = store.numbers({entry.experiment.key for entry in chosen})
                waiting = tuple(
                    entry
                    for entry in chosen
                    if entry.experiment.key not in known or not store.is_finished(known[entry.experiment.key])
                )
        limits = [
            None if entry.experiment.tune else entry.experiment.settings.time_limit for entry in waiting
        ]
        limited = [limit for limit in limits if limit is not None]
        return Outlook(len(chosen), len(waiting), sum(limited), len(limits) - len(limited))


@dataclass(frozen=True)
class Outlook:
    """How much of a campaign is left.

    Attributes
    ----------
    cells, waiting
        Numbers of the chosen experiments, and of those without a result.
    seconds
        Sum of the time limits of the waiting ones.
    without_limit
        How many of the waiting ones are not in that sum: they have no time limit, or are tuned, where the limit counts
        for each of many searches.
    """

    cells: int
    waiting: int
    seconds: float
    without_limit: int

    def __add__(self, other: Outlook) -> Outlook:
        """Add up two campaigns."""
        return Outlook(*map(add, astuple(self), astuple(other)))


def _chosen(planned: tuple[PlannedExperiment, ...], only: Collection[str]) -> tuple[PlannedExperiment, ...]:
    known = set(chain(*_names(planned)))
    for name in only:
        if name not in known:
            raise CampaignError(
                f"nothing in the suite is called {name!r:.60}{did_you_mean(name, known)}; "
                "--only takes labels of models, data or solvers"
            )
    for kind in _KINDS:
        wanted = {name for name in only if name in {kind(entry) for entry in planned}}
        planned = tuple(entry for entry in planned if not wanted or kind(entry) in wanted)
    return planned


def _names(planned: Collection[PlannedExperiment]) -> list[set[str]]:
    """Return the names by which experiments can be chosen, a set for each kind."""
    return [{kind(entry) for entry in planned} for kind in _KINDS]


# ---------------------------------------------------------------------- several suites


def campaigns(
    suites: Sequence[Path],
    results: Path | None = None,
    *,
    folder: Path | None = None,
    only: Sequence[str] = (),
    time_limit: float | None = None,
) -> tuple[Campaign, ...]:
    """Return the campaigns of suites, and of those that they include, in order.

    A suite has the same results file whether it is named or included, so its experiments are run once.

    Parameters
    ----------
    suites
        The files.
    results
        The results file if there is one suite, which includes no others. Else the folder of the results files, each
        with the name of its suite's file and ``.sqlite``. ``None``: the current folder.
    folder, time_limit
        As for :class:`Campaign`.
    only
        As for :class:`Campaign`, and of several suites their names, too. Suites without such experiments are left out.

    Raises
    ------
    CampaignError
        If a suite is malformed, two would have the same results file, or no suite has a chosen name.
    UnknownFormulation, SolverUnavailable
        If a model or solver is unknown or missing.
    """
    entries = [entry for path in suites for entry in included_suites(path)]
    if [entry.path for entry in entries] == list(suites) and len(entries) == 1:
        path = suites[0]
        return (Campaign(path, results or Path(path.stem + ".sqlite"), folder, tuple(only), time_limit),)
    if results is not None and results.is_file():
        raise CampaignError(f"{results} is a file; give --results a folder, as there are several suites")
    found = [
        Campaign(
            entry.path,
            (results or Path()) / f"{entry.path.stem}.sqlite",
            folder,
            (),
            entry.time_limit if time_limit is None else time_limit,
            entry.only,
        )
        for entry in entries
    ]
    files = [campaign.results.name for campaign in found]
    if len(set(files)) < len(files):
        raise CampaignError(
            f"two suites would have the same results file: {', '.join(files)}; name each once, or rename one"
        )
    return _with_names(found, only) if only else tuple(found)


def _with_names(found: Sequence[Campaign], only: Sequence[str]) -> tuple[Campaign, ...]:
    """Keep the campaigns that have experiments of these names; each is asked for the names that it has.

    A suite that lacks a name is kept if it has another of the same kind: any of them counts.
    """
    names = []
    for campaign in found:
        suite, _, chosen = campaign.read()
        names.append([{suite.name}, *_names(chosen)])
    everywhere = [set().union(*of_kind) for of_kind in zip(*names, strict=True)]
    known = set().union(*everywhere)
    for name in only:
        if name not in known:
            raise CampaignError(
                f"nothing in the suites is called {name!r:.60}{did_you_mean(name, known)}; "
                "--only takes labels of models, data or solvers, and names of suites"
            )
    kept = []
    for campaign, own in zip(found, names, strict=True):
        chosen_by = [bool(of_kind.intersection(only)) for of_kind in own]
        lacking = [name for name in only if not any(name in of_kind for of_kind in own)]
        if all(
            any(by and name in of_kind for by, of_kind in zip(chosen_by, everywhere, strict=True))
            for name in lacking
        ):
            labels = tuple(name for name in only if any(name in of_kind for of_kind in own[1:]))
            kept.append(replace(campaign, only=labels))
    if not kept:
        raise CampaignError(
            f"no suite has experiments of all of {', '.join(only)}; give fewer names to --only"
        )
    return tuple(kept)
