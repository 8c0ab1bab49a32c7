"""Arrays of a simulated run, and quantities that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from concur.control import JointLimits, MomentumMismatch, TrackingLaw, mismatch
from concur.outputs import Output
from concur.results import Row
from concur.robot import Mechanism, as_tree, coordinates, robot_size
from concur.simulation._friction import Friction
from concur.simulation._imperfections import Imperfections, scalar_joints
from concur.simulation._motors import heat_rows
from concur.simulation._slip import Slip
from concur.simulation._stored import Stored
from concur.system import System
from concur.tables import Positive

SMALL = 1e-3
"""Share of the other kind of momentum below which one counts as zero."""


def momentum_drift(
    robot: System, momentum: np.ndarray, inner: np.ndarray, demanded: np.ndarray
) -> np.ndarray:
    """Relative deviation from a constant momentum, shape (k,).

    Only conserved components count: the momentum along the motions of the base's group,
    translations and the others apart. Each is divided by the larger of the momentum itself and
    the largest momentum that the joints move inside the robot; where both are zero, by what the
    other kind would be at the robot's size.
    """
    if isinstance(robot, Mechanism):
        motions, reach = _base_motions(robot), _reach(robot)
        turning = np.linalg.norm(motions[3:], axis=0) > 0.0
    else:
        motions, reach, group = np.eye(momentum.shape[1]), robot_size(robot), _group(robot)
        turning = np.array([robot.effort_units[i] == "N m" for i in group])
    kinds = [(~turning, 1.0), (turning, reach)]
    scales, deviations = [], []
    for chosen, length in kinds:
        columns = motions[:, chosen]
        wanted = demanded @ columns
        moved = np.linalg.norm(inner @ columns, axis=1).max(initial=0.0)
        scales.append(max(float(np.linalg.norm(wanted)), float(moved)) / length)
        deviations.append(np.linalg.norm(momentum @ columns - wanted, axis=1) / length)
    largest = max(scales)
    drift = np.zeros(momentum.shape[0])
    for scale, apart in zip(scales, deviations, strict=True):
        if largest > 0.0:
            # A zero momentum has no size to compare with.
            drift = np.maximum(drift, apart / max(scale, SMALL * largest))
    return drift


def _group(system: Any) -> tuple[int, ...]:
    """Velocities of the symmetry group of a system without bodies."""
    return tuple(system.fibre)


def _reach(robot: Mechanism) -> float:
    """Largest distance between the origins of bodies, m; turns angular into linear momentum."""
    origins = [robot.pose(robot.neutral(), body.name)[:3, 3] for body in robot.bodies]
    return float(max(np.linalg.norm(a - b) for a in origins for b in origins)) or 1.0


def _base_motions(robot: Mechanism) -> np.ndarray:
    """Twists of the base's group in the inertial frame, shape (6, nb)."""
    placement, basis = robot.base.placement, robot.base.joint.basis
    turn = Rotation.from_quat(placement.rotation).as_matrix()
    linear, angular = turn @ basis[:3], turn @ basis[3:]
    shifted = np.cross(np.array(placement.translation), angular, axisa=0, axisb=0, axisc=0)
    return np.vstack([linear + shifted, angular])


NOTICED = 1e-9
"""Relative difference of two momenta above which it is reported."""

BALANCE = "Use run.energy_balance, or evaluate its constants of motion at run.q and run.v."
"""What to do instead of a momentum for a system without bodies."""


def error_parts(outputs: Sequence[Output]) -> list[tuple[tuple[str, ...], str, np.ndarray]]:
    """Name, unit and places in x of the error of each output, by unit.

    The name is that of the output, with "position" or "rotation" behind it where it has both.
    """
    found, start = [], 0
    for output in outputs:
        units = np.array(output.coordinate_units)
        for unit in (kinds := list(dict.fromkeys(output.coordinate_units))):
            kind = [{"m": "position", "rad": "rotation"}[unit]] if len(kinds) > 1 else []
            found.append(((output.name, *kind), unit, start + np.flatnonzero(units == unit)))
        start += output.dim
    return found


def coordinate_signals(robot: System) -> list[str]:
    """Name of the signal of each coordinate of a configuration."""
    if not isinstance(robot, Mechanism):
        return [f"position:{name}" for name, _ in coordinates(robot)]
    names, single = [], scalar_joints(robot)
    for k, body in enumerate(robot.bodies):
        if body.joint_label in single:
            names.append(f"position:{body.joint_label}")
        else:
            kind = "base:" if k == 0 else f"position:{body.joint_label}."
            names += [f"{kind}{name}" for name in body.joint.coordinate_names]
    return names


def limit_signals(law: TrackingLaw) -> list[str]:
    """Names of the signals of a law's limits: of any one, and of each; none without limits."""
    return ["limited", *(f"limit:{name}" for name in law.limit_names)] if law.limit_names else []


@dataclass(frozen=True)
class Tolerances:
    """Limits for a run that passes, beside those of the robot's joints.

    Parameters
    ----------
    evaluate_after : float, optional
        No limit: the report gives the largest error after this time, s, within the duration.
        Default: half the duration; in Python none.
    final_error : float, optional
        Largest output error at the end, m or rad. Default: 1e-6; in files 1e-3 where torques are
        held, or the plant has imperfections or a file.
    deviation : float, optional
        Largest deviation of an error coordinate from the exact error dynamics, m or rad.
    constraint : float, optional
        Largest slip of a wheel, m/s.
    margin : float, optional
        Least decoupling margin, without unit.
    momentum : float, optional
        Largest relative drift of the momentum of a robot with a floating base.

    Examples
    --------
    >>> import concur as cc
    >>> cc.simulation.Tolerances(evaluate_after=2.0, final_error=1e-3).final_error
    0.001
    """

    evaluate_after: Positive = np.inf
    final_error: Positive = 1e-6
    deviation: Positive = 1e-6
    constraint: Positive = 1e-9
    margin: Positive = 1e-3
    momentum: Positive = 1e-8


@dataclass(frozen=True, eq=False, repr=False)
class RunData(Stored):
    """A run, one row per time step, and quantities that follow from it; `Run` describes it."""

    robot: Mechanism  # or another system: what needs bodies rejects it
    servo: TrackingLaw
    arrays: Mapping[str, np.ndarray]
    method: str
    control_period: float | None
    seconds: float
    friction: Friction | None = None
    imperfections: Imperfections | None = None
    slip: Slip | None = None
    tolerances: Tolerances | None = None
    required: tuple[Row, ...] = ()  # requirements of the task, judged

    def __str__(self) -> str:
        worst = ", ".join(f"{name} {norm[-1]:.3g}" for name, norm in self.error_norms.items())
        return (
            f"run of {self.robot.name}: {self.t[-1]:g} s in steps of {self.dt:g} s by "
            f"{self.method}, final errors (m, rad): {worst or 'no outputs'}, "
            f"smallest margin {self.margin.min():.3g}"
        )

    @cached_property
    def plant_differences(self) -> tuple[str, ...]:
        """What of the plant differs from the servo's model, in words."""
        rubs = ["friction"] * (self.friction is not None)
        if self.imperfections is not None:
            rubs = self.imperfections.effects(self.robot)
        rubs += ["wheels that may slip"] * (self.slip is not None)
        return (*self.model_differences, *rubs)

    @property
    def model_differences(self) -> tuple[str, ...]:
        """What of the simulated robot differs from that of the servo's model, in words."""
        model, plant = self.servo.model.system, self.robot
        if model is plant:
            return ()
        if not isinstance(model, Mechanism):
            return ("energies or constraints",) * (model != plant)
        found = []
        for known, moving in zip(model.bodies, plant.bodies, strict=True):
            parts = (("inertia", "inertia"), ("joint", "joint axis"), ("placement", "placement"))
            found += [
                f"{words} of `{known.name}`"
                for part, words in parts
                if getattr(known, part) != getattr(moving, part)
            ]
        if model.wheels != plant.wheels:
            found.append("wheels")
        if tuple(model.gravity) != tuple(plant.gravity):
            found.append("gravity")
        if tuple(model.springs) != tuple(plant.springs):
            found.append("springs")
        return tuple(found)

    @property
    def deviation(self) -> np.ndarray:
        """Error minus the ideal error, shape (k, size)."""
        return np.asarray(self.error - self.ideal)

    @property
    def floats(self) -> bool:
        """Whether the robot floats freely, its momentum constant."""
        return self.servo.model.takes_momentum

    @cached_property
    def momentum_drift(self) -> np.ndarray:
        """Deviation of a floating robot's momentum from that at the start, relative, (k,).

        Zero up to round-off and the integrator's error; translations and rotations apart,
        each against the momentum itself or what the joints move inside the robot. The same of
        the momentum of a symmetry group.
        """
        model: Any = self.servo.model
        if model.keeps_momentum and not model.takes_momentum:
            system, inner = model.system, self.v.copy()
            inner[:, list(model.first.dependent)] = 0.0
            found = [
                [system.momentum(*x) for x in zip(self.q, v, strict=True)] for v in (self.v, inner)
            ]
            momenta, moved = (np.array(part) for part in found)
            return momentum_drift(system, momenta, moved, momenta[0])
        robot = as_tree(self.robot, f"run of `{self.robot.name}`, `momentum_drift`", BALANCE)
        return momentum_drift(robot, self.momentum, self.inner_momentum, self.momentum[0])

    @cached_property
    def stage_drifts(self) -> dict[str, np.ndarray]:
        """Deviation of each further stage's momentum from that at the start, relative, (k,).

        By the stage's joint: against the momentum itself or what the joint's own motion makes of
        it, whichever is larger. Of a joint that is reduced by two parts, that of the worse one.
        Angular momenta are divided by the robot's size before they are compared with linear ones.
        """
        drifts: dict[str, np.ndarray] = {}
        if not self.servo.model.chain:
            return drifts
        model = self.servo.model.on(self.robot)
        reach = robot_size(self.robot)
        for stage in model.chain:
            pairs = [stage.momentum_residual(q, v) for q, v in zip(self.q, self.v, strict=True)]
            length = np.where([u == "N m s" for u in stage.momentum_units], reach, 1.0)
            rest, own = (np.array(part) / length for part in zip(*pairs, strict=True))
            theta = np.array(stage.theta) / length
            size = max(float(np.linalg.norm(theta)), float(np.abs(own).max(initial=0.0)))
            # A deviation at the start may turn with the joint, but it keeps its size.
            apart = np.abs(np.linalg.norm(rest, axis=1) - np.linalg.norm(rest[0]))
            drift = apart / size if size > 0.0 else apart
            joint = stage.label
            drifts[joint] = np.maximum(drifts.get(joint, 0.0), drift)
        return drifts

    @cached_property
    def mismatch(self) -> MomentumMismatch | None:
        """Momentum that the servo assumes against that at the start; none unless it floats."""
        return mismatch(self.servo, self.q[0], self.v[0]) if self.floats else None

    @property
    def felt_mismatch(self) -> MomentumMismatch | None:
        """The same if the servo uses the momentum and it differs by more than rounding."""
        found = self.mismatch
        return found if found is not None and found.used and found.relative > NOTICED else None

    @cached_property
    def joint_limits(self) -> JointLimits:
        """Limits of joints and controls: the narrowest of robot, plant and law."""
        own = JointLimits.of(self.robot, self.servo.model.system)
        return replace(own, law=self.servo.torque_limits)

    @property
    def limit_rows(self) -> tuple[Row, ...]:
        """Extremes of what has a limit of robot or law, joints and motors, beside the limits."""
        limits = self.joint_limits
        ranges = self.q_range, self.v_range, self.u_range, limits.motor_range(self.v)
        return (*limits.judge(*ranges), *heat_rows(self.robot, self.heat))

    @property
    def control_units(self) -> tuple[str, ...]:
        """Unit of each control."""
        return self.servo.model.control_units

    @cached_property
    def error_parts(self) -> list[tuple[str, str, np.ndarray]]:
        """Name, unit and norm, shape (k,), of the errors of each output, by unit.

        The name is the output's, followed by "position" or "rotation" where it has both: metres
        and radians are never added.
        """
        return [
            (name, unit, np.linalg.norm(self.error[:, places], axis=1))
            for name, unit, places in self.error_places
        ]

    @property
    def error_places(self) -> list[tuple[str, str, np.ndarray]]:
        """Name and unit as of `error_parts`, and indices in x, shape (n,)."""
        parts = error_parts(self.servo.outputs)
        return [(", ".join(name), unit, places) for name, unit, places in parts]

    @cached_property
    def error_norms(self) -> dict[str, np.ndarray]:
        """Norm of each output's error over time, shape (k,), by output name.

        Metres and radians are apart: an output with both has two entries, such as "hand, position"
        and "hand, rotation".
        """
        return {name: norm for name, _, norm in self.error_parts}
