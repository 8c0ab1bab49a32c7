"""Progress bar of the commands that prove."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

# Seconds before a progress bar is shown.
_PATIENCE = 2.0


@contextmanager
def progress_bar(title: str, console: Console) -> Iterator[Callable[[float], None]]:
    """Show a progress bar for a longer calculation."""
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    work = bar.add_task(title, total=1.0)
    began = time.perf_counter()

    def report(part: float) -> None:
        late = time.perf_counter() - began > _PATIENCE
        # Only on a terminal: in a file a removed bar would leave empty lines.
        if late and console.is_terminal and not bar.live.is_started:
            bar.start()
        bar.update(work, completed=part)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()
