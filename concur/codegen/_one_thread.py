"""Buffers that one thread at a time may use: a second one gets an error, not another's numbers."""

from __future__ import annotations

import threading
from threading import get_ident

from concur.errors import ConcurError

_LOCK = threading.Lock()


class OneThread:
    """Base of objects with buffers: they belong to the first thread that uses them.

    Results are views of the buffers, so that even calls that do not overlap would change what
    another thread holds. An object is free again when its thread calls `release`, or has ended.
    """

    _thread = 0  # identifier of the thread; a thread that runs has another one than zero

    def _claim(self, where: str) -> None:
        """Take the object for this thread, or raise an error if it belongs to another one."""
        threading.current_thread()  # lists threads that Python has not started
        with _LOCK:
            own, me = self._thread, get_ident()
            if own != me and any(thread.ident == own for thread in threading.enumerate()):
                raise ConcurError(
                    where,
                    expected="calls from one thread, whose numbers are in the buffers",
                    came=f"thread `{threading.current_thread().name}`, beside that of the first "
                    "call",
                    cure="Make one for each thread, such as `servo.compile()`; or call `release()` "
                    "in its thread before another one takes it over.",
                )
            self._thread = me

    def _unclaim(self, where: str) -> None:
        self._claim(where)
        self._thread = 0
