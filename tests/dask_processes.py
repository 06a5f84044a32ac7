"""A Dask scheduler and workers, each a process of its own on the loopback interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

#: Seconds for a process to come up on a machine under load.
PATIENCE = 60


class Cluster:
    """A scheduler, and the workers that were added; all end with the ``with`` block."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "scheduler.json"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Cluster:
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", self._file)
        return self

    def __exit__(self, *exception: object) -> None:
        self.end_workers()
        for process in self._processes:
            process.kill()
            process.wait()

    def end_workers(self) -> None:
        """Kill all workers, and wait until the scheduler has noticed."""
        from distributed import Client

        scheduler, *workers = self._processes
        for process in workers:
            process.kill()
            process.wait()
        self._processes = [scheduler]
        with Client(self.address, timeout=PATIENCE, set_as_default=False) as client:
            end = time.monotonic() + PATIENCE
            while client.scheduler_info()["workers"] and time.monotonic() < end:
                time.sleep(0.05)

    @property
    def address(self) -> str:
        """Address of the scheduler, once it is up."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                return str(json.loads(self._file.read_text())["address"])
            except (OSError, ValueError):
                time.sleep(0.1)
        raise TimeoutError("the scheduler does not come up")

    def add_worker(self, *options: object) -> subprocess.Popen[bytes]:
        """Start a worker without a nanny: killed, it stays dead."""
        once = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--local-directory", self._folder)
        return self._start("worker", self.address, *once, *options)

    def wait_for_workers(self, number: int) -> None:
        """Wait until so many workers are up."""
        from distributed import Client

        with Client(self.address, timeout=PATIENCE, set_as_default=False) as client:
            client.wait_for_workers(number, timeout=PATIENCE)

    def _start(self, *arguments: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *map(str, arguments), "--no-dashboard"]
        log = (self._folder / f"log-{len(self._processes)}").open("ab")
        process = subprocess.Popen(
            command,
            cwd=self._folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        self._processes.append(process)
        return process
