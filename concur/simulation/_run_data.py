"""Arrays of a simulated run, and quantities that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from concur.control import JointLimits, MomentumMismatch, TrackingLaw, momentum_mismatch
from concur.errors import shown
from concur.robot import Mechanism, as_tree, robot_size
from concur.simulation._friction import Friction
from concur.simulation._imperfections import Imperfections
from concur.simulation._momentum import momentum_drift
from concur.simulation._slip import Slip

BALANCE = "Use run.energy_balance, or evaluate its constants of motion at run.q and run.v."
"""What to do instead of a momentum for a system without bodies."""


@dataclass(frozen=True, eq=False, repr=False)
class RunData:
    """Arrays of a run, one row per time step; `Run` describes them."""

    robot: Mechanism  # or another system: what needs bodies rejects it
    servo: TrackingLaw
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    s: np.ndarray
    u: np.ndarray
    q_range: np.ndarray
    v_range: np.ndarray
    u_range: np.ndarray
    error: np.ndarray
    velocity_error: np.ndarray
    ideal: np.ndarray
    lyapunov: np.ndarray
    acceleration_residual: np.ndarray
    scale: np.ndarray
    margin: np.ndarray
    constraint_residual: np.ndarray
    energy: np.ndarray
    work: np.ndarray
    momentum: np.ndarray
    inner_momentum: np.ndarray
    pose: np.ndarray
    reference: np.ndarray
    method: str
    control_period: float | None
    seconds: float
    friction: Friction | None = None
    imperfections: Imperfections | None = None
    slip: Slip | None = None
    slip_speed: np.ndarray | None = None
    wheel_load: np.ndarray | None = None

    def __str__(self) -> str:
        worst = ", ".join(f"{name} {norm[-1]:.3g}" for name, norm in self.error_norms.items())
        return (
            f"run of {self.robot.name}: {self.t[-1]:g} s in steps of {self.dt:g} s by "
            f"{self.method}, final errors (m, rad): {worst or 'no outputs'}, "
            f"smallest margin {self.margin.min():.3g}"
        )

    def __repr__(self) -> str:
        return f"<{shown(str(self), 180)}>"

    @property
    def dt(self) -> float:
        """Step of the record, s; zero for a run that holds its start only."""
        return float(self.t[1] - self.t[0]) if self.t.size > 1 else 0.0

    @cached_property
    def plant_differences(self) -> tuple[str, ...]:
        """What of the plant differs from the servo's model, in words."""
        rubs = ["friction"] * (self.friction is not None)
        rubs += [] if self.imperfections is None else self.imperfections.effects
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
        return tuple(found)

    @property
    def deviation(self) -> np.ndarray:
        """Error minus the ideal error, shape (k, size)."""
        return np.asarray(self.error - self.ideal)

    @property
    def energy_balance(self) -> np.ndarray:
        """Energy gained minus work done since the start, shape (k,), J; zero up to round-off."""
        return np.asarray(self.energy - self.energy[0] - self.work)

    @property
    def floats(self) -> bool:
        """Whether the robot floats freely, its momentum constant."""
        return self.servo.model.takes_momentum

    @cached_property
    def momentum_drift(self) -> np.ndarray:
        """Deviation of a floating robot's momentum from that at the start, relative, (k,).

        Zero up to round-off and the integrator's error; translations and rotations apart,
        each against the momentum itself or what the joints move inside the robot.
        """
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
            drifts[stage.joint] = np.maximum(drifts.get(stage.joint, 0.0), drift)
        return drifts

    @cached_property
    def mismatch(self) -> MomentumMismatch | None:
        """Momentum that the servo assumes against that at the start; none unless it floats."""
        return momentum_mismatch(self.servo, self.q[0], self.v[0]) if self.floats else None

    @cached_property
    def joint_limits(self) -> JointLimits:
        """Limits of the joints; where robot and plant differ, the narrower ones."""
        return JointLimits.of(self.robot, self.servo.model.system)

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
        found, start = [], 0
        for output in self.servo.outputs:
            units = np.array(output.coordinate_units)
            for unit in (kinds := list(dict.fromkeys(output.coordinate_units))):
                kind = {"m": ", position", "rad": ", rotation"}[unit] * (len(kinds) > 1)
                found.append((output.name + kind, unit, start + np.flatnonzero(units == unit)))
            start += output.dim
        return found

    @cached_property
    def error_norms(self) -> dict[str, np.ndarray]:
        """Norm of each output's error over time, shape (k,), by output name.

        Metres and radians are apart: an output with both has two entries, such as "hand, position"
        and "hand, rotation".
        """
        return {name: norm for name, _, norm in self.error_parts}
