"""Ctrl-C and SIGTERM: stop a solve and keep what was found, or leave at once where nothing was."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Decides what Ctrl-C does in each phase of a command.

    Before the solve it raises ``KeyboardInterrupt``. During the solve it must not do so just anywhere: an
    exception between two steps of a solver would throw the incumbent away. It is raised only where a solver
    waits for it, and otherwise noted: the next progress event then stops the solver. A second one is always
    raised. While results are written, which takes a moment, it does nothing.

    Parameters
    ----------
    on_request
        Called when one comes, inside the signal handler: it must do next to nothing.

    Attributes
    ----------
    asked
        Whether Ctrl-C or SIGTERM has come.
    """

    def __init__(self, on_request: Callable[[], None]) -> None:
        self.asked = False
        self._on_request = on_request
        self._phase = "before"

    def solving(self) -> None:
        """Note that from now on there may be an incumbent to keep."""
        self._phase = "solving"

    def writing(self) -> None:
        """Let nothing interrupt from now on."""
        self._phase = "writing"

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal; a handler as :func:`signal.signal` wants it."""
        del number
        if self._phase == "writing":
            return
        again, self.asked = self.asked, True
        self._on_request()
        if again or self._phase == "before" or _solver_listens(frame):
            raise KeyboardInterrupt


def _solver_listens(frame: FrameType | None) -> bool:
    """Return whether the code that was interrupted waits for a solver in :class:`Worker`."""
    from mipforest.solvers.worker import Worker

    while frame is not None and frame.f_code is not Worker._wait.__code__:
        frame = frame.f_back
    return frame is not None


@contextmanager
def interruptible(on_request: Callable[[], None]) -> Iterator[Interruption]:
    """Handle Ctrl-C and SIGTERM inside the ``with`` block; see :class:`Interruption`."""
    interruption = Interruption(on_request)
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    # A process that was started to ignore them (nohup, a background job of a script) goes on doing so.
    heard = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    before = {number: signal.signal(number, interruption.handle) for number in heard}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
