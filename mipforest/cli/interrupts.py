"""Ctrl-C and SIGTERM while solving: stop, and keep what was found."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Whether the user has asked to stop.

    Solvers stop at ``KeyboardInterrupt``. Where one comes between two steps of a method, and is not noticed
    there, :attr:`asked` lets the next progress event stop the run.

    Attributes
    ----------
    asked
        Whether Ctrl-C or SIGTERM has come.
    """

    def __init__(self, on_request: Callable[[], None]) -> None:
        self.asked = False
        self._on_request = on_request
        self._deaf = False

    def hold(self) -> None:
        """From now on let nothing interrupt: results are being written, which takes a moment."""
        self._deaf = True

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if not self._deaf:
            self.asked = True
            self._on_request()
            raise KeyboardInterrupt


@contextmanager
def interruptible(on_request: Callable[[], None]) -> Iterator[Interruption]:
    """Let Ctrl-C and SIGTERM raise ``KeyboardInterrupt`` and be remembered, inside the ``with`` block.

    Parameters
    ----------
    on_request
        Called when one comes, inside the signal handler: it must do next to nothing.
    """
    interruption = Interruption(on_request)
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    # A process that was started to ignore them (nohup, a script's background job) goes on doing so.
    numbers = [
        number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) != signal.SIG_IGN
    ]
    before = {number: signal.signal(number, interruption._handle) for number in numbers}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
