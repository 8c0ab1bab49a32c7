"""When the outputs cannot be decoupled: measure it, and say which direction is lost and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from concur.codegen import LARGEST
from concur.control._alignment import NEAR, aligned_joints, immobile_body
from concur.errors import ConcurError, NonFiniteError, OutputError, SingularConfigurationError
from concur.mechanism._size import robot_size
from concur.reduction import UNDETERMINED

if TYPE_CHECKING:
    from concur.control._output import Output
    from concur.control._servo import Servo

SINGULAR = 1e-3
"""Default margin below which a configuration counts as singular."""

SAMPLES = 16
"""Random configurations at which outputs are tried before a servo is made of them."""


def decoupling_scale(servo: Servo) -> np.ndarray:
    """Factors that make the rows of the decoupling matrix comparable.

    Parameters
    ----------
    servo : Servo
        The servo.

    Returns
    -------
    numpy.ndarray
        Shape (size,): square root of the mass that can move for linear rows, times the
        robot's size for angular ones.
    """
    root, reach = _size(servo)
    units = [unit for output in servo.outputs for unit in output.coordinate_units]
    return np.array([root if unit == "m" else root * reach for unit in units])


def _size(servo: Servo) -> tuple[float, float]:
    """Square root of the mass that can move, and length of the robot, m."""
    robot = servo.model.robot
    moving = [
        body.inertia.mass
        for i, body in enumerate(robot.bodies)
        if any(robot.bodies[j].joint.nv for j in robot.path(i))
    ]
    return float(np.sqrt(sum(moving))), robot_size(robot)


def answer_scale(servo: Servo) -> np.ndarray:
    """Controls that count as one: what the robot needs for an error of its own size.

    Each control is measured by the square root of the inertia that it moves, in the neutral
    configuration, as is the acceleration of the outputs that the gains ask for at an error of the
    robot's size (a radian), with its weight. The ratio does not depend on units.

    Parameters
    ----------
    servo : Servo
        The servo.

    Returns
    -------
    numpy.ndarray
        Shape (nu,), N and N m.
    """
    robot, (root, reach) = servo.model.robot, _size(servo)
    rows = servo.scales[0]
    gains = np.linalg.solve(servo.inertia, servo.stiffness) * rows[:, None] * (root * reach / rows)
    natural = np.linalg.norm(gains) + root * float(np.linalg.norm(robot.gravity))
    driven = list(robot.actuated_freedoms)
    inertias = np.diag(robot.mass_matrix(robot.neutral()))[driven]
    return np.asarray(natural * np.sqrt(inertias))


def decoupling_margins(
    servo: Servo, decoupling: np.ndarray, mass_matrix: np.ndarray, regularity: np.ndarray
) -> np.ndarray:
    """Margins of the decoupling matrix at many configurations, as `Servo.margin` has them.

    Parameters
    ----------
    servo : Servo
        The servo.
    decoupling : numpy.ndarray
        J H, shape (k, size, ns).
    mass_matrix : numpy.ndarray
        Reduced mass matrices, shape (k, ns, ns).
    regularity : numpy.ndarray
        Regularities of the model, shape (k,).

    Returns
    -------
    numpy.ndarray
        Shape (k,). Where the wheels do not determine the base it is the regularity; where the
        lift or the mass matrix is singular or a number is not finite, zero.
    """
    scaled = servo.scales[0][:, None] * decoupling
    finite = np.isfinite(scaled).all(axis=(1, 2)) & np.isfinite(mass_matrix).all(axis=(1, 2))
    determined = regularity >= UNDETERMINED
    sound = determined & finite
    least = np.where(np.isnan(regularity) | (determined & ~finite), 0.0, regularity)
    values = _least_values(scaled[sound], mass_matrix[sound])
    least[sound] = np.where(least[sound] == 1.0, values, np.minimum(values, least[sound]))
    return least


def _least_values(rows: np.ndarray, metric: np.ndarray) -> np.ndarray:
    """Smallest singular values of rows metric^(-1/2); zero where the metric is not positive."""
    try:
        factor = np.linalg.cholesky(metric)
    except np.linalg.LinAlgError:
        # One bad matrix spoils the whole stack: it is found by halving.
        half = len(rows) // 2
        if not half:
            return np.zeros(1)
        parts = (slice(None, half), slice(half, None))
        return np.concatenate([_least_values(rows[part], metric[part]) for part in parts])
    solved = np.linalg.solve(factor, rows.transpose(0, 2, 1))
    return np.asarray(np.linalg.svd(solved, compute_uv=False)[:, -1])


def check_decoupling(servo: Servo) -> None:
    """Refuse outputs that cannot be decoupled in any configuration.

    Parameters
    ----------
    servo : Servo
        The servo.

    Raises
    ------
    OutputError
        If the decoupling matrix is singular at all sampled configurations.
    """
    rng = np.random.default_rng(5)
    robot = servo.model.robot
    samples = [robot.neutral(), *(robot.random(rng) for _ in range(SAMPLES))]
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
        cure=_cure(servo, samples),
        margins=tuple(margins),
    )


def singular_error(servo: Servo, q: np.ndarray, margin: float) -> ConcurError:
    """Build the error for a singular configuration.

    Parameters
    ----------
    servo : Servo
        The servo.
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
        cure="No torque is given out. Start from another configuration (not stretched, folded, or "
        "straight above a joint axis) or keep the reference away from here.",
        margin=margin,
        q=q,
    )


def refusal(servo: Servo, q: np.ndarray, u: np.ndarray, pivot: float) -> ConcurError:
    """Build the error for a result of the law that must not be used.

    Parameters
    ----------
    servo : Servo
        The servo.
    q : numpy.ndarray
        Configuration, shape (nq,).
    u : numpy.ndarray
        Controls that the law gave, shape (nu,).
    pivot : float
        Smallest pivot that it met; zero too if no torques within limits were found.

    Returns
    -------
    SingularConfigurationError or NonFiniteError
        The error, to be raised: the second where the configuration is not to blame.
    """
    margin = servo.margin(q)
    if margin >= servo.refused_below and lacks_leverage(servo, q):
        return _unactuated(servo, q)
    limited = servo.torque_limits is not None and pivot == 0.0
    if margin >= servo.refused_below and (limited or not np.abs(u).sum() <= LARGEST):
        return NonFiniteError(
            f"servo of `{servo.name}`",
            expected="torques that are finite and below 1e18",
            came="none within the limits that could be vouched for" if limited else str(u),
            cure="The demand is too large for this state; check the reference.",
        )
    return singular_error(servo, q, min(margin, pivot))


def passed_error(servo: Servo, q: np.ndarray) -> ConcurError:
    """Build the error for a singular configuration between a tick and the one before.

    Parameters
    ----------
    servo : Servo
        The servo.
    q : numpy.ndarray
        Configuration behind it, shape (nq,).

    Returns
    -------
    SingularConfigurationError
        The error, to be raised.
    """
    margin = servo.margin(q)
    return SingularConfigurationError(
        f"servo of `{servo.name}`",
        expected="a motion without singular configurations since the tick before",
        came="one that jumped over a singular configuration: a determinant changed its sign, or "
        f"the torques leapt; margin behind it {margin:.3g}",
        cure="No torque is given out. Tick more often, keep the reference away from there, or call "
        "`reset()` before a state that does not follow from the one before.",
        margin=margin,
        q=q,
    )


def lacks_leverage(servo: Servo, q: np.ndarray) -> bool:
    """Whether the controls do not push the shape in some direction, where wheels determine it.

    Parameters
    ----------
    servo : Servo
        The servo.
    q : numpy.ndarray
        Configuration, shape (nq,).

    Returns
    -------
    bool
        Whether the least singular value of H^T B is below `singular_margin` times the largest.
    """
    inputs = servo.model.input_matrix(q)
    if not np.isfinite(inputs).all():
        return False
    sizes = np.linalg.svd(inputs, compute_uv=False)
    return bool(sizes[-1] < servo.singular_margin * sizes[0])


def _unactuated(servo: Servo, q: np.ndarray) -> ConcurError:
    """Build the error for controls that do not push the shape in some direction."""
    directions, sizes, _ = np.linalg.svd(servo.model.input_matrix(q))
    direction, margin = directions[:, -1], float(sizes[-1] / sizes[0])
    direction *= np.sign(direction[np.argmax(np.abs(direction))])
    names = zip(direction, servo.model.shape_names, strict=True)
    shown = " ".join(f"{x:+.2g} {name}" for x, name in names if abs(x) > 0.1)
    return SingularConfigurationError(
        f"servo of `{servo.name}`",
        expected=f"controls that act on all shape velocities, with margin above "
        f"{servo.singular_margin:.3g}",
        came=f"{margin:.3g}: {', '.join(servo.model.control_names)} do not push along {shown}",
        cure="No torque is given out. Drive other joints, or keep the reference away from here.",
        margin=margin,
        q=q,
    )


def lost_direction(servo: Servo, q: np.ndarray) -> str:
    """Describe the output motion that no shape velocity makes.

    Parameters
    ----------
    servo : Servo
        The servo.
    q : numpy.ndarray
        Configuration, shape (nq,).

    Returns
    -------
    str
        A clause that names the outputs and the direction, in the axes of their bodies.
    """
    if servo.model.regularity(q) < servo.singular_margin:
        names = ", ".join(servo.model.robot.freedom_names[i] for i in servo.model.dependent)
        return f"the rolling constraints no longer determine {names}"
    scaled = servo.scales[0][:, None] * servo.decoupling(q)
    direction = np.linalg.svd(scaled)[0][:, -1]
    joints = _alignment(servo, q, scaled)
    clauses, start = [], 0
    for output in servo.outputs:
        part = direction[start : start + output.dim]
        start += output.dim
        if np.linalg.norm(part) > 0.2:
            clauses.append(_clause(servo, output, part / np.linalg.norm(part), q))
    if len(clauses) == 1:
        return f"nothing moves output {clauses[0]}{joints}"
    return f"outputs {' and '.join(clauses)} cannot be moved independently{joints}"


def _alignment(servo: Servo, q: np.ndarray, scaled: np.ndarray) -> str:
    """Name the joints that align; left over freedoms hide them, and then nothing is said."""
    if servo.size != servo.ns or not np.isfinite(scaled).all():
        return ""
    # A light wheel beside a heavy arm moves little per speed, but as much per energy.
    ease = 1.0 / np.sqrt(np.diag(servo.model.mass_matrix(q)))
    values, rows = np.linalg.svd(scaled * ease)[1:]
    if not values[-1] < NEAR * values[0]:
        return ""
    names = servo.model.shape_names
    return f"; {aligned_joints(servo.model.robot, servo.outputs, q, names, rows[-1])}"


def _clause(servo: Servo, output: Output, part: np.ndarray, q: np.ndarray) -> str:
    if output.axes is not None:
        spatial = np.zeros(3)
        spatial[["xyz".index(axis) for axis in output.axes]] = part
        inside = servo.model.robot.pose(q, output.body)[:3, :3].T @ spatial
        inside *= np.sign(inside[np.argmax(np.abs(inside))])
        shown = ", ".join(f"{x:.2g}" for x in np.round(inside, 3) + 0.0)
        return f"`{output.name}` along ({shown}) of body `{output.body}`"
    names = zip(part, output.coordinate_names, strict=True)
    shown = " ".join(f"{x:+.2g} {name}" for x, name in names if abs(x) > 0.1)
    return f"`{output.name}` along {shown}"


def _cure(servo: Servo, samples: list[np.ndarray]) -> str:
    """Point at an output that lies on the wheel axle, the commonest cause."""
    robot = servo.model.robot
    for output in servo.outputs:
        if output.axes is None or output.body != robot.base.name:
            continue
        columns = robot.jacobian(samples[-1], output.body) @ servo.model.lift(samples[-1])[0]
        at_point, beside = (
            columns[:3] - np.cross(point, columns[3:].T).T
            for point in (np.array(output.point), np.array(output.point) + 1.0)
        )
        axes = robot.pose(samples[-1], output.body)[:3, :3].T
        columns_used = ["xyz".index(axis) for axis in output.axes]
        used = [i for i in range(3) if np.abs(axes[i, columns_used]).max() > 0.1]
        for i in used:
            if np.abs(at_point[i]).max() < 1e-12 < np.abs(beside[i]).max():
                axis = "xyz"[i]
                return (
                    f"The point {tuple(output.point)} of `{output.body}` lies on the wheel axle, "
                    f"where the wheels forbid any motion along {axis}: move it off the axle, "
                    "forwards or backwards."
                )
    return immobile_body(servo, samples) or (
        "Choose outputs that different joints move, or another point."
    )
