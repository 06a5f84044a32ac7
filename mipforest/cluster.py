"""A Dask cluster that is there already, for fits of a tuning and starts of a search; imported where it is used."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError, ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from mipforest.errors import ClusterError

#: Seconds to wait for the scheduler, and then for its first worker.
TIMEOUT = 10.0


class DiedWithTask(ClusterError):
    """Workers died with one task: the others may go on."""


def connected(address: str, timeout: float = TIMEOUT) -> Any:
    """Connect to a Dask cluster that is there already; return the client.

    Parameters
    ----------
    address
        Address of the scheduler, such as ``tcp://127.0.0.1:8786``.
    timeout
        Seconds to wait for the scheduler, and then for its first worker.

    Raises
    ------
    ClusterError
        If Dask is not installed, there is no scheduler at the address, it has no workers, or a worker lacks
        this version of mipforest.
    """
    if find_spec("distributed") is None:
        raise ClusterError("Dask is not installed; run: pip install 'mipforest[dask]'")
    from distributed import Client

    try:
        # In a thread: a notebook runs a loop in this one.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _greet(address, timeout)).result()
        client = Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:  # nothing answers there; the address is none
        reason = f" ({error})" if str(error) else ""
        raise ClusterError(
            f"no Dask scheduler answers at {address} within {timeout:g} s{reason}; start one with "
            "'dask scheduler', and workers with 'dask worker ADDRESS'"
        ) from error
    try:
        _check_workers(client, address, timeout)
    except BaseException:
        client.close()
        raise
    return client


def explained(error: Exception, task: str) -> Exception:
    """Say what Dask's own errors mean; any other is given back.

    Parameters
    ----------
    error
        What a task raised.
    task
        What is done there, in a word.
    """
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return DiedWithTask(
            f"a {task} was given up after several workers had died with it ({error}); give the workers more "
            "memory, or take a smaller model"
        )
    if isinstance(error, CancelledError):
        return ClusterError("the Dask scheduler has gone, and with it what was under way; start it anew")
    if isinstance(error, ModuleNotFoundError):
        return ClusterError(
            f"a Dask worker has not what the {task}s need ({error}); install it where the workers run"
        )
    return error


async def _greet(address: str, timeout: float) -> None:
    """Connect and leave again.

    A ``Client`` leaves a thread behind where nothing answers, and waits for ever where something else does.
    """
    from distributed.comm import connect

    comm = await asyncio.wait_for(connect(address, timeout), timeout)
    await comm.close()


def _check_workers(client: Any, address: str, timeout: float) -> None:
    """Refuse a cluster whose workers cannot do what is done here."""
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError:
        raise ClusterError(
            f"the Dask scheduler at {address} has had no worker for {timeout:g} s; start some with "
            f"'dask worker {address}'"
        ) from None
    here = version("mipforest")
    for worker, there in client.run(version, "mipforest", on_error="return").items():
        if isinstance(there, Exception):
            raise ClusterError(
                f"the Dask worker {worker} has no mipforest; install version {here} where the workers run"
            )
        if there != here:
            raise ClusterError(
                f"the Dask worker {worker} has mipforest {there}, this is {here}; install the same version"
            )
