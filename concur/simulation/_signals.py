"""Signals of a run, and the ranges that they keep in a valid one.

Where a plant cannot go, its run proves nothing.

The plane holds the base down, joints have no stops in the plant, and ideal motors give any torque.
So a run is not valid from the time on at which a wheel or support would lift off, at which wheels
that roll would slip, or at which a joint, a control or the heat of a motor is beyond a limit of the
robot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concur.control import SLACK, JointLimits
from concur.reduction import LEAST_LOAD, wheel_names
from concur.robot import Mechanism
from concur.simulation._motors import motor_numbers
from concur.simulation._plant import Plant
from concur.simulation._run_data import RunData, coordinate_signals, error_parts, limit_signals
from concur.simulation._slip import Slip, load_names
from concur.system import System


def run_signals(run: RunData) -> dict[str, NDArray[np.float64]]:
    """Signals of a run by the names of `Program.signals`.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    dict of str to numpy.ndarray
        Errors of the outputs ("error:hand"), decoupling margin ("margin"), controls
        ("torque:..."), coordinates ("position:..." and "base:..."), velocities ("speed:..."), slip
        speeds ("slip:..."), speeds of motors with several joints ("motor_speed:..."), heat of
        motors ("heat:..."), loads and moments of contacts ("load:..." and "tipping:...") or the
        residual of wheels that roll ("constraint"), and 1 while a limit of the law is active, else
        0 ("limit:..." and "limited", any of them), shape (k,) each, a value for each row of the
        record; SI units.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [base], stiffness=4, damping=4)
    >>> goal = cc.references.hold([0.3, 0.0])
    >>> run = cc.simulate(robot, servo, goal, 0.1, robot.neutral(), [0] * 5, dt=0.01)
    >>> signals = cc.simulation.run_signals(run)
    >>> signals["error:base"].shape, "torque:left_wheel" in signals
    ((11,), True)
    """
    robot = run.robot
    parts = error_parts(run.servo.outputs)
    found = {
        "error:" + ":".join(name): np.linalg.norm(run.error[:, places], axis=1)
        for name, _, places in parts
    }
    found["margin"] = run.margin
    tables = [
        ([f"torque:{name}" for name in run.servo.model.control_names], run.u),
        (coordinate_signals(robot), run.q),
        ([f"speed:{name}" for name in robot.freedom_names], run.v),
        ([f"heat:{name}" for name in motor_numbers("continuous", robot)], run.heat),
    ]
    if names := limit_signals(run.servo):
        tables.append((names, np.column_stack([run.active.max(axis=1), run.active])))
    for name, (_, row) in getattr(robot, "motor_speeds", {}).items():
        found[f"motor_speed:{name}"] = run.v @ row
    if run.slip is not None:
        tables.append(([f"slip:{name}" for name in wheel_names(robot)], run.slip_speed))
        plant, loads = Plant(robot, slip=run.slip), run.wheel_load
        if plant.nl:
            none = np.zeros(0)
            moments = [plant.tipping(q, own, none) for q, own in zip(run.q, loads, strict=True)]
            tables.append(([f"load:{name}" for name in plant.load_names], loads))
            tables.append(([f"tipping:{name}" for name in plant.edge_names], np.array(moments)))
    elif robot.nf:
        tables.append((["constraint"], run.constraint_residual[:, None]))
    for names, table in tables:
        found |= dict(zip(names, np.asarray(table).T, strict=True))
    return found


@dataclass(frozen=True)
class ValidRange:
    """Range of a signal, outside of which a run is not valid.

    Parameters
    ----------
    signal : str
        Name of the signal, as of `Program.signals`.
    low, high : float
        Ends of the range, which belong to it; infinite without.
    event : str
        What happens where the signal leaves the range: "front_caster lifts off".

    Examples
    --------
    >>> from concur.simulation import ValidRange
    >>> ValidRange("load:caster", 0.0, float("inf"), "caster lifts off").reason(1.96)
    'caster lifts off at 1.96 s: the run is not valid from there on'
    """

    signal: str
    low: float
    high: float
    event: str

    def reason(self, time: float) -> str:
        """Reason why a run is not valid.

        Parameters
        ----------
        time : float
            Time at which the signal leaves the range, s.

        Returns
        -------
        str
            Event, time and consequence.
        """
        return f"{self.event} at {time:.3g} s: the run is not valid from there on"

    def outside(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether values of the signal lie outside of the range.

        Parameters
        ----------
        values : numpy.ndarray
            Values, any shape.

        Returns
        -------
        numpy.ndarray
            Same shape; NaN lies outside.
        """
        return np.asarray(~((values >= self.low) & (values <= self.high)))


def valid_ranges(
    robot: System, slip: Slip | None, limits: JointLimits, constraint: float
) -> tuple[ValidRange, ...]:
    """Ranges that a run has to keep to be valid.

    Parameters
    ----------
    robot : System
        The robot that moves.
    slip : Slip, optional
        Friction of wheels that may slip; None: they roll.
    limits : JointLimits
        Limits of joints and controls, with the names of their robot.
    constraint : float
        Largest residual of constraints of wheels that roll, m/s.

    Returns
    -------
    tuple of ValidRange
        Loads of wheels and supports, if they are computed; the residual of the constraints of
        wheels that roll; coordinates, speeds and controls that have limits, and heat of motors.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.control import SLACK, JointLimits
    >>> robot = cc.robots.rover_arm()
    >>> ranges = cc.simulation.valid_ranges(robot, None, JointLimits.of(robot), 1e-9)
    >>> ranges[0].signal, ranges[0].high
    ('constraint', 1e-09)
    """
    found = []
    if slip is not None and isinstance(robot, Mechanism) and slip.loads is None:
        found += [
            ValidRange(f"load:{name}", LEAST_LOAD, np.inf, f"{name} lifts off")
            for name in load_names(robot, slip)
        ]
    elif slip is None and robot.nf:
        event = f"wheels that roll slip by more than {constraint:.3g} m/s"
        found.append(ValidRange("constraint", -np.inf, constraint, event))
    for name in motor_numbers("continuous", robot):
        found.append(ValidRange(f"heat:{name}", -np.inf, 1.0 + SLACK, f"motor {name} overheats"))
    return (*found, *_within(limits.widened)) if limits.any else tuple(found)


def first_invalid(
    ranges: Sequence[ValidRange], signals: Mapping[str, NDArray[np.float64]]
) -> tuple[int, ValidRange] | None:
    """First row of a record at which its run is not valid.

    Parameters
    ----------
    ranges : sequence of ValidRange
        Ranges of the run.
    signals : mapping of str to numpy.ndarray
        Signals by name, shape (k,), as of `run_signals`.

    Returns
    -------
    tuple of int and ValidRange, or None
        The row and the range that is left; None for a valid run.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.simulation import ValidRange, first_invalid
    >>> loads = {"load:caster": np.array([9.0, 0.0, -1.0, 2.0])}
    >>> first_invalid([ValidRange("load:caster", 0.0, np.inf, "caster lifts off")], loads)[0]
    2
    """
    found = []
    for one in ranges:
        outside = one.outside(np.asarray(signals[one.signal], dtype=float))
        if outside.any():
            found.append((int(np.argmax(outside)), one))
    return min(found, key=lambda pair: pair[0], default=None)


def _within(limits: JointLimits) -> Iterator[ValidRange]:
    """Ranges of what has a limit."""
    robot = limits.robot
    names = [coordinate_signals(robot), robot.freedom_names, robot.control_names]
    ends = [limits.positions, *(np.outer(x, (-1, 1)) for x in (limits.speeds, limits.torques))]
    for kind, own, pairs in zip(("", "speed:", "torque:"), names, ends, strict=True):
        for name, (low, high) in zip(own, pairs.tolist(), strict=True):
            if np.isfinite((low, high)).any():
                words = (kind + name).replace(":", " of ")
                yield ValidRange(kind + name, low, high, f"{words} leaves its limits")
    for name, (most, _) in limits.motors.items():
        words = f"speed of motor {name} leaves its limits"
        yield ValidRange(f"motor_speed:{name}", -most, most, words)
