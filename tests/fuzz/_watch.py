"""What became of a call: an error of ours, a fault, or a time that is too long."""

from __future__ import annotations

import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any

from concur.errors import ConcurError

LONGEST = 10.0
"""Longest time of a call, s of the processor: a busy machine is no fault."""


class TookTooLong(BaseException):
    """Raised in a call that does not end."""


@dataclass(frozen=True)
class Fault:
    """A call that did not end as it should.

    Parameters
    ----------
    case : str
        What was called, and with what.
    kind : str
        What came, and where: the same for calls that meet one cause.
    trace : str
        The traceback.
    """

    case: str
    kind: str
    trace: str


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def watch(
    case: str,
    call: Callable[[], Any],
    longest: float = LONGEST,
    refused: Callable[[ConcurError], None] = lambda error: None,
) -> Fault | None:
    """Call, and say what is wrong with how it ended; None if nothing is.

    `refused` gets an error of ours, and raises an `AssertionError` if it lacks something.
    """
    began = time.process_time()
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), _limited(longest):
            warnings.simplefilter("ignore")
            call()
    except ConcurError as error:
        message = str(error)
        if not message.isprintable() or len(message) > 3000:
            return Fault(case, f"message of {len(message)} characters: {message[:200]!r}", "")
        try:
            refused(error)
        except AssertionError as lack:
            return Fault(case, str(lack), _trace())
    except TookTooLong:
        return Fault(case, f"more than {longest:g} s at {_place()}", traceback.format_exc())
    except Exception as error:
        return Fault(case, f"{type(error).__name__} at {_place()}: {error!s:.150}", _trace())
    taken = time.process_time() - began
    return Fault(case, f"{taken:.1f} s", "") if taken > longest else None


def _trace() -> str:
    return traceback.format_exc()[-3000:]


def _place() -> str:
    import sys

    frames = traceback.extract_tb(sys.exc_info()[2])
    ours = [f for f in frames if "/concur/" in f.filename or "/hil/" in f.filename]
    last = (ours or frames)[-1]
    return f"{'/'.join(last.filename.split('/')[-3:])}:{last.lineno} ({last.name})"
