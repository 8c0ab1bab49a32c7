"""`concur certify`: proved decay rate and certified region of a task's servo."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from concur.certify import (
    ESTIMATE,
    Certificate,
    ErrorMotions,
    IntegralCertificate,
    Method,
    OperatingCertificate,
    SampleLimits,
    Status,
    Tube,
    certify,
    certify_integral,
    disturbed_motions,
    error_motions,
    narrow_decays,
    operating_bounds,
    recheck,
    sample_limits,
    tube,
)
from concur.cli._bar import progress_bar
from concur.cli._certify_result import (
    CertifyResult,
    channel_overshoot,
    component_names,
    largest_disturbance,
)
from concur.cli._results import Results, results
from concur.control import Servo
from concur.errors import ConcurError, OutputError, UnknownNameError
from concur.files import writing
from concur.io import Task, load_task
from concur.rounding import percent_down, rounded_down, rounded_up
from concur.show import decay_figure, rate_figure, tube_figure
from concur.show.style import save_picture
from concur.tables import LARGEST, located

METHODS = ("tight", "thesis")
# Angles of the figure of rates, in degrees, in addition to the requested one.
_ANGLES = (15.0, 30.0, 60.0, 90.0, 120.0, 150.0, 179.0)
# Budget of boxes for each of them, small as they are only for a figure.
_BUDGET = 1_000
_MARKS = {
    Status.PROVED: "[green]proved[/]",
    Status.REFUTED: "[bold red]refuted[/]",
    Status.UNDECIDED: "[yellow]undecided[/]",
}


def certify_task(
    path: Path,
    folder: Path,
    angle: float,
    distance: float | None,
    method: str,
    console: Console,
    disturbance: float | None = None,
    overwrite: bool = False,
) -> CertifyResult:
    """Certify the servo of a task; write proofs and figures into a folder.

    The angle is in degrees, the disturbance in m/s^2 with rotations scaled by the length.
    """
    with results(folder, "certify", overwrite) as kept:
        _check_options(angle, distance, method, disturbance)
        result = _certified(path, kept, angle, distance, method, console, disturbance)
        kept.end("proved" if result.proved else "not proved")
    _show(result, console)
    return replace(result, files=(*result.files, kept.manifest))


def _certified(
    path: Path,
    kept: Results,
    angle: float,
    distance: float | None,
    method: str,
    console: Console,
    disturbance: float | None,
) -> CertifyResult:
    task = load_task(path)
    servo = task.servo
    sample = task.reference(0.0)
    x, ve = servo.error(task.q0, task.shape_velocities(servo), sample)
    start = (np.asarray(x, dtype=float), np.asarray(ve, dtype=float))
    console.print(f"[bold]{escape(task.name)}[/]: {escape(task.robot.name)}", highlight=False)
    listed = ", ".join(f"{output.name} on {output.group}" for output in servo.outputs)
    console.print(escape(f"outputs: {listed}; {servo.size} coordinates"))

    radians = math.radians(angle)
    operating = _operating(task, servo, console)
    box = operating if servo.torque_limits is not None and usable(operating) else None
    began = time.perf_counter()
    with progress_bar("certifying", console) as report:
        found = certify(
            servo, radians, distance, cast(Method, method), progress=report,
            chain=method == "tight", operating=box,
        )  # fmt: skip
        integral = None if servo.integral is None else certify_integral(servo, radians)
    seconds = time.perf_counter() - began
    proof = kept.staging / "proof.json"
    with writing(proof):
        (integral or found).save(proof)
    rechecked = recheck(proof)
    kept.publish([proof])
    figures, decay = ({}, None) if integral else _figures(found, start, console)
    around: tuple[Tube, ...] = ()
    free = found.status is Status.PROVED and servo.torque_limits is None
    if disturbance is not None and free and method == "tight":
        around = _tubes(found, disturbance, console)
        figures |= _tube_figures(around, disturbance)
    for name, figure in figures.items():
        kept.publish([save_picture(figure, kept.staging / f"{name}.png")])
    again = []
    for k, one in enumerate(around):
        target = kept.staging / ("tube.json" if len(around) == 1 else f"tube_{k + 1}.json")
        with writing(target):
            one.save(target)
        again.append(recheck(target))
        kept.publish([target])
    if operating is not None:
        target = kept.staging / "operating.json"
        with writing(target):
            operating.save(target)
        kept.publish([target])
    notes = _differences(task, servo)
    return CertifyResult(
        task, found, rechecked, start, seconds, decay, notes, tuple(kept.files), operating,
        _held(found), disturbance, around, tuple(again), integral,
    )  # fmt: skip


def _operating(task: Task, servo: Servo, console: Console) -> OperatingCertificate | None:
    """Bound margin and torque in the task's operating box, if it has one, without integral."""
    if task.operating is None or servo.nz:
        return None
    with progress_bar("operating box", console) as report, located(task.path, "[operating]"):
        return operating_bounds(
            replace(servo, use_measured_velocity=False), **task.operating, progress=report
        )


def usable(found: OperatingCertificate | None) -> bool:
    """Whether a box is proved, and for errors above zero."""
    if found is None or found.status is not Status.PROVED:
        return False
    names = ("pose_error", "velocity_error")
    return all(min(found.demand.get(name, [0.0])) > 0.0 for name in names)


def _tubes(found: Certificate, disturbance: float, console: Console) -> tuple[Tube, ...]:
    """Tubes of all channels, from tube-optimized decays."""
    with progress_bar("tubes", console) as report:
        decays = narrow_decays(found, progress=report)
    return tuple(tube(one, disturbance / one.channel.length) for one in decays)


def _tube_figures(tubes: tuple[Tube, ...], disturbance: float) -> dict[str, Figure]:
    """Draw each tube of finite radius with disturbed motions."""
    figures = {}
    for k, one in enumerate(tubes):
        if math.isfinite(one.radius):
            motions = disturbed_motions(one, disturbance / one.channel.length)
            name = "tube" if len(tubes) == 1 else f"tube_{k + 1}"
            figures[name] = tube_figure(one, motions)
    return figures


def _held(found: Certificate) -> tuple[SampleLimits | None, ...]:
    """Limits of hold period and delay of the channels whose gains have common modes."""
    limits: list[SampleLimits | None] = []
    for part in found.parts:
        try:
            limits.append(sample_limits(part.channel))
        except OutputError:
            limits.append(None)
    return tuple(limits)


def _check_options(
    angle: float, distance: float | None, method: str, disturbance: float | None
) -> None:
    if not 0.0 < angle <= 180.0:
        raise ConcurError(
            "option `--angle`",
            expected="degrees above 0 and at most 180",
            came=f"{angle:g}",
            cure="Give the largest rotation error covered, such as --angle 90.",
        )
    if distance is not None and not 0.0 < distance <= LARGEST:
        raise ConcurError(
            "option `--distance`",
            expected=f"metres above 0, at most {LARGEST:g}",
            came=f"{distance:g}",
            cure="Omit it: the gains then determine it.",
        )
    if disturbance is not None and not 0.0 < disturbance <= LARGEST:
        raise ConcurError(
            "option `--disturbance`",
            expected=f"m/s^2 above 0, at most {LARGEST:g}",
            came=f"{disturbance:g}",
            cure="Omit it if there is no disturbance.",
        )
    if disturbance is not None and method == "thesis":
        raise ConcurError(
            "option `--disturbance`",
            expected="the method tight with this option",
            came="the method thesis, which gives no tubes",
            cure="Omit one of them.",
        )
    if method not in METHODS:
        raise UnknownNameError(
            "option `--method`",
            expected=" or ".join(METHODS),
            came=repr(method),
            cure="Omit it to use tight.",
        )


def _figures(
    found: Certificate, start: tuple[np.ndarray, np.ndarray], console: Console
) -> tuple[dict[str, Figure], ErrorMotions | None]:
    """Draw the available figures; also return the motions simulated for them."""
    figures: dict[str, Figure] = {}
    decay = None
    if found.status is Status.PROVED:
        decay = error_motions(found, start)
        figures["decay"] = decay_figure(found, decay)
    # Without rotations the angle is irrelevant; without valid gains there is no rate.
    if any(part.angle is not None for part in found.parts):
        with progress_bar("rates over the angle", console) as report:
            figures["rates"] = rate_figure(_sweeps(found, report), found)
    return figures, decay


def _sweeps(found: Certificate, report: Callable[[float], None]) -> dict[str, list[Certificate]]:
    angles = [a for a in map(math.radians, _ANGLES) if not math.isclose(a, found.angle)]
    # Include the theorem for comparison.
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
    # The theorem has no rate for outputs without closed forms.
    some = {name for name, row in sweeps.items() if any(one.rate > 0.0 for one in row)}
    return {name: row for name, row in sweeps.items() if name in some | {found.method}}


def _differences(task: Task, servo: Servo) -> tuple[str, ...]:
    """Differences between the loop of the task and the certified error dynamics."""
    notes = []
    if task.control_period is not None:
        notes.append(
            f"the task holds its torque for {task.control_period:g} s; the certified law does not"
        )
    if task.plant is not None:
        notes.append("the task's plant differs from the servo's model, which is certified")
    if task.plant_momentum is not None and not servo.use_measured_velocity:
        notes.append("the plant's momentum differs from the momentum that the servo assumes")
    if any(output.group == "SE3" for output in servo.outputs):
        notes.append(
            "an output on SE3 couples position and rotation; where no screw motion is needed, an "
            "output on R3xSO3 has a faster proved decay"
        )
    if servo.use_measured_velocity and task.operating is not None:
        notes.append("the operating box is for the law with the momentum stated in the task")
    if servo.nz and task.operating is not None:
        notes.append("the operating box is not checked: the law has integral action")
    return tuple(notes)


def _show(result: CertifyResult, console: Console) -> None:
    found = result.certificate
    own = result.integral or found
    console.print(
        _table(result) if result.integral is None else _integral_table(result, result.integral)
    )
    for part in own.parts:
        if part.status is not Status.PROVED:
            console.print(escape(part.reason), highlight=False)
    if found.counterexample is not None:
        console.print(escape(str(found.counterexample)), highlight=False)
    if own.status is Status.PROVED:
        inside = (
            "[green]inside[/] the certified region"
            if result.covered
            else "[bold yellow]outside[/] the certified region: it does not apply to "
            "this start. A larger --angle covers more"
        )
        console.print(f"the task's start is {inside}", highlight=False)
    for one in result.tubes:
        names = ", ".join(component_names(result.task)[i] for i in one.channel.index)
        text = f"tube of {names}, at {result.disturbance:g} m/s^2: {_tube_text(one)}"
        console.print(f"{_MARKS[one.status]}: {escape(text)}", highlight=False)
    for part, held in zip(found.parts, result.held, strict=True):
        if held is not None:
            names = ", ".join(component_names(result.task)[i] for i in part.channel.index)
            console.print(
                escape(
                    f"small errors of {names} decay if torques are held for less than "
                    f"{held.period:.4g} s, or delayed by less than {held.delay:.4g} s; recommended "
                    f"period {held.advised:.3g} s"
                ),
                highlight=False,
            )
    time = found.settling(0.01)
    if result.integral is None and math.isfinite(time):
        console.print(f"errors stay below 1 % of the start after {time:.4g} s", highlight=False)
    if result.operating is not None:
        _show_operating(result.operating, console)
    for condition in own.conditions:
        console.print(escape(f"if {condition}"), highlight=False)
    for note in result.notes:
        console.print(f"[bold yellow]note[/]: {escape(note)}", highlight=False)
    proof = result.files[0]
    again = "confirmed" if result.rechecked is Status.PROVED else result.rechecked.name.lower()
    console.print(escape(f"{proof}, verified by independent arithmetic: {again}"), highlight=False)
    verdict = "[bold green]proved[/]" if result.proved else f"[bold red]{_word(result)}[/]"
    listed = escape(", ".join(str(path) for path in result.files))
    console.print(f"{verdict}: {listed}", highlight=False)


def _word(result: CertifyResult) -> str:
    status = result.status
    if result.decays and any(one.status is not Status.PROVED for one in result.tubes):
        return "tube undecided"
    if result.decays and result.operating is not None:
        return f"operating box {result.operating.status.name.lower()}"
    return "not confirmed" if status is Status.PROVED else status.name.lower()


def _tube_text(found: Tube) -> str:
    most = largest_disturbance(found)
    room = "" if math.isinf(most) else f"; it fits up to {most:.4g} m/s^2"
    if not found.fits:
        return f"{found.reason}{room}"
    sizes = [f"rotation error at most {math.degrees(found.angle):.4g} deg"] if found.angle else []
    sizes += [f"position error at most {found.distance:.4g} m"] if found.distance else []
    return " and ".join(sizes) + room


def _show_operating(found: OperatingCertificate, console: Console) -> None:
    table = Table(title="Operating box", title_justify="left")
    table.add_column("what")
    table.add_column("status")
    for name in ("proved", "limits"):
        table.add_column(name, justify="right")
    margin = "none" if found.margin is None else f"at least {found.margin:.4g}"
    required = f"above {found.required_margin:.3g}"
    mark = _MARKS[found.margin_status]
    table.add_row("decoupling margin", mark, margin, required)
    for i, (name, status) in enumerate(zip(found.names, found.control_statuses, strict=True)):
        limit = "" if found.limits is None else _pair(*found.limits[i])
        table.add_row(escape(name), _MARKS[status], found.bounds[i], limit)
    if not found.names:
        table.add_row("torques", "", "not bounded", "no speeds given")
    console.print(table)
    met = f"smallest margin at samples {found.margin_found:.4g}: {ESTIMATE}"
    console.print(met, highlight=False)
    if found.status is not Status.PROVED:
        console.print(escape(f"operating box: {found.reason}"), highlight=False)


def _pair(low: float, high: float) -> str:
    return f"{low:.4g} to {high:.4g}"


def _table(result: CertifyResult) -> Table:
    found = result.certificate
    title = f"Certificate, method {found.method}"
    if any(part.angle is not None for part in found.parts):
        title += f", angle {math.degrees(found.angle):.4g} deg"
    table = Table(title=title, title_justify="left")
    table.add_column("channel")
    table.add_column("status")
    for name in ("rate [1/s]", "of linearized rate", "transient bound", "boxes", r"time \[s]"):
        table.add_column(name, justify="right")
    names = component_names(result.task)
    for part in found.parts:
        table.add_row(
            escape(", ".join(names[i] for i in part.channel.index)),
            _MARKS[part.status],
            *_numbers(
                part.status, part.rate, part.true_rate, channel_overshoot(part), len(part.boxes)
            ),
            f"{part.seconds:.2f}",
        )
    table.add_section()
    numbers = _numbers(
        found.status, found.rate, found.true_rate, found.transient_bound, found.boxes
    )
    taken = f"{result.seconds:.2f}"
    table.add_row("whole loop", _MARKS[found.status], *numbers, taken)
    if found.low_transient is not None:
        calm = found.low_transient
        numbers = _numbers(calm.status, calm.rate, calm.true_rate, calm.transient_bound, calm.boxes)
        table.add_row("calmer", _MARKS[calm.status], *numbers, "")
    return table


def _integral_table(result: CertifyResult, found: IntegralCertificate) -> Table:
    title = "Certificate with integral action"
    if any(part.angle is not None for part in found.parts):
        title += f", angle {math.degrees(found.angle):.4g} deg"
    table = Table(title=title, title_justify="left")
    table.add_column("outputs")
    table.add_column("status")
    for name in ("rate [1/s]", "linearized rate [1/s]"):
        table.add_column(name, justify="right")
    names = component_names(result.task)
    for part in found.parts:
        own = escape(", ".join(names[i] for i in part.index))
        table.add_row(own, _MARKS[part.status], rounded_down(part.rate, 4), f"{part.true_rate:.4g}")
    return table


def _numbers(status: Status, rate: float, most: float, overshoot: float, boxes: int) -> list[str]:
    if status is not Status.PROVED:
        return [f"{rate:.4g} ({ESTIMATE})" if rate > 0.0 else "none", "", "", str(boxes)]
    share = percent_down(rate / most) if most > 0.0 else ""
    shown = rounded_up(overshoot, 4) if math.isfinite(overshoot) else ""
    return [rounded_down(rate, 4), share, shown, str(boxes)]
