"""Run one experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

from mipforest.campaigns.experiment_result import ExperimentResult
from mipforest.campaigns.experiments import Experiment
from mipforest.campaigns.suite import DataEntry
from mipforest.data import Dataset, load
from mipforest.data.files import SUFFIXES
from mipforest.errors import CampaignError
from mipforest.solvers.solution import Event, Status


@dataclass(frozen=True, eq=False)
class ExperimentData:
    """Samples of an experiment.

    Attributes
    ----------
    sha256
        Checksum of all of them, before classes were merged and test samples put apart.
    train, test
        Training samples, on which the scaling was fitted, and test samples or ``None``.
    """

    sha256: str
    train: Dataset
    test: Dataset | None


def data_path(entry: DataEntry, folder: Path | None) -> Path | None:
    """Return the file that holds the data of an entry; ``None`` for data that need none.

    Raises
    ------
    CampaignError
        If it is missing, or no folder was named.
    """
    if not entry.load.endswith(SUFFIXES):
        return None
    if folder is None:
        raise CampaignError(
            f"the suite reads the file {entry.load}: give the folder that holds it with --data DIR"
        )
    if not folder.is_dir():
        raise CampaignError(f"there is no data folder {folder}; --data DIR names the one with {entry.load}")
    path = folder / entry.load
    if not path.is_file():
        raise CampaignError(f"there is no file {entry.load} in the data folder {folder}")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise CampaignError(
            f"{path} leads out of the data folder {folder}; put the file itself there, or name its folder with --data"
        )
    return path


def load_experiment(experiment: Experiment, folder: Path | None) -> ExperimentData:
    """Load the data of an experiment, merge classes, and put test samples apart.

    Raises
    ------
    CampaignError
        If a file is missing.
    DataError
        If anything about the data is not as it must be.
    """
    entry, split = experiment.data, experiment.split
    whole = load(
        data_path(entry, folder) or entry.load,
        target=entry.target,
        seed=experiment.settings.seed,
        scaling=experiment.scaling,  # type: ignore[arg-type] # checked by the suite
        task=entry.task,
    )
    if split is None:
        return ExperimentData(whole.sha256, _merged(whole, entry), None)
    seed = experiment.settings.seed if split.seed is None else split.seed
    if split.stratify == "labels":
        train, test = whole.split(split.test_size, seed=seed, stratify=True)
        return ExperimentData(whole.sha256, _merged(train, entry), _merged(test, entry))
    train, test = _merged(whole, entry).split(
        split.test_size, seed=seed, stratify=split.stratify == "classes"
    )
    return ExperimentData(whole.sha256, train, test)


def _merged(data: Dataset, entry: DataEntry) -> Dataset:
    return data.binarise(entry.positive) if entry.positive else data


def solve_experiment(
    experiment: Experiment,
    folder: Path | None,
    *,
    check_data: Callable[[str], None],
    stopping: Callable[[], bool],
) -> ExperimentResult:
    """Load, build, solve and measure one experiment.

    Parameters
    ----------
    experiment, folder
        The experiment, and where files of data are.
    check_data
        Called with the checksum of the data; raises ``CampaignError`` to refuse them.
    stopping
        Asked while the solver runs whether to give the experiment up.

    Raises
    ------
    CampaignError
        If the data cannot be those of the campaign.
    KeyboardInterrupt
        If the experiment was given up, by Ctrl-C or by ``stopping``: what it has by then depends on the moment.
    Exception
        Whatever goes wrong with this experiment alone.
    """

    def on_progress(event: Event) -> bool:
        del event
        return stopping()

    began, began_cpu = perf_counter(), process_time()
    data = load_experiment(experiment, folder)
    check_data(data.sha256)
    result = (
        experiment.formulation()
        .build(data.train, experiment.depth, budget=experiment.settings.budget())
        .solve(
            experiment.solver,
            settings=experiment.settings,
            on_progress=on_progress,
        )
    )
    if result.solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return ExperimentResult.of(
        result,
        data.sha256,
        data.test,
        wall_seconds=perf_counter() - began,
        cpu_seconds=process_time() - began_cpu,
    )
