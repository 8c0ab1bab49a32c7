"""`concur certify`: how fast the errors of a task's servo surely decay, and from where."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from concur.certify import (
    Certificate,
    OperatingCertificate,
    Status,
    certify,
    operating_bounds,
    recheck,
)
from concur.certify._certificate import ChannelCertificate, Method
from concur.cli._decay import Decay, simulate_decay
from concur.control import Servo
from concur.errors import ConcurError, UnknownNameError
from concur.formats import Task, load_task
from concur.formats._toml import located
from concur.plotting.certificate import decay_figure, rate_figure
from concur.plotting.files import make_directory, writing
from concur.plotting.style import DPI

METHODS = ("tight", "thesis")
# Angles of the figure of rates, in degrees, beside the one asked for.
_ANGLES = (15.0, 30.0, 60.0, 90.0, 120.0, 150.0, 179.0)
# Boxes for each of them: a picture is not worth a long search.
_BUDGET = 1_000
# Seconds of work before a bar is shown.
_PATIENCE = 2.0

_MARKS = {
    Status.PROVED: "[green]proved[/]",
    Status.REFUTED: "[bold red]refuted[/]",
    Status.UNDECIDED: "[yellow]undecided[/]",
}


@dataclass(frozen=True, eq=False)
class CertifyResult:
    """A certificate of a task's servo, and what was made of it.

    Parameters
    ----------
    task : Task
        The task.
    certificate : Certificate
        The certificate.
    rechecked : Status
        Answer of the independent verification of the stored proof.
    start : tuple of numpy.ndarray
        Pose and velocity error at the task's start, shape (size,).
    seconds : float
        Time that the certificate took.
    decay : Decay or None
        Motions that were simulated; None unless proved.
    notes : tuple of str
        Where the task's loop is not the one that is certified.
    files : tuple of pathlib.Path
        What was written.
    operating : OperatingCertificate or None
        What is proved in the task's operating box; None without one.
    """

    task: Task
    certificate: Certificate
    rechecked: Status
    start: tuple[np.ndarray, np.ndarray]
    seconds: float
    decay: Decay | None
    notes: tuple[str, ...]
    files: tuple[Path, ...]
    operating: OperatingCertificate | None = None

    @property
    def decays(self) -> bool:
        """Whether the decay is proved, and its file was confirmed."""
        return self.certificate.status is Status.PROVED and self.rechecked is Status.PROVED

    @property
    def proved(self) -> bool:
        """Whether all that was asked for is proved."""
        box = self.operating
        return self.decays and (box is None or box.status is Status.PROVED)

    @property
    def covered(self) -> bool:
        """Whether the certificate covers the task's start."""
        return self.certificate.contains(*self.start)

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON.

        Returns
        -------
        dict
            Status, rates, region, channels, start, verification and files; SI units. What does
            not exist is null.
        """
        found = self.certificate
        x, ve = self.start
        return {
            "task": self.task.name,
            "status": found.status.name,
            "proved": self.proved,
            "recheck": self.rechecked.name,
            "method": found.method,
            "angle": found.angle,
            "distance": found.distance,
            "rate": found.rate,
            "true_rate": _finite(found.true_rate),
            "overshoot": _finite(found.overshoot),
            "boxes": found.boxes,
            "seconds": self.seconds,
            "channels": [_channel_dict(part, _names(self.task)) for part in found.parts],
            "against": None if found.counterexample is None else str(found.counterexample),
            "start": {
                "x": x.tolist(),
                "ve": ve.tolist(),
                "covered": self.covered,
                "norm": _finite(found.norm(x, ve)),
            },
            "largest_share_of_bound": None if self.decay is None else self.decay.share(found.rate),
            "operating": None if self.operating is None else _operating_dict(self.operating),
            "notes": list(self.notes),
            "files": [str(path) for path in self.files],
        }


def certify_task(
    path: Path,
    folder: Path,
    angle: float,
    distance: float | None,
    method: str,
    console: Console,
) -> CertifyResult:
    """Certify the servo of a task and write what was found.

    Parameters
    ----------
    path : pathlib.Path
        Task file.
    folder : pathlib.Path
        Where the results go; made if it is missing.
    angle : float
        Rotation error that must stay in reach, degrees.
    distance : float or None
        Position error that must stay in reach where rotations act on it, m.
    method : str
        "tight" or "thesis".
    console : rich.console.Console
        For tables and progress.

    Returns
    -------
    CertifyResult
        The certificate, its verification and the files.

    Raises
    ------
    ConcurError
        If an option cannot be met, the task cannot be read or built, or the extra `certify` is
        missing.
    """
    _check_options(angle, distance, method)
    task = load_task(path)
    servo = task.servo()
    sample = task.reference(0.0)
    x, ve = servo.error(task.q0, task.shape_velocities(servo), sample)
    start = (np.asarray(x, dtype=float), np.asarray(ve, dtype=float))
    console.print(f"[bold]{escape(task.name)}[/]: {escape(task.robot.name)}", highlight=False)
    console.print(escape(f"{servo.size} outputs: {', '.join(o.name for o in servo.outputs)}"))

    radians = math.radians(angle)
    began = time.perf_counter()
    with _bar("certifying", console) as report:
        found = certify(servo, radians, distance, cast(Method, method), progress=report)
    seconds = time.perf_counter() - began
    make_directory(folder)
    proof = folder / "proof.json"
    with writing(proof):
        found.save(proof)
    rechecked = recheck(proof)
    figures, decay = _figures(found, start, console)
    files = [proof]
    for name, figure in figures.items():
        target = folder / f"{name}.png"
        with writing(target):
            figure.savefig(target, dpi=DPI)
        files.append(target)
    operating = _operating(task, servo, console)
    if operating is not None:
        target = folder / "operating.json"
        with writing(target):
            operating.save(target)
        files.append(target)
    notes = _differences(task, servo)
    result = CertifyResult(
        task, found, rechecked, start, seconds, decay, notes, tuple(files), operating
    )  # fmt: skip
    _show(result, console)
    return result


def _operating(task: Task, servo: Servo, console: Console) -> OperatingCertificate | None:
    """Bound margin and torque in the task's operating box, if it has one."""
    if task.operating is None:
        return None
    with _bar("operating box", console) as report, located(task.path, "[operating]"):
        return operating_bounds(servo.unmeasured, **task.operating, progress=report)


def _check_options(angle: float, distance: float | None, method: str) -> None:
    if not 0.0 < angle <= 180.0:
        raise ConcurError(
            "option `--angle`",
            expected="degrees above 0 and at most 180",
            came=f"{angle:g}",
            cure="Give the rotation error that must stay in reach, such as --angle 90.",
        )
    if distance is not None and not 0.0 < distance < math.inf:
        raise ConcurError(
            "option `--distance`",
            expected="metres above 0",
            came=f"{distance:g}",
            cure="Leave it out to let the gains decide.",
        )
    if method not in METHODS:
        raise UnknownNameError(
            "option `--method`",
            expected=" or ".join(METHODS),
            came=repr(method),
            cure="Leave it out for the tighter one.",
        )


@contextmanager
def _bar(title: str, console: Console) -> Iterator[Callable[[float], None]]:
    """Show a bar for what takes longer than a moment."""
    bar = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
        console=console, transient=True,
    )  # fmt: skip
    work = bar.add_task(title, total=1.0)
    began = time.perf_counter()

    def report(part: float) -> None:
        late = time.perf_counter() - began > _PATIENCE
        # In a file a bar that vanishes would leave empty lines.
        if late and console.is_terminal and not bar.live.is_started:
            bar.start()
        bar.update(work, completed=part)

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()


def _figures(
    found: Certificate, start: tuple[np.ndarray, np.ndarray], console: Console
) -> tuple[dict[str, Figure], Decay | None]:
    """Draw what there is to draw, with the motions that were simulated for it."""
    figures: dict[str, Figure] = {}
    decay = None
    if found.status is Status.PROVED:
        decay = simulate_decay(found, start)
        figures["decay"] = decay_figure(found, decay)
    # Without rotations the angle has no meaning, and without sound gains there is no rate.
    if any(part.angle is not None for part in found.parts):
        with _bar("rates over the angle", console) as report:
            figures["rates"] = rate_figure(_sweeps(found, report), found)
    return figures, decay


def _sweeps(found: Certificate, report: Callable[[float], None]) -> dict[str, list[Certificate]]:
    angles = [a for a in map(math.radians, _ANGLES) if not math.isclose(a, found.angle)]
    # The theorem stands beside for comparison.
    methods: dict[Method, None] = {found.method: None, "thesis": None}
    sweeps: dict[str, list[Certificate]] = {}
    done = 0
    for method in methods:
        sweeps[method] = [found] if method == found.method else []
        for angle in angles if method == found.method else sorted([*angles, found.angle]):
            sweeps[method].append(
                certify(found.dynamics, angle, found.distance, method, budget=_BUDGET)
            )
            done += 1
            report(min(1.0, done / (len(methods) * (len(angles) + 1))))
        sweeps[method].sort(key=lambda one: one.angle)
    return sweeps


def _differences(task: Task, servo: Servo) -> tuple[str, ...]:
    """Where the loop of the task is not that of the error dynamics."""
    notes = []
    if task.hold is not None:
        notes.append(f"the task holds its torque for {task.hold:g} s; certified is continuous")
    if task.plant is not None:
        notes.append("the task's plant differs from the servo's model; certified is the model")
    if task.plant_momentum is not None and not servo.measured:
        notes.append("the plant's momentum is not the one that the servo assumes")
    if servo.torque_limits is not None:
        notes.append("the certificate holds as long as no torque reaches its limit")
    if servo.damped_below is not None:
        notes.append("the certificate holds as long as nothing is damped near singularities")
    if servo.measured and task.operating is not None:
        notes.append("the operating box is about the law with the momentum that the task states")
    return tuple(notes)


def _show(result: CertifyResult, console: Console) -> None:
    found = result.certificate
    console.print(_table(result))
    for part in found.parts:
        if part.status is not Status.PROVED:
            console.print(escape(part.reason), highlight=False)
    if found.counterexample is not None:
        console.print(escape(str(found.counterexample)), highlight=False)
    if found.status is Status.PROVED:
        inside = (
            "[green]inside[/] the certified region"
            if result.covered
            else "[bold yellow]outside[/] the certified region: the certificate says nothing about "
            "this start. A larger --angle covers more"
        )
        console.print(f"the task's start is {inside}", highlight=False)
    if result.operating is not None:
        _show_operating(result.operating, console)
    for note in result.notes:
        console.print(f"[bold yellow]note[/]: {escape(note)}", highlight=False)
    proof = result.files[0]
    again = "confirmed" if result.rechecked is Status.PROVED else result.rechecked.name.lower()
    console.print(
        escape(f"{proof}, verified anew by independent arithmetic: {again}"), highlight=False
    )
    verdict = "[bold green]proved[/]" if result.proved else f"[bold red]{_word(result)}[/]"
    listed = escape(", ".join(str(path) for path in result.files))
    console.print(f"{verdict}: {listed}", highlight=False)


def _word(result: CertifyResult) -> str:
    status = result.certificate.status
    if result.decays and result.operating is not None:
        return f"operating box {result.operating.status.name.lower()}"
    return "not confirmed" if status is Status.PROVED else status.name.lower()


def _show_operating(found: OperatingCertificate, console: Console) -> None:
    table = Table(title="Operating box", title_justify="left")
    table.add_column("what")
    table.add_column("status")
    for name in ("proved", "limits"):
        table.add_column(name, justify="right")
    margin = "" if found.margin is None else f"at least {found.margin:.4g}"
    table.add_row(
        "margin of the decoupling matrix",
        _MARKS[found.status],
        margin,
        f"above {found.least:.3g}",
    )
    for i, name in enumerate(found.names):
        limit = "" if found.limits is None else _pair(*found.limits[i])
        bounds = f"{_pair(found.lower[i], found.upper[i])} {found.units[i]}"
        table.add_row(escape(name), "", bounds, limit)
    console.print(table)
    if found.status is not Status.PROVED:
        console.print(escape(f"operating box: {found.reason}"), highlight=False)


def _pair(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}"


def _operating_dict(found: OperatingCertificate) -> dict[str, Any]:
    return {
        "status": found.status.name,
        "reason": found.reason,
        "margin": found.margin,
        "margin_found": _finite(found.margin_found),
        "least": found.least,
        "controls": list(found.names),
        "lower": [_finite(value) for value in found.lower],
        "upper": [_finite(value) for value in found.upper],
        "boxes": len(found.boxes),
        "left": len(found.left),
    }


def _table(result: CertifyResult) -> Table:
    found = result.certificate
    title = f"Certificate, method {found.method}, angle {math.degrees(found.angle):.4g} deg"
    table = Table(title=title, title_justify="left")
    table.add_column("channel")
    table.add_column("status")
    for name in ("rate [1/s]", "of the true rate", "overshoot", "boxes", "time [s]"):
        table.add_column(name, justify="right")
    names = _names(result.task)
    for part in found.parts:
        table.add_row(
            escape(", ".join(names[i] for i in part.channel.index)),
            _MARKS[part.status],
            *_numbers(part.rate, part.true_rate, _overshoot(part), len(part.boxes)),
            "",
        )
    table.add_section()
    numbers = _numbers(found.rate, found.true_rate, found.overshoot, found.boxes)
    taken = f"{result.seconds:.2f}"
    table.add_row("whole loop", _MARKS[found.status], *numbers, taken)
    return table


def _names(task: Task) -> list[str]:
    """Names of the components of the error, with their outputs."""
    return [f"{output.name}.{name}" for output in task.outputs for name in output.coordinate_names]


def _numbers(rate: float, most: float, overshoot: float, boxes: int) -> list[str]:
    share = f"{rate / most:.1%}" if most > 0.0 else ""
    shown = f"{overshoot:.4g}" if math.isfinite(overshoot) else ""
    return [f"{rate:.4g}", share, shown, str(boxes)]


def _overshoot(part: ChannelCertificate) -> float:
    return math.nan if part.P is None else math.sqrt(part.upper / part.lower)


def _channel_dict(part: ChannelCertificate, names: list[str]) -> dict[str, Any]:
    return {
        "components": part.channel.index.tolist(),
        "names": [names[i] for i in part.channel.index],
        "kind": part.channel.kind,
        "status": part.status.name,
        "reason": part.reason,
        "rate": part.rate,
        "true_rate": _finite(part.true_rate),
        "overshoot": _finite(_overshoot(part)),
        "angle": part.angle,
        "distance": part.distance,
        "level": _finite(part.level),
        "boxes": len(part.boxes),
    }


def _finite(value: float) -> float | None:
    """Value for JSON, which knows neither NaN nor infinity."""
    return value if math.isfinite(value) else None
