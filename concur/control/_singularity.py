"""Configurations where outputs cannot be decoupled: lost directions, and joints that align."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from concur.codegen import LARGEST
from concur.control._core import LawCore
from concur.control._margins import natural_units
from concur.errors import ConcurError, NonFiniteError, OutputError, SingularConfigurationError
from concur.outputs import FunctionOutput, Output
from concur.robot import Mechanism, control_velocities

PART = 0.05
"""Share of the largest part of a motion from which on a joint takes part in it."""

NEAR = 0.02
"""Share of the largest singular value below which joints count as aligned."""

CURE = (
    "Choose outputs that different joints move, or another point: a point on the axle of wheels "
    "does not move along it, and a chassis that is steered moves in one way at a time."
)
"""What to do about outputs that are singular in every configuration."""

TURN = 0.05
"""Largest part of the motion of the joints, rad or m, by which an edge of the reach is found."""

STILL = 1e-6
"""Share of the joints' own motions up to which outputs rest, by rounding."""

SAMPLES = 16
"""Random configurations at which outputs are tried before a servo is made of them."""


def answer_scale(servo: LawCore) -> np.ndarray:
    """Controls that count as one: what the robot needs for an error as large as itself.

    Each control is measured by the square root of the inertia that it moves, in the neutral
    configuration, as is the acceleration of the outputs that the gains ask for at an error of the
    robot's size (a radian), with its weight. The ratio does not depend on units.
    """
    system, rows = servo.model.system, servo.margins.scales[0]
    q = system.neutral()
    mass = np.asarray(system.mass_matrix(q))
    gains = np.linalg.solve(servo.inertia, servo.stiffness) * rows[:, None]
    if isinstance(system, Mechanism):
        root, reach = natural_units(system)
        gains *= root * reach / rows
        weight = root * float(np.linalg.norm(system.gravity))
    else:
        pull = np.asarray(system.bias(q, np.zeros(system.nv)))
        weight = float(np.sqrt(np.maximum(0.0, pull @ np.linalg.solve(mass, pull))))
    natural = np.linalg.norm(gains) + weight or 1.0
    moved = np.eye(system.nv)[:, list(system.actuated_freedoms)]
    if getattr(system, "motors", ()):
        at = ca.SX.sym("q", system.nq)
        rows_of = control_velocities(system, at, ca.SX.eye(system.nv))
        moved = np.array(ca.Function("moved", [at], [ca.densify(rows_of)])(q)).T
    inertias = np.einsum("ik,ij,jk->k", moved, mass, moved)
    return np.asarray(natural * np.sqrt(inertias))


def check_decoupling(servo: LawCore) -> None:
    """Refuse a law that gives no torque at any sampled configuration.

    There the controls do not push all shape velocities, or the decoupling matrix is singular.
    """
    rng = np.random.default_rng(5)
    system = servo.model.system
    samples = [system.neutral(), *(system.random(rng) for _ in range(SAMPLES))]
    if all(lacks_leverage(servo, q) for q in samples):
        error = _unactuated(servo, samples[-1])
        raise OutputError(
            f"servo of `{servo.name}`, controls",
            expected=error.expected,
            came=f"in every configuration {error.came}",
            cure="Drive other joints, or correct the ratios of the motors.",
        )
    margins = []
    for q in samples:
        margins.append(servo.margin(q))
        if margins[-1] > 1e-7:
            return
    lost = lost_direction(servo, samples[-1])
    raise OutputError(
        f"servo of `{servo.name}`, `outputs`",
        expected="outputs whose motions can be commanded independently",
        came=f"a decoupling matrix that is singular in every configuration: {lost}",
        cure=CURE,
        margins=tuple(margins),
    )


def singular_error(servo: LawCore, q: np.ndarray, margin: float) -> ConcurError:
    """Build the error for a singular configuration.

    Parameters
    ----------
    servo : LawCore
        The law.
    q : numpy.ndarray
        Configuration, shape (nq,).
    margin : float
        Its margin.

    Returns
    -------
    SingularConfigurationError
        The error, to be raised.
    """
    return SingularConfigurationError(
        f"servo of `{servo.name}`",
        expected=f"a decoupling matrix with margin above {servo.singular_margin:.3g}",
        came=f"{margin:.3g}: {lost_direction(servo, q)}",
        cure="No torque is returned. Start from another configuration (not stretched, folded, or "
        "straight above a joint axis) or keep the reference away from here.",
        margin=margin,
        q=q,
    )


def refusal(servo: LawCore, q: np.ndarray, u: np.ndarray, pivot: float) -> ConcurError:
    """Build the error for controls u (nu,) of the law that must not be used.

    A `NonFiniteError` where the configuration is not to blame. The pivot is zero too if no torques
    within limits were found.
    """
    margin = servo.margin(q)
    if servo.linearizes and margin >= servo.margins.refused_below and lacks_leverage(servo, q):
        return _unactuated(servo, q)
    limited = servo.torque_limits is not None and pivot == 0.0
    if margin >= servo.margins.refused_below and (limited or not np.abs(u).sum() <= LARGEST):
        return NonFiniteError(
            f"servo of `{servo.name}`",
            expected="torques that are finite and below 1e18",
            came="none within the limits that could be vouched for" if limited else str(u),
            cure="The commanded acceleration is too large for this state; check the reference.",
        )
    if not servo.linearizes:
        return SingularConfigurationError(
            f"law of `{servo.name}`",
            expected=f"a `margin_bound` of {servo.singular_margin:.3g} or more",
            came=f"{pivot:.3g}",
            cure="No torque is returned. Start from another configuration, or avoid this one.",
            margin=pivot,
            q=q,
        )
    return singular_error(servo, q, min(margin, pivot))


def vouched(servo: LawCore, q: np.ndarray, u: np.ndarray, pivot: float) -> np.ndarray:
    """Controls u that the law gave at q, or an error with the reason why they must not be used."""
    margin = servo.margin(q)
    if margin < servo.margins.refused_below:
        raise singular_error(servo, q, margin)
    # With limits or damping the pivot is about wheels, actuation and a failed program;
    # otherwise it is a lower bound of the margin too, which is checked itself.
    guarded = servo.torque_limits is not None or servo.damping_threshold is not None
    low = pivot < servo.singular_margin
    if not np.abs(u).sum() <= LARGEST or (low and (guarded or lacks_leverage(servo, q))):
        raise refusal(servo, q, u, pivot)
    return u


def passed_error(servo: LawCore, q: np.ndarray) -> ConcurError:
    """Build the error for a singular configuration between the tick at q and the one before."""
    margin = servo.margin(q)
    return SingularConfigurationError(
        f"servo of `{servo.name}`",
        expected="a motion without singular configurations since the tick before",
        came="one that jumped over a singular configuration: a determinant changed its sign, or "
        f"the torques leapt; margin behind it {margin:.3g}",
        cure="No torque is returned. Tick more often, keep the reference away from there, or call "
        "`reset()` before a state that does not follow from the one before.",
        margin=margin,
        q=q,
    )


def lacks_leverage(servo: LawCore, q: np.ndarray) -> bool:
    """Whether the controls do not push the shape in some direction, where wheels determine it.

    That is where the model's `leverage` is below `singular_margin`.
    """
    if not np.isfinite(servo.model.input_matrix(q)).all():
        return False
    return servo.model.leverage(q)[0] < min(servo.singular_margin, 1.0)


def _unactuated(servo: LawCore, q: np.ndarray) -> ConcurError:
    """Build the error for controls that do not push the shape in some direction."""
    margin = servo.model.leverage(q)[0]
    return SingularConfigurationError(
        f"servo of `{servo.name}`",
        expected=f"controls that act on all shape velocities, with margin above "
        f"{servo.singular_margin:.3g}",
        came=f"{margin:.3g}: {_unpushed(servo, q)}",
        cure="No torque is returned. Drive other joints, or keep the reference away from here.",
        margin=margin,
        q=q,
    )


def _unpushed(servo: LawCore, q: np.ndarray) -> str:
    """Name the controls, and the shape velocities that they push least."""
    names = ", ".join(servo.model.control_names) or "no controls"
    return f"{names} do not push along {servo.model.leverage(q)[1]}"


def lost_direction(servo: LawCore, q: np.ndarray) -> str:
    """Describe the output motion that no shape velocity makes.

    Parameters
    ----------
    servo : LawCore
        The law.
    q : numpy.ndarray
        Configuration, shape (nq,).

    Returns
    -------
    str
        A clause that names the outputs and the direction, in the axes of their bodies. At an edge
        of the reach the direction points outwards, and the clause states it.
    """
    if servo.model.regularity(q) < servo.singular_margin:
        system = servo.model.system
        names = ", ".join(system.freedom_names[i] for i in servo.model.dependent)
        if not isinstance(system, Mechanism):
            return f"the constraints no longer determine {names}"
        why = system.lost_steering(q, 10.0 * servo.singular_margin)
        return f"the rolling constraints no longer determine {names}" + (f": {why}" if why else "")
    if not servo.size:
        return "the law follows no output"
    if lacks_leverage(servo, q):
        return _unpushed(servo, q)
    scaled = servo.margins.scales[0][:, None] * servo.decoupling(q)
    direction = np.linalg.svd(scaled)[0][:, -1]
    # A light wheel beside a heavy arm moves little per speed, but as much per energy.
    ease = 1.0 / np.sqrt(np.diag(servo.model.mass_matrix(q)))
    joints, edge = "", 0.0
    if servo.size == servo.ns and np.isfinite(scaled * ease).all():
        values, rows = np.linalg.svd(scaled * ease)[1:]
        joints = _alignment(servo, values, rows[-1])
        edge = _outwards(servo, q, direction, scaled, rows[-1] * ease)
    direction *= edge or 1.0
    past = " and it reaches no farther that way" if edge else ""
    clauses, start = [], 0
    for output in servo.outputs:
        part = direction[start : start + output.dim]
        start += output.dim
        if np.linalg.norm(part) > 0.2:
            clauses.append(_clause(servo, output, part / np.linalg.norm(part), q, not edge))
    if len(clauses) == 1:
        return f"nothing moves output {clauses[0]}{past}{joints}"
    return f"outputs {' and '.join(clauses)} cannot be moved independently{joints}"


def _outwards(
    servo: LawCore, q: np.ndarray, direction: np.ndarray, scaled: np.ndarray, motion: np.ndarray
) -> float:
    """Sign of a lost direction that points out of the reach: both ways of the joints lead inwards.

    The motion of the joints that leaves the outputs at rest moves them in its square. Zero where
    that is to either side or nowhere, as at a wrist.
    """
    model, robot = servo.model, servo.model.system
    if not isinstance(robot, Mechanism):
        return 0.0
    step = motion * TURN / np.abs(motion).max()
    here, sizes = servo.output(q), []
    for way in (-1.0, 1.0):
        moved = robot.normalize(robot.integrate(q, model.lift(q)[0] @ (way * step)))
        error = np.asarray(servo.pose_error(moved, here))
        sizes.append(float(direction @ (servo.margins.scales[0] * error)))
    apart, still = min(sizes, key=abs), STILL * float(np.linalg.norm(scaled * step))
    return float(np.sign(apart)) if sizes[0] * sizes[1] > 0.0 and abs(apart) > still else 0.0


def _alignment(servo: LawCore, values: np.ndarray, motion: np.ndarray) -> str:
    """Name the joints that align, by the singular values and the motion of the least one."""
    whole = isinstance(servo.model.system, Mechanism) and not any(
        isinstance(output, FunctionOutput) for output in servo.outputs
    )
    if not whole or not values[-1] < NEAR * values[0]:
        return ""
    return f"; {aligned_joints(servo.model.shape_names, motion)}"


def _clause(servo: LawCore, output: Output, part: np.ndarray, q: np.ndarray, either: bool) -> str:
    """Output and direction; its largest part is positive if either sign will do."""
    if output.axes is not None:
        spatial = np.zeros(3)
        spatial[["xyz".index(axis) for axis in output.axes]] = part
        if output.relative_to is not None:
            spatial = servo.model.robot.pose(q, output.relative_to)[:3, :3] @ spatial
        inside = servo.model.robot.pose(q, output.body)[:3, :3].T @ spatial
        inside *= np.sign(inside[np.argmax(np.abs(inside))]) if either else 1.0
        shown = ", ".join(f"{x:.2g}" for x in np.round(inside, 3) + 0.0)
        return f"`{output.name}` along ({shown}) of body `{output.body}`"
    names = zip(part, output.coordinate_names, strict=True)
    shown = " ".join(f"{x:+.2g} {name}" for x, name in names if abs(x) > 0.1)
    return f"`{output.name}` along {shown}"


def aligned_joints(motions: Sequence[str], parts: np.ndarray) -> str:
    """Name the joints whose motions cancel at the outputs.

    `parts` are the sizes of the freedoms `motions` in a motion that leaves the outputs at rest, in
    comparable units.
    """
    sizes = np.abs(parts)
    taking = [name for name, size in zip(motions, sizes, strict=True) if size > PART * sizes.max()]
    if len(taking) == 1:
        return f"joint `{taking[0]}` moves no output"
    return f"joints {', '.join(f'`{name}`' for name in taking)} align"
