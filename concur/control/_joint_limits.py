"""Whether motions keep the position, speed and torque limits of a robot's joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import casadi as ca
import numpy as np

from concur.control._core import LawCore, taken_velocities
from concur.control._feasibility import Feasibility
from concur.control._limited import law_function
from concur.outputs.references import Reference
from concur.reduction import AuditRow, AuditStatus
from concur.results import Row
from concur.robot import Mechanism, controls, coordinates
from concur.system import System

SLACK = 1e-9
"""Share of its limit by which a value may lie beyond it: rounding of a joint held at the limit."""

LIM = "the exact motion keeps the position, speed and torque limits of the joints"
"""Statement of LIM."""


@dataclass(frozen=True, eq=False)
class JointLimits:
    """Limits of the joints that several descriptions of one robot have in common.

    Parameters
    ----------
    positions : numpy.ndarray
        Lower and upper bounds of the coordinates, shape (nq, 2), m and rad.
    speeds : numpy.ndarray
        Largest speeds, shape (nv,), m/s and rad/s.
    torques : numpy.ndarray
        Largest controls, shape (nu,), N and N m.
    robot : Mechanism
        Names and units.
    motors : mapping of str to (float, numpy.ndarray)
        Largest speeds of motors with several joints, rad/s, and their rows of ratios, shape (nv,).
    law : numpy.ndarray, optional
        Limits of the controls in the law, shape (nu, 2). Default: none.
    """

    positions: np.ndarray
    speeds: np.ndarray
    torques: np.ndarray
    robot: Mechanism
    motors: Mapping[str, tuple[float, np.ndarray]] = field(default_factory=dict)
    law: np.ndarray | None = None

    @classmethod
    def of(cls, *robots: System) -> JointLimits:
        """Take the narrowest limits of descriptions of one robot, such as model and plant.

        Parameters
        ----------
        *robots : System
            The descriptions. A system without bodies has those of its factors and motors.

        Returns
        -------
        JointLimits
            The limits, with names and units of the first.
        """
        trees = [robot for robot in robots if isinstance(robot, Mechanism)]
        several: list[Any] = [*(trees or robots)]
        first = several[0]
        free = np.full((first.nq, 2), (-np.inf, np.inf))
        speeds, torques = (np.full(n, np.inf) for n in (first.nv, len(controls(first)[0])))
        ranges = np.array([getattr(robot, "limits", free) for robot in several])
        motors = dict[str, tuple[float, np.ndarray]]()
        for robot in several:
            for name, (most, row) in getattr(robot, "motor_speeds", {}).items():
                motors[name] = min(most, motors.get(name, (most, row))[0]), row
        return cls(
            np.column_stack([ranges[:, :, 0].max(axis=0), ranges[:, :, 1].min(axis=0)]),
            np.min([getattr(robot, "speed_limits", speeds) for robot in several], axis=0),
            np.min([getattr(robot, "control_limits", torques) for robot in several], axis=0),
            cast(Mechanism, first),
            motors,
        )

    @property
    def widened(self) -> JointLimits:
        """The limits with the rounding beyond them that `judge` tolerates."""
        wide = self.positions + SLACK * np.abs(self.positions) * (-1.0, 1.0)
        speeds, torques = (ends * (1.0 + SLACK) for ends in (self.speeds, self.torques))
        motors = {name: (most * (1.0 + SLACK), row) for name, (most, row) in self.motors.items()}
        return JointLimits(wide, speeds, torques, self.robot, motors)

    @property
    def without_torques(self) -> JointLimits:
        """The limits but for those of controls, as for drives that cut torques off."""
        return replace(self, torques=np.full(len(self.torques), np.inf))

    @property
    def controls(self) -> np.ndarray:
        """Narrower limits of robot and law of each control, shape (nu, 2), N and N m."""
        own = np.outer(self.torques, (-1.0, 1.0))
        law = own if self.law is None else np.asarray(self.law, dtype=float)
        pairs = np.maximum(own[:, 0], law[:, 0]), np.minimum(own[:, 1], law[:, 1])
        return np.column_stack(pairs)

    @property
    def any(self) -> bool:
        """Whether there is any limit."""
        parts = (self.positions.ravel(), self.speeds, self.controls.ravel())
        return bool(np.isfinite(np.concatenate(parts)).any() or self.motors)

    def motor_range(self, v: np.ndarray) -> np.ndarray:
        """Smallest and largest speeds of `motors`.

        Parameters
        ----------
        v : numpy.ndarray
            Velocities, shape (k, nv).

        Returns
        -------
        numpy.ndarray
            Shape (2, len(motors)).
        """
        rows = np.reshape([row for _, row in self.motors.values()], (-1, v.shape[1]))
        speeds = v @ rows.T
        return np.stack([speeds.min(axis=0), speeds.max(axis=0)])

    def judge(
        self,
        q_range: np.ndarray,
        v_range: np.ndarray,
        u_range: np.ndarray,
        motor_range: np.ndarray | None = None,
    ) -> tuple[Row, ...]:
        """Compare extremes with the limits.

        Parameters
        ----------
        q_range, v_range, u_range : numpy.ndarray
            Smallest and largest values, shapes (2, nq), (2, nv) and (2, nu).
        motor_range : numpy.ndarray, optional
            `motor_range` of the velocities; default: speeds of motors are not judged.

        Returns
        -------
        tuple of Row
            One for each finite limit.
        """
        ranges = q_range, v_range, u_range, *([] if motor_range is None else [motor_range])
        return tuple(row for row, _ in self._judged(*ranges))

    def _judged(
        self, q_range: np.ndarray, v_range: np.ndarray, u_range: np.ndarray, *of_motors: np.ndarray
    ) -> list[tuple[Row, int]]:
        """Rows of `judge`, each with the column of its quantity among all (q, v, u, motors)."""
        if not self.any:
            return []
        robot, found = self.robot, list[tuple[Row, int]]()
        bodies, (names, kinds) = getattr(robot, "bodies", ()), controls(robot)

        def add(label: str, value: float, limit: float, unit: str, at_least: bool, k: int) -> None:
            if np.isfinite(limit):
                slack, number = SLACK * abs(limit), float(value)
                row = Row.judged(label, number, float(limit), unit, at_least=at_least, slack=slack)
                found.append((row, k))

        places = [
            (f"{name} of {body.joint_label}", unit)
            for body in bodies
            for name, unit in zip(
                body.joint.coordinate_names, body.joint.coordinate_units, strict=True
            )
        ]
        for k, (name, unit) in enumerate(places if bodies else coordinates(robot)):
            add(f"smallest {name}", q_range[0, k], self.positions[k, 0], unit, True, k)
            add(f"largest {name}", q_range[1, k], self.positions[k, 1], unit, False, k)
        units = [f"{unit}/s" for body in bodies for unit in body.joint.freedom_units]
        if not bodies:
            units = ["rad/s" if unit == "N m" else "m/s" for unit in robot.effort_units]
        for k, (name, unit) in enumerate(zip(robot.freedom_names, units, strict=True)):
            value, column = max(-v_range[0, k], v_range[1, k]), robot.nq + k
            add(f"largest speed of {name}", value, self.speeds[k], unit, False, column)
        for k, (name, unit) in enumerate(zip(names, kinds, strict=True)):
            low, high = u_range[:, k]
            least, most = self.controls[k]
            down = bool(low - least < most - high)  # the end that is nearer to its limit
            value, bound = (low, least) if down else (high, most)
            add(peak_label(name, unit), value, bound, unit, down, robot.nq + robot.nv + k)
        first = robot.nq + robot.nv + len(names)
        for ends in of_motors:
            for k, (name, (most, _)) in enumerate(self.motors.items()):
                value = max(-ends[0, k], ends[1, k])
                add(f"largest speed of motor {name}", value, most, "rad/s", False, first + k)
        return found


def driven_by(robot: System, control: str) -> str:
    """Name the kind of a control, since torques before and behind a gear do not compare.

    Parameters
    ----------
    robot : System
        The robot; a Lagrangian system has neither motors nor wheels.
    control : str
        One of its `control_names`.

    Returns
    -------
    str
        "motors" for one of its `motors`, on their side of the gear; "wheels" for the joint of a
        wheel; "joints" for all others.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> [cc.control.driven_by(robot, name) for name in robot.control_names[1:3]]
    ['wheels', 'joints']
    """
    if control in {motor.name for motor in getattr(robot, "motors", ())}:
        return "motors"
    # A joint with several freedoms adds a suffix to the name of its body.
    bodies = [wheel.body for wheel in getattr(robot, "wheels", ())]
    rolls = any(control == b or control.startswith((f"{b}.", f"{b}[")) for b in bodies)
    return "wheels" if rolls else "joints"


def peak_label(name: str, unit: str) -> str:
    """Name the peak of a control: "peak torque of elbow".

    Parameters
    ----------
    name : str
        Freedom that the control drives.
    unit : str
        Unit of the control.

    Returns
    -------
    str
        The label.
    """
    return f"peak {'force' if unit == 'N' else 'torque'} of {name}"


def within_limits(
    servo: LawCore, path: Feasibility | None, reference: Reference | None
) -> AuditRow | None:
    """LIM: the exact motion along the reference keeps the joints' limits, if there are any."""
    limits = JointLimits.of(servo.model.system)
    if not limits.any:
        return None
    if path is None or reference is None:
        return AuditRow("LIM", LIM, AuditStatus.NOT_CHECKED, "no reference was given")
    if not len(path.configurations):
        return AuditRow("LIM", LIM, AuditStatus.NOT_CHECKED, "there is no exact motion")
    table = _motion(servo, path, reference, bool(np.isfinite(limits.torques).any()))
    v = table[:, servo.nq :][:, : servo.nv]
    turned = [v @ row[:, None] for _, row in limits.motors.values()]
    table = np.hstack([table, *turned])
    ends = np.cumsum([servo.nq, servo.nv, servo.nu])
    extremes = np.split(np.stack([table.min(axis=0), table.max(axis=0)]), ends, axis=1)
    rows: list[tuple[Any, int]] = [*limits._judged(*extremes)]
    values = {row.quantity: row.value for row, _ in rows}
    missed = [(row, column) for row, column in rows if not row.holds]
    if missed:
        why = "; ".join(_reached(row, table[:, k], path.times) for row, k in missed)
        return AuditRow("LIM", LIM, AuditStatus.FAILS, why, values)
    closest = max((row for row, _ in rows), key=_excess)
    why = (
        f"{len(rows)} limits kept at {len(table)} instants; closest: {closest.quantity} "
        f"{closest.value:.4g}, limit {closest.limit:.4g} {closest.unit}"
    )
    if not path.feasible:
        why += f"; only up to t = {path.times[-1]:.3g} s, where the exact motion ends"
        return AuditRow("LIM", LIM, AuditStatus.NOT_CHECKED, why, values)
    return AuditRow("LIM", LIM, AuditStatus.HOLDS, why, values)


def _motion(servo: LawCore, path: Feasibility, reference: Reference, torques: bool) -> np.ndarray:
    """All (q, v, u) of the exact motion, shape (k, nq + nv + nu); u without limits of the law."""
    model = servo.model
    pairs = list(zip(path.configurations, path.speeds, strict=True))
    v = np.array([model.velocity(q, s) for q, s in pairs])
    u = np.zeros((len(pairs), servo.nu))
    if torques:
        rows = (path.configurations, taken_velocities(servo, v), *reference.sample(path.times))
        names = ("q", "s", "pose", "twist", "acceleration")
        given = dict(zip(names, (ca.DM(row.T) for row in rows), strict=True))
        if "momentum" in servo.inputs:
            given["momentum"] = ca.DM(model.momentum)
        u = np.array(law_function(servo, limited=False).call(given)["u"]).T
    return np.hstack([path.configurations, v, u])


def _excess(row: Any) -> float:
    """Distance beyond the limit, as a share of one that is not zero; negative inside."""
    beyond = float(row.limit - row.value if row.at_least else row.value - row.limit)
    return beyond / abs(row.limit) if row.limit else beyond


def _reached(row: Any, column: np.ndarray, times: np.ndarray) -> str:
    """Say when a value of a column was reached, and its limit."""
    k = int(np.argmax(np.abs(column) == abs(row.value)))
    return (
        f"{row.quantity} {row.value:.4g} {row.unit} at t = {times[k]:.3g} s, limit "
        f"{row.limit:.4g} {row.unit}"
    )
