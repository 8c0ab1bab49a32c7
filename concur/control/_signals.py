"""What goes into a servo and what comes out of it, with names, units and frames."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concur.codegen import Entry, Signal, plain_text
from concur.control._tracking_law import TrackingLaw
from concur.outputs._output import Output, pose_quaternions
from concur.robot import coordinates

BAD_INPUT = "a number that came in is not finite, or above 1e18"

MEANINGS = (
    "the controls may be used",
    BAD_INPUT,
    "a quaternion that came in is invalid: its norm is off one by over 1e-3",
    "the law is nearer to singular than its margin, or jumped over a singular state",
    "the controls are not finite, or above 1e18: the command is too large",
    "no torques within limits were found",
    "a missing argument, or an evaluation that did not run to its end",
    "a velocity that came in is above its bound",
)
"""Meaning of each status, by its number."""


def meaning(servo: TrackingLaw, code: int) -> str:
    """Meaning of a status of the tick of a law."""
    if MEANINGS[code] is BAD_INPUT and servo.nz:
        return f"{BAD_INPUT}, or the period or the state of the law is out of bounds"
    return MEANINGS[code]


def input_signals(
    servo: TrackingLaw, largest: tuple[float, ...] = (), timed: bool = False
) -> Iterator[Signal]:
    """Inputs of a tick, with bounds of its velocities, m/s or rad/s; empty for none.

    A tick with its reference inside is `timed`: it takes the time in place of the reference.
    """
    robot = servo.model.system
    neutral = robot.neutral()
    if timed:
        yield Signal("t", "time of the reference", (Entry("t", "s"),), scalar=True)
    yield Signal(
        "q",
        "configuration, measured: a base's position in inertial axes, and its attitude from its "
        "own axes to the inertial ones",
        tuple(Entry(plain_text(name), unit) for name, unit in coordinates(robot)),
        preset=tuple(neutral),
        quaternions=tuple(servo.quaternions),
    )
    units = ["rad/s" if unit == "N m" else "m/s" for unit in robot.effort_units]
    taken = range(robot.nv) if servo.use_measured_velocity else servo.model.shape
    yield Signal(
        "s",
        "all velocities, measured: those of a base in the base's own axes"
        if servo.use_measured_velocity
        else "velocities of the shape, measured",
        tuple(
            Entry(plain_text(name), units[i])
            for name, i in zip(servo.velocity_names, taken, strict=True)
        ),
        largest=largest,
        guard="TOO_FAST",
    )
    if not timed:
        yield from _reference(servo, neutral)
    if servo.takes_momentum:
        axes = [f"{kind}_{axis}" for kind in ("linear", "angular") for axis in "xyz"]
        units = ["kg m/s"] * 3 + ["kg m^2/s"] * 3
        yield Signal(
            "momentum",
            "momentum of the whole robot about the inertial origin, in inertial axes, measured or "
            "preset",
            tuple(Entry(axis, unit) for axis, unit in zip(axes, units, strict=True)),
            preset=tuple(float(x) for x in servo.model.momentum),
        )
    if servo.nz:
        meaning = (
            "time from this tick to the next, by which the law's state is advanced; with zero it "
            "stays as it is; below zero and above the largest it is rejected as bad input, as is "
            "the preset until it is filled in"
        )
        longest = (servo.state_bounds.period,)
        entry = (Entry("period", "s"),)
        yield Signal("period", meaning, entry, preset=(-1.0,), largest=longest, scalar=True)


def _reference(servo: TrackingLaw, neutral: np.ndarray) -> Iterator[Signal]:
    pose, rates = list[Entry](), list[tuple[str, str]]()
    for output in servo.outputs:
        lie = output.lie
        units = dict(zip(lie.error_names, lie.error_units, strict=True))
        for name in lie.coordinate_names:
            unit = "" if name in ("qx", "qy", "qz", "qw") else units.get(name, "")
            pose.append(Entry(plain_text(f"{output.name}[{name}]"), unit))
        rates += [
            (plain_text(f"{output.name}[{name}]"), unit)
            for name, unit in zip(lie.error_names, lie.error_units, strict=True)
        ]
    groups = "; ".join(
        plain_text(
            f"{o.name}: {o.group} of {o.body}"
            + (f" relative to {o.relative_to}" if o.relative_to else "")
        )
        for o in servo.outputs
    )
    yield Signal(
        "pose",
        f"reference pose in inertial axes ({groups})",
        tuple(pose),
        preset=tuple(np.atleast_1d(servo.output(neutral))),
        quaternions=tuple(pose_quaternions(servo.outputs)),
    )
    frames = "; ".join(plain_text(f"{o.name}: {_frame(o)}") for o in servo.outputs)
    yield Signal(
        "twist",
        f"reference velocity ({frames})",
        tuple(Entry(name, f"{unit}/s") for name, unit in rates),
    )
    yield Signal(
        "acceleration",
        "rate of the reference velocity, component by component",
        tuple(Entry(name, f"{unit}/s^2") for name, unit in rates),
    )


def _frame(output: Output) -> str:
    axes = f"axes of {output.relative_to}" if output.relative_to else "inertial axes"
    group = output.group
    if group in ("SE2", "SE3", "SO3"):
        return "axes of the reference pose"
    if group == "R3xSO3":
        return f"linear in {axes}, angular in axes of the reference pose"
    return axes if group != "SO2" else "about the output's normal"


def state_signal(servo: TrackingLaw) -> Signal | None:
    """State z of a law, with its bounds; None for a law without one."""
    if not servo.nz:
        return None
    entries = [Entry(plain_text(name), unit) for name, unit in servo.state_entries]
    meaning = "state of the law, zero at the start; it is held at the largest magnitudes"
    largest = tuple(map(float, servo.state_bounds.state))
    return Signal("z", meaning, tuple(entries), largest=largest)


def output_signals(servo: TrackingLaw) -> Iterator[Signal]:
    """Outputs of a tick, except its status."""
    robot = servo.model.system
    units = dict(zip(robot.freedom_names, robot.effort_units, strict=True))
    yield Signal(
        "u",
        "forces and torques of the actuators",
        tuple(Entry(plain_text(name), units.get(name, "")) for name in servo.model.control_names),
    )
    yield Signal(
        "pivot",
        f"distance of the law from singular, refused below {servo.singular_margin:g}",
        (Entry("pivot"),),
        scalar=True,
    )
    rates = [
        Entry(plain_text(f"{output.name}[{name}]"), f"{unit}/s^2")
        for output in servo.outputs
        for name, unit in zip(output.lie.error_names, output.lie.error_units, strict=True)
    ]
    yield Signal(
        "missed",
        "acceleration residual: part of the commanded output acceleration that is not achieved",
        tuple(rates),
    )
    yield Signal(
        "scale",
        "scale factor of torque limits on the commanded acceleration; 1 where they are not active",
        (Entry("scale"),),
        scalar=True,
    )
