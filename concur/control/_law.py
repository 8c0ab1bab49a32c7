"""The law as one graph: from state and reference to torques.

``nu = I^-1 (B^T KP x - KD ve) + Ad gammaddot_body - ad_(r^-1 rdot) Ad gammadot_body`` is the
commanded output acceleration (5.4.30)-(5.4.33); the law solves ``J H sdot = nu - b`` for
the shape acceleration and takes the torque from one Newton-Euler pass. The sign of u is that
of a physical force, the opposite of the thesis's.

The equation is solved exactly if there are as many shape velocities as output coordinates, with a
rule for the internal motion if there are more; on request with damping near singular
configurations, and within torque limits. Of more controls than shape velocities the least are
taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add, mul
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.control._core import OUTPUTS, LawCore, approach
from concur.control._margins import Margins, column_groups
from concur.control._sharing import minus_inverse, share
from concur.control._tracking import command
from concur.outputs import output_motion
from concur.reduction import UNDETERMINED, ReducedModel
from concur.robot import (
    articulated,
    factors_by_links,
    least_eigenvalue,
    side_of_factor,
    solve_positive_definite,
)

SMALL = 1e-3
"""Share of the zone of damping that keeps the rows of outputs apart from the rule's motion."""

GROUP = 3
"""Columns of which a lower bound of the margin takes the minors, as many at once."""

ROUNDED = 1e-12
"""Share of the product of the squares of columns that their minors may lose."""

MANY = 10
"""Shape velocities beyond which articulated bodies are shorter than a mass matrix's factor."""


class ShapeCommand(NamedTuple):
    """Commanded shape acceleration at one instant, with the equation that it solves.

    Parameters
    ----------
    decoupling : casadi.SX
        J H, shape (size, ns).
    residual : casadi.SX
        nu - b: output acceleration that the shape acceleration has to make, shape (size,).
    shape_acceleration : casadi.SX
        sdot that makes it, shape (ns,).
    pivot : casadi.SX
        Smallest pivot met, or a lower bound of the margin, a number without unit; 1 with damping.
    usual : casadi.SX
        The same in the scales of damping, in which it is 1 in a usual configuration.
    least_usual : casadi.SX
        A lower bound of it that takes fewer operations.
    missed : casadi.SX
        Part of the residual that damping does not achieve, shape (size,): exactly zero where
        nothing is damped.
    side : casadi.SX
        1 or -1: where it differs between two configurations on a path, a singular one that must not
        be passed lies in between.
    error : casadi.SX
        Pose error, shape (size,).
    inverse : casadi.SX
        As of `solve_scaled`, if there are as many outputs as shape velocities and no damping.
    """

    decoupling: Array
    residual: Array
    shape_acceleration: Array
    pivot: Array
    usual: Array
    least_usual: Array
    missed: Array
    side: Array
    error: Array
    inverse: Array


def shape_command(
    servo: LawCore,
    q: Vector,
    v: Vector,
    inputs: Mapping[str, Array],
    threshold: float | None,
    margin: Array | None = None,
) -> ShapeCommand:
    """Linearize: the shape acceleration for all velocities v (nv,) and the other inputs by name.

    Below a threshold of the margin the equation is solved with damping. The margin is a bound of
    the decoupling margin that is known already; default: it is computed here.
    """
    model = servo.model
    seen = output_motion(model.system, servo.outputs, q, v, base_axes=True)
    poses = zip((output.lie for output in servo.outputs), seen.poses, strict=True)
    commanded, error = command(servo.error_dynamics, poses, seen.velocity, inputs)
    jacobian = seen.jacobian
    residual = seen.turned(commanded - seen.acceleration) - jacobian @ model.velocity_drift(q, v)
    decoupling = jacobian @ model.lift(q)[0]
    if servo.redundancy is None and threshold is None:
        # The lift's poles turn this sign too.
        turned = decoupling
        solution, least, side, volume, inverse = solve_scaled(
            decoupling, residual, *servo.margins.scales
        )
        decoupling, residual = seen.unturned(decoupling), seen.unturned(residual)
        missed, usual, below = ca.SX(servo.size, 1), least, least
        if servo.margins.usual is not None:
            # A damped law may pass singular configurations of its outputs.
            usual, side = usual_margin(servo, decoupling), model.side(q)
            rows, columns = servo.margins.scales
            matrix, scales = decoupling, servo.margins.usual
            if not model.takes_momentum:  # the limits of a robot that floats need it turned back
                parts = [(part.velocity.shape[0], part.turn is not None) for part in seen.parts]
                matrix, scales = turned, _smallest_usual(servo.margins, parts)
            scaled = ca.diag(constant(scales)) @ matrix @ ca.diag(constant(1 / columns))
            groups = column_groups(model, servo.decoupling, servo.margins.usual, GROUP)
            below = _below_usual(scaled, volume * float(np.prod(scales / rows)), groups)
        return ShapeCommand(
            decoupling, residual, solution, least, usual, below, missed, side, error, inverse
        )

    # Squares of the matrix are graded along the outputs' axes, where light wrists turn: there
    # elimination loses nothing.
    decoupling, residual = seen.unturned(decoupling), seen.unturned(residual)
    mass = metric = model.mass_matrix(q)
    pull, s = ca.SX(servo.ns, 1), v[list(model.shape), :]
    if servo.redundancy is not None:
        metric, pull = servo.redundancy.aim(model, q, v)
    (plain, _), in_use = servo.margins.scales, servo.margins.usual
    rows = plain if threshold is None or in_use is None else in_use
    share = None if in_use is None else ca.diag(constant(in_use / rows))
    rows = constant(rows)
    scaled = ca.diag(rows) @ decoupling
    own, pushed = _mobility(servo, q, mass, scaled)
    pivot, square = least_root(own), own
    usual = pivot if share is None else least_root(share @ own @ share)
    if not _by_energy(servo):
        spread = solve_positive_definite(metric, scaled.T)
        square, pushed = scaled @ spread, spread.__matmul__
    missed, side, identity = ca.SX(servo.size, 1), model.side(q), ca.SX.eye(servo.size)
    if threshold is None:
        solved = solve_positive_definite(square, rows * (residual - decoupling @ pull))
    else:
        # Directions far above the threshold are hardly damped: those of a singular value sigma by
        # the share (1 + (sigma / threshold)^4)^-2. In the rule's metric the zone's edge is
        # where it is in the kinetic energy's.
        near = own / threshold**2
        square_of = ca.triu2symm(ca.triu(identity + near @ near))
        inner = solve_positive_definite(square_of, identity)
        gate = ca.fmax(0.0, 1 - ((usual if margin is None else margin) / threshold) ** 2) ** 2
        unit = ca.trace(square) / ca.trace(own)
        damping = 4 * gate * threshold**2 * unit * (inner @ inner)
        # There the motion comes to rest, beside the rule's pull.
        resting = -2.0 * approach(servo) * s
        if servo.redundancy is None:
            pull = resting
        else:
            regular = square + SMALL * threshold**2 * unit * identity
            pull += pushed(solve_positive_definite(regular, scaled @ (resting - pull)))
        damped = ca.triu2symm(ca.triu(square + damping))
        solved = solve_positive_definite(damped, rows * (residual - decoupling @ pull))
        missed, pivot = damping @ solved / rows, ca.SX(1)
    solution = pull + pushed(solved)
    none = ca.SX(0, 0)
    return ShapeCommand(
        decoupling, residual, solution, pivot, usual, usual, missed, side, error, none
    )


def usual_margin(servo: LawCore, decoupling: Array) -> Array:
    """`ShapeCommand.usual` of as many outputs as shape velocities."""
    rows, columns = servo.margins.usual, servo.margins.scales[1]
    scaled = ca.diag(constant(rows)) @ decoupling @ ca.diag(1 / columns)
    size = ca.norm_fro(minus_inverse(ca.chol(scaled @ scaled.T)))
    return ca.if_else(size < ca.inf, 1.0 / size, 0.0)


def _smallest_usual(margins: Margins, parts: Sequence[tuple[int, bool]]) -> np.ndarray:
    """Scales of damping of rows in base axes, none above that of any of the outputs' own axes.

    `parts` are numbers of rows, and whether these are turned against the outputs' axes: three
    components of a vector then share a factor.
    """
    smallest, start = np.array(margins.usual), 0
    for count, turned in parts:
        own = smallest[start : (start := start + count)]
        if turned:
            own[:] = np.repeat(own.reshape(-1, 3).min(axis=1), 3)
    return smallest


def _below_usual(scaled: Array, volume: Array, groups: Sequence[Sequence[int]]) -> Array:
    """A lower bound of `ShapeCommand.usual` from the scaled matrix and its volume.

    With the squares P of groups of its columns, and S of all, Schur's complement Y of a group has
    ``tr Y^-1 = e(Y) / det Y``, where e is the sum of the principal minors but for one row. Since Y
    is below P, e(Y) <= e(P), and after Fischer ``det Y = det S / det S'`` is at least det S over
    the determinants of the other groups. The sum over groups is above tr S^-1; the less, the less
    columns of different groups resemble each other.
    """
    found = []
    for group in groups:
        own = scaled[:, group].T @ scaled[:, group]
        sizes = ca.vertsplit(ca.diag(own))
        minors, whole = ca.SX(1), sizes[0]
        if len(sizes) > 1:
            # Of dependent columns rounding may leave less than nothing.
            pairs = [(i, j) for j in range(len(sizes)) for i in range(j)]
            left = [(1.0 + ROUNDED) * sizes[i] * sizes[j] - own[i, j] ** 2 for i, j in pairs]
            minors, whole = reduce(add, sizes), left[0]
        if len(sizes) == GROUP:
            minors, (a, b, c) = reduce(add, left), (own[1, 2], own[0, 2], own[0, 1])
            whole = sizes[2] * left[0] - a * (sizes[0] * a - c * b) + b * (c * a - b * sizes[1])
            whole += ROUNDED * reduce(mul, sizes)
        found.append((minors, whole))
    total = ca.SX(0)
    for k, (minors, _) in enumerate(found):
        total += reduce(mul, (whole for j, (_, whole) in enumerate(found) if j != k), minors)
    return ca.fabs(volume) / ca.sqrt(total)


class LawParts(NamedTuple):
    """The law without limits: results by name, and what limits need of it.

    Parameters
    ----------
    results : dict of str to casadi.SX
        Those in `OUTPUTS`.
    shape_acceleration : casadi.SX
        sdot, shape (ns,).
    margins : casadi.SX
        Bounds of the margin: of the outputs, and that of wheels and controls, shape (2,).
    least_usual, decoupling, inverse : casadi.SX
        As of `ShapeCommand`.
    """

    results: dict[str, Any]
    shape_acceleration: Array
    margins: Array
    least_usual: Array
    decoupling: Array
    inverse: Array


def law_parts(servo: LawCore, inputs: Mapping[str, Array], threshold: float | None) -> LawParts:
    """The law without limits, from symbols by name; damped below a threshold of the margin."""
    q, v, model = inputs["q"], all_velocities(servo, inputs), servo.model
    found = shape_command(servo, q, v, inputs, threshold)
    forces = model.shape_forces(q, v, found.shape_acceleration)
    torques, leverage, side = controls(model, q, forces, servo.torque_weights)
    others = ca.fmin(model.regularity(q), leverage)
    results = {"u": torques, "pivot": ca.fmin(found.pivot, others), "missed": found.missed}
    results |= {"scale": 1, "side": found.side * side, "active": ca.SX(0, 1)}
    rate = integral_rate(servo, found.error, found.missed) if servo.nz else ca.SX(0, 1)
    margins = ca.vertcat(found.pivot, others)
    results |= {"zdot": rate}
    known = found.least_usual, found.decoupling, found.inverse
    return LawParts(results, found.shape_acceleration, margins, *known)


def integral_rate(servo: LawCore, error: Array, missed: Array) -> Array:
    """Rate of the integral: the pose error, with conditional integration against windup.

    Where limits or damping leave out a part of the commanded acceleration of an output along its
    error, a larger integral could not act: it stays as it is. Lengths and angles count as in the
    decoupling margin.
    """
    if servo.torque_limits is None and servo.damping_threshold is None:
        return error
    ends = np.cumsum([0, *(output.dim for output in servo.outputs)]).tolist()
    weighted = ca.vertsplit(ca.DM(servo.margins.scales[0] ** 2) * missed, ends)
    parts = [
        ca.if_else(ca.dot(lost, away) > 0.0, 0.0, away)
        for lost, away in zip(weighted, ca.vertsplit(error, ends), strict=True)
    ]
    return ca.vertcat(*parts)


def all_velocities(law: LawCore, given: Mapping[str, Vector]) -> Vector:
    """All velocities of the robot (nv,), from the inputs of the law's graph by name."""
    if law.use_measured_velocity:
        return given["s"]
    return law.model.velocity(given["q"], given["s"], given.get("momentum"))


def law_graph(inputs: Mapping[str, Array], results: Mapping[str, Any]) -> ca.Function:
    """Graph of a law from symbols by name and all results by name, those of `OUTPUTS`."""
    kind = type(inputs["q"])
    dense = [ca.densify(kind(results[name])) for name in OUTPUTS]
    options = {"cse": True} if kind is ca.SX else {}
    return ca.Function("law", [*inputs.values()], dense, [*inputs], OUTPUTS, options)


def side(servo: LawCore, q: Vector) -> Array:
    """Side of singular configurations on which a configuration is: 1 or -1, as of the law.

    Where it differs between two configurations on a path, a singular one lies in between. A damped
    law may pass those of its outputs, so they do not count.

    Parameters
    ----------
    servo : LawCore
        The law.
    q : casadi.SX
        Configuration, shape (nq,).

    Returns
    -------
    casadi.SX
        1 or -1.
    """
    own = servo.model.side(q)
    if not servo.size or not servo.linearizes:
        return own
    if servo.redundancy is None and servo.damping_threshold is None:
        own = solve_scaled(servo.decoupling(q), ca.SX(servo.size, 1), *servo.margins.scales)[2]
    return own * controls(servo.model, q, ca.SX(servo.ns, 1))[2]


def solve_scaled(
    matrix: ca.SX, right: Array, rows: np.ndarray, columns: np.ndarray
) -> tuple[Array, Array, Array, Array, Array]:
    """Solve a square equation; `least` and `side` as from `solve_square`, of the scaled matrix.

    Rows are multiplied by `rows` and columns divided by `columns`, shape (n,); the solution is that
    of the equation as given. The other results are the determinant of the scaled matrix, but for
    its sign; and the inverse of the matrix whose rows alone are scaled, but for a rotation of its
    columns, shape (n, n).
    """
    if not matrix.is_dense():
        scaled = ca.diag(constant(rows)) @ matrix @ ca.diag(constant(1 / columns))
        solved, least, _, side, volume, inverse = solve_square(scaled, rows * right)
        return solved / columns, least, side, volume, ca.diag(1 / columns) @ inverse
    # A common factor and the columns' scales need not go through the elimination.
    scaled = ca.diag(constant(rows / rows[0])) @ matrix
    upper, turned = _triangle(scaled, constant(rows / rows[0]) * right)
    minus = minus_inverse(upper)
    solution: list[Array] = []
    for k in reversed(range(len(rows))):
        known = -turned[k]
        for i, entry in enumerate(solution):
            known += upper[k, len(rows) - 1 - i] * entry
        solution.append(known * minus[k, k])
    square = ca.SX(0)
    for k, column in enumerate(columns / rows[0]):
        square += column**2 * ca.sumsqr(minus[k, k:])
    least = ca.if_else(square < ca.inf, 1.0 / ca.sqrt(square), 0.0)
    volume = reduce(mul, [upper[k, k] for k in range(len(rows))])
    unit = float(np.prod(rows[0] / columns))
    solved = ca.vertcat(*reversed(solution))
    return solved, least, ca.sign(volume), unit * volume, minus / rows[0]


def _triangle(matrix: Array, right: Array) -> tuple[Array, Array]:
    """Upper triangle of a dense matrix, and the right side, by Householder's reflections."""
    n = matrix.shape[0]
    both = ca.horzcat(matrix, right)
    for k in range(n - 1):
        first, rest = both[k, k], both[k + 1 :, k]
        size = ca.sqrt(first * first + ca.sumsqr(rest))
        end = -ca.copysign(size, first)
        mirror = ca.vertcat(first - end, rest)
        weight = -1 / (end * mirror[0])
        for j in range(k + 1, n + 1):
            both[k:, j] -= (weight * ca.dot(mirror, both[k:, j])) * mirror
        both[k, k] = end
        both[k + 1 :, k] = 0.0
    return both[:, :n], both[:, n]


def solve_square(matrix: Array, right: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
    """Solve by Householder QR: solution, least, largest, side, volume, inverse.

    `least` is a lower bound of the smallest singular value, at worst sqrt(n) too small: one over
    the Frobenius norm of the inverse. The smallest pivot can be a hundred times too large.
    `largest` bounds the largest singular value: the Frobenius norm. `side` is the sign of the
    determinant, up to one that is the same for all matrices of its sparsity, and `volume` the
    determinant but for its sign. `inverse` is that of the matrix but for a rotation of its columns.
    """
    reflectors, upper, scales, rows, columns = ca.qr_sparse(matrix)
    solution = ca.qr_solve(right, reflectors, upper, scales, rows, columns)
    # A zero on the diagonal leaves NaN behind, which must not pass for a large number.
    minus = minus_inverse(upper)
    size = ca.norm_fro(minus)
    least = ca.if_else(size < ca.inf, 1.0 / size, 0.0)
    volume = reduce(mul, [upper[k, k] for k in range(matrix.shape[0])])
    inverse = minus[np.argsort(columns).tolist(), :]
    return solution, least, ca.norm_fro(upper), side_of_factor(scales), volume, inverse


def controls(
    model: ReducedModel, q: Vector, forces: Array, weights: Sequence[float] | None = None
) -> tuple[Array, Array, Array]:
    """Controls that make forces on the shape, the pivot of H^T B, and its side.

    Of more controls than shape velocities the least ones, with weights of their squares (nu,).
    """
    actuation: ca.SX = model.effect(q)
    if model.nd < model.ns:  # no force acts on the spin of a two-sphere
        forces = model.spinless(q).T @ forces
    if actuation.is_constant() and ca.DM(actuation).is_eye():
        return forces, ca.SX(1), ca.SX(1)
    rows, columns = (constant(scales) for scales in model.actuation_scales)
    scaled = ca.diag(rows) @ actuation @ ca.diag(columns)
    if actuation.shape[1] > actuation.shape[0]:
        torques = share(actuation, forces, weights)[0]
        _, least, largest = share(scaled, forces)  # weights do not make it singular
        return torques, least / largest, ca.SX(1)
    torques, least, largest, side, *_ = solve_square(scaled, ca.diag(rows) @ forces)
    return ca.diag(columns) @ torques, least / largest, side


def _mobility(
    servo: LawCore, q: Vector, mass: Array, rows: Array
) -> tuple[Array, Callable[[Array], Array]]:
    """Mobility of the outputs, and accelerations of the shape under forces along the outputs.

    The matrix rows Mhat^-1 rows^T, and Mhat^-1 rows^T as it acts on a vector.
    """
    model = servo.model
    free = model.takes_momentum and model.first is model and model.ns > MANY
    if free and factors_by_links(model.robot):
        # Forces on the shape alone, in a base that is free, meet the reduced mass matrix.
        shape, factors = list(model.shape), articulated(model.robot, q)
        forces = ca.SX(model.nv, servo.size)
        forces[shape, :] = rows.T
        left = factors.inwards(ca.sparsify(forces))
        given = factors.yielding(left)
        own = ca.triu2symm(ca.triu(left.T @ given))
        return own, lambda values: factors.outwards(given @ values)[shape, :]
    spread = solve_positive_definite(mass, rows.T)
    return rows @ spread, spread.__matmul__


def decoupling_margin(servo: LawCore, q: ca.SX) -> Array:
    """Decoupling margin as an expression, as `TrackingLaw.margin` has it.

    Parameters
    ----------
    servo : LawCore
        The law.
    q : casadi.SX
        Configuration, shape (nq,).

    Returns
    -------
    casadi.SX
        The margin, a number without unit: to nine digits, where it is above 1e-3.
    """
    regularity = servo.model.regularity(q)
    if not servo.model.driven_directly:
        regularity = ca.fmin(regularity, _leverage(servo.model, q))
    if not servo.size:
        return regularity
    scaled = ca.diag(constant(servo.margins.scales[0])) @ servo.decoupling(q)
    own, _ = _mobility(servo, q, servo.model.mass_matrix(q), scaled)
    margin = ca.sqrt(least_eigenvalue(own))
    margin = ca.if_else(regularity == 1, margin, ca.fmin(margin, regularity))
    return ca.if_else(regularity >= UNDETERMINED, margin, ca.fmax(regularity, 0))


def signed_margin(servo: LawCore, q: ca.SX) -> Array:
    """Smooth lower bound of the decoupling margin of the outputs, at worst sqrt(n) too small.

    It changes its sign at singular configurations where there are as many outputs as shape
    velocities.
    """
    scaled = ca.diag(constant(servo.margins.scales[0])) @ servo.decoupling(q)
    mass = servo.model.mass_matrix(q)
    if servo.size == servo.ns:
        inverse, _, _, side, *_ = solve_square(scaled, ca.SX.eye(servo.size))
        return side / ca.sqrt(ca.trace(inverse.T @ mass @ inverse))
    own = scaled @ solve_positive_definite(mass, scaled.T)
    return 1.0 / ca.sqrt(ca.trace(solve_positive_definite(own, ca.SX.eye(servo.size))))


def _leverage(model: ReducedModel, q: ca.SX) -> Array:
    """Leverage of the controls as an expression, as `ReducedModel.leverage` has it."""
    if model.nu < model.nd:
        return ca.SX(0)
    rows, columns = (constant(scales) for scales in model.actuation_scales)
    scaled = ca.diag(rows) @ model.effect(q) @ ca.diag(columns)
    square = ca.triu2symm(ca.triu(scaled @ scaled.T))
    total = ca.trace(square)
    largest = total
    if model.nd > 1:
        largest = total - least_eigenvalue(total * ca.SX.eye(model.nd) - square)
    return ca.if_else(total > 0, ca.sqrt(least_eigenvalue(square) / largest), 0)


def _by_energy(servo: LawCore) -> bool:
    """Whether shape accelerations are chosen in the metric of the kinetic energy."""
    rule = servo.redundancy
    if rule is None:
        return True
    # A weight may be an array.
    return (
        isinstance(rule.weight, str)
        and rule.weight == "energy"
        and rule.objective != "base_rotation"
    )


def least_root(square: Array) -> Array:
    """Lower bound of the square root of the least eigenvalue; zero for a singular matrix.

    From the Frobenius norm of the inverse: at worst smaller by n^(1/4), and sharp near singular
    configurations. The smallest pivot of a factor can be a hundred times too large there.
    """
    inverse = solve_positive_definite(square, ca.SX.eye(square.shape[0]))
    return ca.fmax(0.0, ca.sumsqr(inverse) ** -0.25)
