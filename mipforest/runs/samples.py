"""The samples of a finished run, loaded again."""

from __future__ import annotations

from mipforest.data import DataError
from mipforest.runs.data_source import DataSource, LoadedData
from mipforest.runs.run import Run


def samples_of(run: Run) -> tuple[LoadedData | None, str]:
    """Load the samples of a run again, or say why that is not possible.

    Returns
    -------
    data
        The samples; ``None`` if they cannot be loaded or the training samples are not those of the run.
    reason
        Why there are none; empty if there are.
    """
    try:
        data = DataSource.from_dict(run.result["data_source"]).load()
        if data.train.sha256 == run.result["data"]["sha256"]:
            return data, ""
        return None, f"{data.train.name} has changed since the run"
    except (KeyError, TypeError) as error:
        return None, f"result.json does not tell where they are ({error})"
    except (DataError, OSError) as error:
        return None, f"they cannot be loaded ({error})"
