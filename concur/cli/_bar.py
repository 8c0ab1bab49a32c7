"""Progress bar of the commands that prove."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

# Seconds before a progress bar is shown.
_PATIENCE = 2.0


def time_left(taken: float, part: float) -> str:
    """Estimate of the time left from the time taken (s) for a part of the work, in words."""
    if not 0.0 < part < 1.0:
        return ""
    rest = taken * (1.0 - part) / part
    return f", about {rest:.0f} s left" if rest < 120.0 else f", about {rest / 60:.0f} min left"


@contextmanager
def progress_bar(title: str, console: Console) -> Iterator[Callable[[float], None]]:
    """Show a progress bar for a longer calculation, with an estimate of the time left."""
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    work = bar.add_task(title, total=1.0)
    began = time.perf_counter()
    # A timer, because the first report may come late.
    timer = threading.Timer(_PATIENCE, bar.start)
    timer.daemon = True

    def report(part: float) -> None:
        taken = time.perf_counter() - began
        bar.update(work, completed=part, description=title + time_left(taken, part))

    # Only on a terminal: in a file a removed bar would leave empty lines.
    if console.is_terminal:
        timer.start()
    try:
        yield report
    finally:
        timer.cancel()
        if console.is_terminal:
            timer.join()
        if bar.live.is_started:
            bar.stop()
