"""Claims on cells: a lock of the operating system on one byte of a file for each cell that is being run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mipforest.campaigns.errors import CampaignError


class Claims:
    """Claims of this process on the cells of a results file.

    The system drops a lock when its process ends, however it ends: a killed process leaves nothing to wait for,
    and one that hangs, sleeps or holds up all its threads keeps its claim. Leases with a clock give neither.

    Parameters
    ----------
    path
        The lock file; made where it is missing, left where it is.

    Raises
    ------
    CampaignError
        If the system has no such locks.
    OSError
        If the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        try:
            import fcntl
        except ImportError as error:
            raise CampaignError(
                "campaigns need file locks of POSIX systems, which this system lacks; "
                "run them on Linux, macOS or in WSL"
            ) from error
        self._fcntl = fcntl
        # Closing any descriptor of this file would drop all locks of the process: it is opened once.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def close(self) -> None:
        """Drop all claims."""
        os.close(self._file)

    @contextmanager
    def held(self, number: int) -> Iterator[bool]:
        """Claim a cell for the ``with`` block; gives ``False`` where another process has claimed it.

        Parameters
        ----------
        number
            The cell's number in the results file, at least 0.
        """
        claimed = self._claim(number)
        try:
            yield claimed
        finally:
            if claimed:
                self._fcntl.lockf(self._file, self._fcntl.LOCK_UN, 1, number)

    def _claim(self, number: int) -> bool:
        try:
            self._fcntl.lockf(self._file, self._fcntl.LOCK_EX | self._fcntl.LOCK_NB, 1, number)
        except (BlockingIOError, PermissionError):  # POSIX allows either to say that another has it
            return False
        return True
