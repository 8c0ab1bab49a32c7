"""A progress bar for long work, or a callback, or silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def track(
    progress: bool | Callable[[float], Any],
    title: str,
    total: float,
    done: int = 0,
    unit: str = "",
) -> Iterator[Callable[[float], Any]]:
    """Report the number of steps done: to a bar, to a callable as a fraction, or not at all.

    `done` steps are done before; with a unit the bar shows the rate.
    """
    if callable(progress):
        yield lambda done: progress(done / total)
    elif progress is not True:
        yield lambda done: None
    else:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            ProgressColumn,
            Task,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.text import Text

        class Rate(ProgressColumn):
            """Steps per second."""

            def render(self, task: Task) -> Text:
                speed = task.finished_speed or task.speed
                return Text("" if speed is None else f"{speed:.3g} {unit}")

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            *([Rate()] if unit else []),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(title, total=total, completed=done)
            yield lambda done: bar.update(task, completed=done)


@contextmanager
def busy(progress: bool | Callable[[float], Any], title: str) -> Iterator[None]:
    """Show that work of unknown length is under way."""
    if progress is True:
        from rich.console import Console

        with Console(stderr=True).status(title):
            yield
        return
    if callable(progress):
        progress(0.0)
    yield
