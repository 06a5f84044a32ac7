"""How Ctrl-C and SIGTERM stop a solve: what was found is kept; where nothing was, they leave at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from mipforest.solvers.worker import Worker
from mipforest.time_budget import TimeBudget


class Interruption:
    """Decides what Ctrl-C does in each phase of a command or a fit.

    Before there is anything to keep it raises ``KeyboardInterrupt``. While a model is prepared and solved it must not
    do so just anywhere: an exception between two steps of a solver would throw the incumbent away. It is raised only
    where a solver waits for it, and otherwise noted: the budget of the solve has run out then. A second one is always
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
        self._stop: Callable[[], None] = lambda: None
        self._phase = "before"

    def solving(self, budget: TimeBudget) -> None:
        """Note that from now on there will be a tree to keep, and whose budget to stop."""
        self._phase, self._stop = "solving", budget.stop

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
        self._stop()
        if again or self._phase == "before" or _solver_listens(frame):
            raise KeyboardInterrupt


def _solver_listens(frame: FrameType | None) -> bool:
    """Return whether the code that was interrupted waits for a solver in :class:`Worker`."""
    while frame is not None and frame.f_code is not Worker._wait.__code__:
        frame = frame.f_back
    return frame is not None


@contextmanager
def interruptible(on_request: Callable[[], None], *, own_handlers: bool = True) -> Iterator[Interruption]:
    """Handle Ctrl-C and SIGTERM inside the ``with`` block; see :class:`Interruption`.

    Nothing is handled outside of the main thread, where Python takes no signals.

    Parameters
    ----------
    on_request
        As for :class:`Interruption`.
    own_handlers
        Whether the program is ours. Else Ctrl-C alone is handled, and only where nobody else handles it.
    """
    interruption = Interruption(on_request)
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    if own_handlers:
        # A process that was started to ignore them (nohup, a background job of a script) goes on doing so.
        heard = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    else:
        heard = [n for n in (signal.SIGINT,) if signal.getsignal(n) is signal.default_int_handler]
    before = {number: signal.signal(number, interruption.handle) for number in heard}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
