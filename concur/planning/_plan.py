"""From a wanted displacement of the base to a closed loop of the shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import as_floats, finite_floats
from concur.errors import ConcurError, InfeasibleReferenceError, ReductionError, ShapeError
from concur.outputs.references import Loop
from concur.planning._fibre import Fibre, fibre_of, reach_of
from concur.planning._loop_plan import LoopPlan
from concur.planning._phase import GeometricPhase, geometric_phase
from concur.planning._shooting import SOLVED, Shooting
from concur.reduction import ReducedModel
from concur.robot import Mechanism

MOST_CYCLES = 64
"""Largest number of cycles that is tried."""

LARGEST_TURN = 2.0
"""Rotation per cycle, rad, above which the displacement is shared by more cycles."""

TRIES = 4
"""First guesses for each number of cycles."""

DURATION = 10.0
"""Least default duration of a loop if a joint has no speed limit, s."""

REACHED = 1e-6
"""Largest entry of the remaining displacement that counts as reached, m and rad."""

UNREACHED = 1e-6
"""Part of a displacement, relative to it, that the group may lack."""

MOST_STEPS = 512
"""Steps per harmonic with which a loop is found again if it misses by the error of the steps."""

FINE = 200
"""Instants per harmonic and cycle at which speeds are checked."""


def plan_loop(
    model: ReducedModel,
    displacement: ArrayLike,
    q0: ArrayLike | None = None,
    *,
    duration: float | None = None,
    cycles: int | None = None,
    harmonics: int = 3,
    limits: Any = None,
    speed_limits: Any = None,
    body: str | None = None,
) -> LoopPlan:
    """Plan a closed loop of the shape that displaces the base as wanted.

    The loop starts and ends at rest in the shape of `q0`. The first guess has the areas that the
    curvature needs; then shooting on Fourier coefficients with exact derivatives finds the loop of
    least kinetic energy, source 000 section 6. A displacement too large for one cycle inside the
    limits is shared by several equal ones.

    Parameters
    ----------
    model : ReducedModel
        A robot that floats with zero momentum, a Chaplygin system on wheels, a ball that rolls
        without spin, or a `LagrangianSystem` with a symmetry and zero momentum.
    displacement : array_like
        Logarithm of the wanted displacement ``g0^-1 g1`` in the basis of the base's joint, m and
        rad, as `GeometricPhase.log`: (vx, vy, omega) for a planar base, [linear; angular] for a
        free one. Or its rotation alone, the last 1 or 3 of these: any position is accepted then.
    q0 : array_like, optional
        Configuration at the start, shape (nq,); default neutral.
    duration : float, optional
        Time of the loop, s. Default: the shortest within the speed limits; at least 10 s if a joint
        has none.
    cycles : int, optional
        Number of cycles; default the fewest of 1, 2, 4, ... 64 for which a loop is found.
    harmonics : int
        Number of harmonics of the loop.
    limits : array_like, optional
        Lower and upper limit of each shape coordinate, shape (ns, 2), rad and m; default those of
        the joints.
    speed_limits : array_like, optional
        Largest speeds, a number or shape (ns,), rad/s and m/s; default those of the joints.
    body : str, optional
        Body or factor that is displaced, as of `geometric_phase`.

    Returns
    -------
    LoopPlan
        The loop, the displacement after it, and what it could not reach: `missed` and `why`, and
        `reached` where its largest entry is at most 1e-6 m or rad.

    Raises
    ------
    InfeasibleReferenceError
        If no loop reaches the displacement, because curvature and brackets do not span it; if
        `q0` is outside the limits; or if `duration` is too short for the speed limits.
    ReductionError
        If the shape moves no body, the lift has no symmetry, or the momentum is not zero.
    ShapeError, NonFiniteError, ConcurError
        If an argument has another shape, or is not finite or out of range.

    Examples
    --------
    A satellite rotates by 5 degrees about its z axis by its reaction wheels:

    >>> import numpy as np
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.wheel_satellite())
    >>> plan = cc.planning.plan_loop(model, [0.0, 0.0, np.radians(5.0)])
    >>> plan.reached, np.degrees(plan.phase.log[3:]).round(3).tolist()[2]
    (True, 5.0)
    """
    fibre = fibre_of(model, "plan_loop", body)
    where = f"plan_loop of `{model.name}`"
    if model.keeps_momentum and any(model.momentum):
        cure = f"Plan with `model.at_momentum([0] * {len(model.momentum)})`."
        raise ReductionError(where, expected="zero momentum", came="another", cure=cure)
    for name, value in (("harmonics", harmonics), ("cycles", 1 if cycles is None else cycles)):
        if not isinstance(value, int | np.integer) or not 1 <= value <= MOST_CYCLES:
            expected = f"a whole number from 1 to {MOST_CYCLES}"
            raise _refused(where, name, expected, repr(value))
    known = duration is None or isinstance(duration, int | float | np.number)
    if not known or not 0.0 < (1.0 if duration is None else duration) < np.inf:
        raise _refused(where, "duration", "a number above zero", repr(duration))
    robot = model.system
    start = fibre.shape(robot.neutral() if q0 is None else robot.check_configuration(q0, "`q0`"))
    low, high, speeds = _bounds(fibre, where, limits, speed_limits)
    inside = (low < start) & (start < high)
    if not inside.all():
        k = int(np.argmin(inside))
        expected = f"a start between its limits {low[k]:.6g} and {high[k]:.6g}"
        cure, kind = "Start elsewhere, with `q0`.", InfeasibleReferenceError
        raise _refused(where, model.shape_names[k], expected, f"{start[k]:.6g}", cure, kind)
    wanted, turning = _wanted(fibre, where, displacement)
    _check_reach(fibre, where, start, (low, high), wanted, turning)
    shooting = Shooting(fibre, start, low, high, int(harmonics), turning)
    count, unknowns, found = _search(shooting, wanted, cycles)
    unknowns, phase, missed = _refined(shooting, wanted, count, unknowns, found)
    shape = shooting.coefficients(unknowns)
    needed = _duration(Loop(start, *shape, 1.0, count), speeds)
    if duration is not None and duration < needed:
        expected = f"at least {needed:.6g} s, within the speed limits"
        cure, kind = "Allow this time, or leave `duration` out.", InfeasibleReferenceError
        raise _refused(where, "duration", expected, f"{duration:.6g} s", cure, kind)
    free = 0.0 if np.isfinite(speeds).all() else DURATION
    loop = Loop(start, *shape, duration or max(needed, free), count)
    largest = float(np.abs(missed).max(initial=0.0))
    why = (
        "reached"
        if largest <= REACHED
        else f"missed by {largest:.3g} (m, rad): no loop of {harmonics} harmonics and {count} "
        "cycles inside the limits of the shape was found"
    )
    phase = replace(phase, loop=loop)
    return LoopPlan(model, loop, phase, wanted, missed, largest <= REACHED, why)


def _refused(
    where: str,
    name: str,
    expected: str,
    came: str,
    cure: str = "Leave it out for the default.",
    kind: type[ConcurError] = ConcurError,
) -> ConcurError:
    return kind(f"{where}, `{name}`", expected=expected, came=came, cure=cure)


def _search(
    shooting: Shooting, wanted: np.ndarray, cycles: int | None
) -> tuple[int, np.ndarray, bool]:
    """Number of cycles and unknowns of the least loop found, else of the nearest; whether found."""
    rng = np.random.default_rng(0)
    turn = np.abs(wanted if shooting.turning is not None else wanted[-1:]).max(initial=0.0)
    counts = [cycles] if cycles else [2**k for k in range(MOST_CYCLES.bit_length())]
    for count in counts:
        if cycles is None and turn / count > LARGEST_TURN:
            continue
        share = wanted / count
        tries = [shooting.solve(share, shooting.guess(share, rng, not k)) for k in range(TRIES)]
        found = [unknowns for unknowns, missed in tries if missed <= SOLVED]
        if found:
            return count, min(found, key=shooting.energy), True
    share = wanted / counts[-1]
    tries = [
        shooting.solve(share, shooting.guess(share, rng, not k), nearest=True) for k in range(TRIES)
    ]
    return counts[-1], min(tries, key=lambda found: found[1])[0], False


def _refined(
    shooting: Shooting, wanted: np.ndarray, count: int, unknowns: np.ndarray, found: bool
) -> tuple[np.ndarray, GeometricPhase, np.ndarray]:
    """Unknowns after shooting with enough steps, their exact phase, and what it misses."""
    while True:
        loop = Loop(shooting.start, *shooting.coefficients(unknowns), 1.0, count)
        phase = geometric_phase(shooting.fibre.model, loop, body=shooting.fibre.body)
        missed = shooting.missed_by(phase.pose, wanted)
        if not found or np.abs(missed).max() <= REACHED or shooting.steps >= MOST_STEPS:
            return unknowns, phase, missed
        shooting = replace(shooting, steps=2 * shooting.steps)
        unknowns, _ = shooting.solve(wanted / count, unknowns, nearest=True)


def _check_reach(
    fibre: Fibre,
    where: str,
    start: np.ndarray,
    limits: tuple[np.ndarray, np.ndarray],
    wanted: np.ndarray,
    turning: np.ndarray | None,
) -> None:
    """Reject a displacement that no loop reaches."""
    reach = reach_of(fibre, start, *limits)
    lacking = reach.missed(wanted, turning)
    if np.abs(lacking).max(initial=0.0) <= UNREACHED * np.abs(wanted).max(initial=0.0):
        return
    names = fibre.names if turning is None else fibre.names[-len(wanted) :]
    parts = ", ".join(f"{n} {x:.3g}" for n, x in zip(names, lacking, strict=True) if abs(x) > 1e-9)
    span = reach.subgroup
    raise InfeasibleReferenceError(
        f"{where}, `displacement`",
        expected=f"a displacement in {span.name}, the span of curvature and brackets"
        if span.dim
        else "no displacement: the curvature vanishes, the constraints are integrable",
        came=f"a part outside it: {parts} (m, rad)",
        cure="Ask for the rotation alone, or for a displacement in `span` of this error.",
        missed=lacking,
        span=reach.basis,
    )


def _wanted(
    fibre: Fibre, where: str, displacement: ArrayLike
) -> tuple[np.ndarray, np.ndarray | None]:
    """Wanted coordinates, and the rows of the rotation if it is one alone."""
    value = np.atleast_1d(finite_floats(displacement, f"{where}, `displacement`"))
    turning = np.eye(fibre.dim)[np.abs(fibre.joint.basis[3:]).max(axis=0) > 0.0]
    if value.shape == (fibre.dim,):
        return value, None
    if value.shape == (len(turning),) and len(turning):
        return value, turning
    sizes = f"{fibre.dim} numbers: {', '.join(fibre.names)}"
    rotation = f", or the rotation alone, {len(turning)}" if 0 < len(turning) < fibre.dim else ""
    came, cure = f"shape {value.shape}", "Write the logarithm of the displacement, m and rad."
    raise _refused(where, "displacement", sizes + rotation, came, cure, ShapeError)


def _bounds(
    fibre: Fibre, where: str, limits: Any, speed_limits: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lower and upper limits and largest speeds of the shape, infinite for none."""
    model = fibre.model
    robot, ns = model.system, model.ns
    each = f"Write one for each of {', '.join(model.shape_names)}."
    pairs, largest = np.tile([-np.inf, np.inf], (ns, 1)), np.full(ns, np.inf)
    if isinstance(robot, Mechanism):
        pairs = robot.limits[list(model.shape_coordinates)]
        largest = robot.speed_limits[list(model.shape)]
    if limits is not None:
        pairs = as_floats(limits, f"{where}, `limits`")
        if pairs.shape != (ns, 2) or not (pairs[:, 0] < pairs[:, 1]).all():
            expected = f"{ns} pairs (lower, upper) with lower < upper"
            raise _refused(where, "limits", expected, str(pairs.tolist()), each, ShapeError)
    if speed_limits is not None:
        given = as_floats(speed_limits, f"{where}, `speed_limits`")
        largest = np.full(ns, given) if given.shape == () else given
        if largest.shape != (ns,) or not (largest > 0.0).all():
            expected = f"one speed above zero, or {ns}"
            raise _refused(where, "speed_limits", expected, f"{given}", each, ShapeError)
    return pairs[:, 0], pairs[:, 1], largest


def _duration(loop: Loop, speeds: np.ndarray) -> float:
    """Shortest duration within speed limits of a loop that takes 1 s; 0 without limits."""
    if not np.isfinite(speeds).any():
        return 0.0
    times = np.linspace(0.0, 1.0, FINE * len(loop.cosine) * abs(loop.cycles) + 1)
    _, twists, accelerations = loop.sample(times)
    # Between two instants a speed rises by at most their distance squared times its curvature / 8.
    rise = times[1] * np.abs(np.diff(accelerations, axis=0)).max(axis=0) / 8.0
    return float(((np.abs(twists).max(axis=0) + rise) / speeds).max())
