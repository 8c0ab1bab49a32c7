"""The passive servo: Slotine and Li's law on the reduced model, with outputs on Lie groups.

With pose error x, the outputs' velocity V and that of the reference V_d at the output,

    V_r = V_d + L x            reference velocity of the outputs, xdot = -B(x) (V - V_d)
    J (H s_r + h) = V_r        shape velocities that make it
    H^T B u = Mhat s_r' + chat - C (s - s_r) + (J H)^T (B^T KP x - KD (V - V_r))

where C has Mhat' = C + C^T. So the energy W = ((s - s_r) Mhat (s - s_r) + x KP x) / 2 falls with
``W' = -(V - V_r) KD (V - V_r) - x KP L x``. No dynamics are cancelled, and forces of a wrong mass
meet springs and dampers in N/m and N s/m.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from concur.codegen import Array, Scalar, Vector, as_floats, constant, evaluated
from concur.control._core import at_torque_limits
from concur.control._law import all_velocities, controls, law_graph, least_root, solve_scaled
from concur.control._margins import natural_units
from concur.control._reading import matching_outputs, positive, read_each, read_gain
from concur.control._state_bounds import FARTHEST, StateBounds, slowest_period
from concur.control._tracking import TrackedOutputs
from concur.control._tracking_law import TrackingLaw
from concur.errors import OutputError
from concur.outputs import ReferenceSample, following_rate, output_motion
from concur.reduction import along
from concur.robot import Mechanism, Posture, as_tree, cross, jacobian, solve_positive_definite
from concur.tables import INTERNAL

PARAMETERS = 10
"""Mass, kg; first moment (3,), kg m; inertia xx, yy, zz, xy, xz, yz about the body's origin,
kg m^2: all in the frame of the body. The off-diagonal entries are those of the tensor."""

LOAD = (
    ("mass", "kg"),
    *((f"first_moment_{axis}", "kg m") for axis in "xyz"),
    *((f"inertia_{axes}", "kg m^2") for axes in ("xx", "yy", "zz", "xy", "xz", "yz")),
)
"""Names and units of the parameters."""


class _Following(NamedTuple):
    """How far a state is from what the law wants, and the forces on the shape that correct it."""

    away: Array  # s - s_r, (ns,)
    error: Array  # pose error x, (size,)
    velocity: Array  # of the robot for s_r, (nv,)
    rate: Array  # of s_r, (ns,)
    forces: Array  # springs and dampers, (ns,)
    pivot: Array
    side: Array


@dataclass(frozen=True, eq=False, repr=False)
class PassiveServo(TrackingLaw):
    """Passive tracker of outputs on Lie groups: Slotine and Li's law on the reduced model.

    Springs and dampers between outputs and reference, in N/m and N s/m, and the forces of the
    reduced model along the reference; none of the robot's own dynamics are cancelled. The errors
    decay with the Lyapunov function ``V = ((s - s_r) Mhat (s - s_r) + x KP x) / 2``, J, where s_r
    are shape velocities that reduce the pose error x at the given rate.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot, from `reduce`.
    outputs : sequence of Output
        Outputs that follow a reference; at most as many coordinates as shape velocities.
    stiffness, damping : float, sequence or array_like
        KP and KD on the outputs' algebra, N/m and N s/m, for rotations N m/rad and N m s/rad: a
        number, one entry per output (each a number or one number per coordinate), or a symmetric
        positive definite matrix.
    singular_margin : float
        Margin of the decoupling matrix below which no torque is returned.
    torque_limits : bool, float, sequence or mapping, optional
        Limits at which the controls are cut off, N and N m, as of `Servo`; V may rise there.
    use_measured_velocity : bool
        Whether the law takes all measured velocities of the robot, as of `Servo`.
    torque_weights : sequence or mapping, optional
        Weights of the controls where there are more than shape velocities, as of `Servo`.
    longest_period : float, optional
        With a `payload`: longest time from a tick to the next, s, as of `Servo`.
    largest_state : float or array_like, optional
        With a `payload`: largest magnitude of z, a number or one for each entry, shape (10,). A
        tick holds z there, and rejects a larger one. Default: 100 times the robot's mass, and that
        times its size and the square of its size.
    constraints : None
        Rejected: a limit bounds accelerations, and those of this law follow from the forces of the
        surroundings.
    rate : float or sequence of float
        L, 1/s, a number or one per output: each pose error decays at it once s = s_r.
    internal_damping : float
        Rate, 1/s, at which motions that leave the outputs at rest decay, where there are more shape
        velocities than output coordinates; s_r has the least kinetic energy there.
    payload : str, optional
        Body that carries a load of unknown inertia, which the state z of the law, shape (10,),
        estimates: mass, kg, first moment (3,), kg m, and inertia xx, yy, zz, xy, xz, yz about the
        origin of the body, kg m^2, in its frame. For robots on wheels and on a fixed or driven
        base. Default: no load.
    adaptation : float
        Gain of the estimated mass, kg s^2/m^2. With the robot's size as the unit of length, first
        moment and inertia have the same gain.

    Raises
    ------
    OutputError
        If there are more output coordinates than shape velocities, the gains are not positive
        definite, an option is out of range, the decoupling matrix is singular everywhere, or a
        robot with a momentum or stages has a `payload`.
    UnknownNameError
        If the body of an output or of `payload` does not exist.

    See Also
    --------
    Servo : linearizes; its errors obey the same equation for every robot, so it can be certified.

    Notes
    -----
    Source: J.-J. Slotine and W. Li, "On the adaptive control of robot manipulators" (1987), with
    the factor of source 004, (20). The estimate obeys their ``z' = -G Y^T (s - s_r)``, with gains G
    and the regressor Y of the load's forces on the shape, Y z. `certify` rejects this law, because
    its error dynamics depend on the motion of the robot.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> law = cc.PassiveServo(model, [base, hand], stiffness=60.0, damping=40.0, rate=2.0)
    >>> q = [0.0, 0.0, 0.0, 0.0, 0.0, -0.1, 1.0, -1.6]
    >>> goal = cc.references.hold(law.output(q) + [0.1, 0.0, 0.1, 0.0, 0.05])
    >>> run = cc.simulate(model.robot, law, goal, 4.0, q, [0.0] * 5)
    >>> bool(abs(run.error[-1]).max() < 2e-3)
    True
    """

    inertia: Any = field(default=None, init=False)
    redundancy: Any = field(default=None, init=False)
    damping_threshold: Any = field(default=None, init=False)
    integral: Any = field(default=None, init=False)
    rate: Any = None
    internal_damping: Any = 2.0
    payload: str | None = None
    adaptation: Any = 5.0
    constraints: Annotated[None, INTERNAL] = None  # type: ignore[misc]

    def __post_init__(self) -> None:
        outputs = matching_outputs(self.model, self.outputs)
        object.__setattr__(self, "outputs", outputs)
        where = f"passive servo of `{self.model.name}`"
        if self.constraints is not None:
            raise OutputError(
                f"{where}, `constraints`",
                expected="a law that keeps limits: a servo",
                came="a passive servo, which makes forces and not accelerations",
                cure="Take a Servo, or leave limits of joints to the guard of the rig.",
            )
        for name in ("stiffness", "damping"):
            matrix = read_gain(f"{where}, `{name}`", getattr(self, name), outputs)
            object.__setattr__(self, name, matrix)
        object.__setattr__(self, "rate", self._read_rate(f"{where}, `rate`"))
        for name in ("internal_damping", "adaptation"):
            value = positive(f"{where}, `{name}`", getattr(self, name))
            object.__setattr__(self, name, value)
        if self.payload is not None:
            self._check_payload(f"{where}, `payload`")
        self._check_common(where, 0 if self.payload is None else PARAMETERS)
        # The unit in which stiffness counts as an acceleration: the mass that can move.
        object.__setattr__(self, "inertia", np.diag(self.margins.scales[0] ** 2))
        self._check_decoupling()

    def _check_payload(self, where: str) -> None:
        """Demand a body of a robot whose lift contains no masses."""
        as_tree(self.model.system, where).index(str(self.payload))
        if self.model.takes_momentum or self.model.chain:
            raise OutputError(
                where,
                expected="a robot on wheels or on a fixed or driven base, without stages",
                came="a momentum, by which the load moves the robot",
                cure="Leave it out, or weigh the load and correct the robot.",
            )

    def _read_rate(self, where: str) -> np.ndarray:
        """Rates, one per output, checked with the stiffness."""
        rates = read_each(where, self.rate, [output.name for output in self.outputs])
        if not np.linalg.eigvalsh(self._pulled(rates))[0] > 0.0:
            raise OutputError(
                where,
                expected="rates with which stiffness times rate is positive",
                came=", ".join(f"{rate:g}" for rate in rates),
                cure="Give outputs that the stiffness couples the same rate.",
            )
        return rates

    def _each(self, rates: np.ndarray) -> np.ndarray:
        """Rates of all coordinates (size,), from one per output."""
        return np.repeat(rates, [output.dim for output in self.outputs])

    def _pulled(self, rates: np.ndarray) -> np.ndarray:
        """Symmetric part of stiffness times rate, (size, size)."""
        pulled = self.stiffness * self._each(rates)
        return np.asarray((pulled + pulled.T) / 2)

    def __str__(self) -> str:
        rates = np.diag(self._each(self.rate))
        gains = {"stiffness": self.stiffness, "damping": self.damping, "rate": rates}
        lines = [f"passive servo of {self.name}: {self.size} output coordinates"]
        lines += self._output_lines(gains)
        if self.payload is not None:
            lines.append(f"adapts to a load on `{self.payload}`")
        if self.torque_limits is not None:
            lines.append("torques cut off at limits")
        return "\n".join(lines)

    @property
    def linearizes(self) -> bool:
        return False

    def _state_entries(self) -> tuple[tuple[str, str], ...]:
        return () if self.payload is None else LOAD

    def _usual_bounds(self) -> StateBounds:
        period = min(super()._usual_bounds().period, slowest_period(self.rate))
        if self.payload is None:
            return StateBounds(period, np.zeros(0))
        return StateBounds(period, FARTHEST * _load_units(as_tree(self.model.system, "payload")))

    @property
    def _symbols(self) -> Any:
        return ca.SX

    def _build(self) -> ca.Function:
        inputs = {name: ca.SX.sym(name, size) for name, size in self.inputs.items()}
        q, v = inputs["q"], all_velocities(self, inputs)
        found = self._following(q, v, inputs["pose"], inputs["twist"], inputs["acceleration"])
        forces = self.model.following_forces(q, v, found.velocity, found.rate) + found.forces
        learnt = ca.SX(self.nz, 1)
        if self.payload is not None:
            added, learnt = self._adapted(q, v, found, inputs["z"])
            forces += added
        u, leverage, side = controls(self.model, q, forces, self.torque_weights)
        if self.torque_limits is not None:
            low, high = (ca.DM(limits) for limits in self.torque_limits.T)
            kept = ca.fmin(ca.fmax(u, low), high)
            # Errors at torque limits are no sign of a load.
            u, learnt = kept, ca.if_else(ca.sumsqr(u - kept) > 0.0, 0.0, learnt)
        results = {"u": u, "pivot": ca.fmin(found.pivot, leverage), "side": found.side * side}
        results |= {"missed": ca.SX(self.size, 1), "scale": 1, "zdot": learnt}
        results["active"] = at_torque_limits(self, u)
        return law_graph(inputs, results)

    def _adapted(self, q: Vector, v: Vector, found: _Following, z: Array) -> tuple[Array, Array]:
        """Forces of the estimated load on the shape, and the rate of the estimate."""
        model, robot = self.model, as_tree(self.model.system, "payload")
        horizontal, _ = model.lift(q)
        wdot = model.following_drift(q, v, found.velocity) + horizontal @ found.rate
        load = ca.SX.sym("load", PARAMETERS)
        given = q, v, found.velocity, wdot
        forces = horizontal.T @ _load_forces(robot, str(self.payload), *given, load)
        power = ca.gradient(ca.dot(forces, found.away), load)
        gains = constant(_load_gains(robot, self.adaptation))
        return ca.substitute(forces, load, z), -gains * power

    @evaluated("(nq),(nw),(pose_size),(twist_size)->()")
    def _lyapunov(self, q: Vector, s: Vector, pose: Vector, twist: Vector) -> Scalar:
        found = self._following(q, self.velocity(q, s), pose, twist, ca.SX(self.twist_size, 1))
        moving = ca.bilin(self.model.mass_matrix(q), found.away, found.away)
        return (moving + ca.bilin(constant(self.stiffness), found.error, found.error)) / 2

    def decay_rate(self, q: ArrayLike) -> float:
        """Rate at which errors decay at a configuration, for the exact model within limits.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        float
            c with V' <= -2 c V, 1/s: the least of the rates L and of the damping over the mass.
        """
        q = as_floats(q, f"passive servo of `{self.name}`, argument `q`")
        rows, mass = np.asarray(self.decoupling(q)), np.asarray(self.model.mass_matrix(q))
        damping = rows.T @ self.damping @ rows
        if self.size < self.ns:
            spread = np.linalg.solve(mass, rows.T)
            inner = mass - rows.T @ np.linalg.solve(rows @ spread, rows)
            damping = damping + self.internal_damping * inner
        springs = eigh(self._pulled(self.rate), self.stiffness, eigvals_only=True)
        return float(min(springs[0], eigh(damping, mass, eigvals_only=True)[0]))

    def error_bounds(self, q: Vector, s: Vector, sample: ReferenceSample) -> dict[str, float]:
        """Bounds of the pose errors at all later times, for the exact model within limits.

        V does not rise, so ``x KP x`` stays below twice its value at this state. Rotations: while
        the bound is below pi.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample
            Reference pose, twist and acceleration of all outputs.

        Returns
        -------
        dict of str to float
            By name of the output the largest norm of its part of x, m and rad.
        """
        energy, inverse = float(self.lyapunov(q, s, sample)), np.linalg.inv(self.stiffness)
        ends = np.cumsum([0, *(output.dim for output in self.outputs)])
        parts = [slice(*pair) for pair in pairwise(ends)]
        return {
            output.name: float(np.sqrt(2 * energy * np.linalg.eigvalsh(inverse[part, part])[-1]))
            for output, part in zip(self.outputs, parts, strict=True)
        }

    def _following(
        self, q: Vector, v: Vector, pose: Array, twist: Array, acceleration: Array
    ) -> _Following:
        """The law without the dynamics, for all velocities v (nv,) and a flat reference."""
        model, system = self.model, self.model.system
        seen = output_motion(system, self.outputs, q, v, base_axes=True)
        poses = zip((output.lie for output in self.outputs), seen.poses, strict=True)
        tracked = TrackedOutputs(poses, pose)
        x, pulled = tracked.error, tracked.pull(self.stiffness)
        behind = seen.velocity - tracked.transport(twist)
        rates = constant(self._each(self.rate))
        wrong = behind - rates * x
        rows = seen.jacobian @ model.lift(q)[0]
        forces = rows.T @ seen.turned(pulled - constant(self.damping) @ wrong)

        nearing = tracked.push(behind) - tracked.spin(x, twist)
        turned = tracked.ahead(seen.velocity, twist, acceleration) - rates * nearing
        horizontal, _ = model.lift(q)

        def reached(away: Array) -> tuple[Array, Array]:
            """Velocities w of the robot for s_r, and J H s_r' that keeps them on V_r."""
            w = v - horizontal @ away
            drift = seen.jacobian @ model.following_drift(q, v, w)
            return w, seen.turned(turned - following_rate(system, self.outputs, q, v, w)) - drift

        if self.size == self.ns:
            away, pivot, side, *_ = solve_scaled(rows, seen.turned(wrong), *self.margins.scales)
            w, residual = reached(away)
            rate = solve_scaled(rows, residual, *self.margins.scales)[0]
        else:
            # Of all s_r that make V_r the one with the least kinetic energy.
            decoupling, s = seen.unturned(rows), v[list(model.shape), :]
            mass = model.mass_matrix(q)
            spread = solve_positive_definite(mass, decoupling.T)
            square = decoupling @ spread
            momentum = solve_positive_definite(square, decoupling @ s - wrong)
            away = s - spread @ momentum
            w, residual = reached(away)
            change = along(
                lambda x: self.decoupling(x).T @ momentum - model.mass_matrix(x) @ (s - away),
                q,
                system.rate(q, v),
            )
            free = solve_positive_definite(mass, change)
            pushed = solve_positive_definite(square, seen.unturned(residual) - decoupling @ free)
            rate = free + spread @ pushed
            kept = decoupling.T @ solve_positive_definite(square, wrong)
            forces -= self.internal_damping * (mass @ away - kept)
            scales = constant(self.margins.scales[0])
            pivot, side = least_root(ca.diag(scales) @ square @ ca.diag(scales)), model.side(q)
        return _Following(away, x, w, rate, forces, ca.fmin(pivot, model.regularity(q)), side)


def _load_forces(
    robot: Mechanism, body: str, q: Vector, v: Vector, w: Vector, wdot: Vector, load: Array
) -> Array:
    """Forces (nv,), N and N m, that the velocities w with rates wdot need for a load (10,).

    The points of the load have the acceleration ``a + P r`` along the motion v, where r is the way
    from the body's origin. With first moment c and second moment S, the force is ``m a + P c``, and
    the moment ``c x a`` plus the axial vector of ``P S - S P^T``.
    """
    seat = robot.terms.seats[robot.index(body)]
    motion = Posture.of(robot, q).motions(v, wdot, robot.gravity, w)[seat.link]
    turn, squares = constant(seat.rotation), motion.squares
    linear = turn.T @ (motion.linear + motion.changed(constant(seat.translation)))
    diagonal = [squares[k] - squares[0] - squares[1] - squares[2] for k in range(3)]
    change = turn.T @ (motion.change + ca.diag(ca.vertcat(*diagonal))) @ turn
    mass, first, inertia = load[0], load[1:4], load[4:]
    xx, yy, zz, xy, xz, yz = ca.vertsplit(inertia)
    half = (xx + yy + zz) / 2
    second = ca.blockcat([[half - xx, -xy, -xz], [-xy, half - yy, -yz], [-xz, -yz, half - zz]])
    moved = change @ second
    moment = ca.vertcat(
        moved[2, 1] - moved[1, 2], moved[0, 2] - moved[2, 0], moved[1, 0] - moved[0, 1]
    )
    wrench = ca.vertcat(mass * linear + change @ first, cross(first, linear) + moment)
    return jacobian(robot, q, body).T @ wrench


def _load_gains(robot: Mechanism, gain: float) -> np.ndarray:
    """Gains (10,) of the parameters, from that of the mass: lengths count in the robot's size."""
    size = natural_units(robot)[1]
    return gain * size ** np.repeat([0.0, 2.0, 4.0], [1, 3, 6])


def _load_units(robot: Mechanism) -> np.ndarray:
    """Units (10,) of the parameters: the mass of the robot that can move, and its size."""
    root, size = natural_units(robot)
    return root**2 * size ** np.repeat([0.0, 1.0, 2.0], [1, 3, 6])
