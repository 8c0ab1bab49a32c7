"""The tick as one graph: the law behind its checks, alone or with its reference inside."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import reduce

import casadi as ca
import numpy as np

from concur.codegen import LARGEST, Array, normalised
from concur.control._core import LawCore
from concur.control._singularity import answer_scale
from concur.outputs.references import LARGEST as LATEST

SAMPLE = ("pose", "twist", "acceleration")
"""Parts of a flat reference."""

RESULTS = ("u", "pivot", "missed", "scale", "active", "status")
"""Results of a tick's graph, in order."""

KEPT = 2
"""Numbers that a watched tick keeps for the next, before the law's state: side of singular, and
size of the answer."""

LEAP = 10.0
"""Growth of the answer from one tick to the next, from which on it is compared with `RUNAWAY`."""

RUNAWAY = 1e4
"""Answer, times the distance from singular, above which one that leapt is not believed; 1 is the
answer to an error of the robot's size."""


class TickStatus(IntEnum):
    """Status of a tick; with any but OK the controls are zero."""

    OK = 0
    """The controls may be used."""
    BAD_INPUT = 1
    """An input is not finite, or above 1e18; or the period or the state of the law is beyond its
    `state_bounds`."""
    INVALID_QUATERNION = 2
    """A quaternion of the configuration or of the reference pose is off unit norm by over 1e-3."""
    SINGULAR = 3
    """The law is nearer to singular than the servo's `singular_margin`, or passed a singular
    configuration since the last tick: a determinant changed its sign, or the answer leapt."""
    NO_RESULT = 4
    """The controls are not finite, or above 1e18: the commanded acceleration is too large."""
    NO_TORQUE_WITHIN_LIMITS = 5
    """No torques within limits were found, or the configuration is singular to the last bit."""
    FAILED = 6
    """The evaluation did not run to its end."""


def tick_function(
    servo: LawCore,
    watched: bool = False,
    reference: ca.Function | None = None,
    shown: bool = False,
) -> ca.Function:
    """The whole law with its checks: what is compiled and exported.

    The momentum is an input where the model rests on one, so that it may be estimated while the
    robot runs.

    Parameters
    ----------
    servo : LawCore
        The law.
    watched : bool
        Whether it compares itself with the tick before: the last input `before` (2,) is the last
        output `after` of that one, zero at the first.
    reference : casadi.Function, optional
        Graph of the reference, which becomes a part of the tick: then the time `t` is the first
        input, in place of the reference.
    shown : bool
        Whether the reference inside is a result too, before `after`.

    Returns
    -------
    casadi.Function
        Inputs q (nq,), s (nw,), those in `sampled`, momentum (6,) where the law
        `takes_momentum`, and of a law with a state the period; its state z (nz,) is the last part
        of `before` and `after`, which it has without `watched` too. Outputs u (nu,), zero unless
        the status is; pivot, missed (size,), scale, active (limits,) of a law with limits, and
        status, a `TickStatus` as a number. Over SX; over MX with limits, which have a quadratic
        program inside, and if the reference has tables.
    """
    law = servo.graph()
    scalar = law.is_a("SXFunction") and (reference is None or reference.is_a("SXFunction"))
    kind = ca.SX if scalar else ca.MX
    sizes = servo.inputs | ({"period": 1} if servo.nz else {})
    sizes.pop("z", None)
    if reference is not None:
        names = [name for name in sizes if name not in servo.sampled]
        sizes = {"t": 1} | {name: sizes[name] for name in names}
    given = {name: kind.sym(name, size) for name, size in sizes.items()}
    taken, sample = dict(given), dict[str, Array]()
    if reference is not None:
        sample = dict(zip(SAMPLE, reference.call([given["t"]], True, False), strict=True))
        # A time out of range counts as a state that is not finite.
        late = ca.if_else(ca.fabs(given["t"]) <= LATEST, 0.0, np.nan)
        taken |= sample | {"q": given["q"] + late}
    raw = [taken[name] for name in (*servo.inputs, "period") if name in taken]
    taken["q"], taken["pose"], valid = attitudes(servo).call([taken["q"], taken["pose"]])
    known = KEPT if watched else 0
    before = kind.sym("before", known + servo.nz)
    taken["z"] = before[known:]
    of_law = [taken[name] for name in law.name_in()]
    # Limits make a graph of graphs, each of which copies its numbers: with one fewer.
    answer = law.call(of_law, law.is_a("MXFunction"), False)
    found = dict(zip(law.name_out(), answer, strict=True))
    found |= {"total": ca.sumsqr(ca.vertcat(*raw)), "valid": valid, "before": before}
    found |= {"period": given["period"]} if servo.nz else {}
    results = {name: found[name] for name in RESULTS[:-1]}
    results["u"], results["status"], after = _checked(servo, watched, found)
    if not servo.limit_names:
        del results["active"]
    results |= sample if shown else {}
    if known + servo.nz:
        given["before"], results["after"] = before, after
    options = {"cse": True} if scalar else {}
    return ca.Function(
        "tick", [*given.values()], [*results.values()], [*given], [*results], options
    )


def attitudes(law: LawCore) -> ca.Function:
    """Normalise the quaternions of configuration and reference pose, where a tick takes them in.

    A function from (q, pose) to (q, pose, valid): with unit quaternions, and 1 if each norm is
    near one, else 0; 0 for NaN.
    """
    q, pose = ca.SX.sym("q", law.nq), ca.SX.sym("pose", law.pose_size)
    places = law._attitudes
    unit_q, q_valid = normalised(q, places.get("q", {}))
    unit_pose, pose_valid = normalised(pose, places["pose"])
    valid = ca.logic_and(q_valid, pose_valid)
    return ca.Function("attitudes", [q, pose], [unit_q, unit_pose, valid])


def _checked(servo: LawCore, watched: bool, given: Mapping[str, Array]) -> list[Array]:
    """Torques, zero unless everything is as it must be; status; memory."""
    own = ["u", "pivot", "total", "valid", "before"] + ["side"] * watched
    own += ["zdot", "period"] * bool(servo.nz)
    found = {name: ca.SX.sym(name, given[name].shape[0]) for name in own}
    u, pivot, before = found["u"], found["pivot"], found["before"]
    known = KEPT if watched else 0
    # Comparisons with NaN are false, so each test asks for what must hold.
    units = 1.0 / answer_scale(servo)
    size = ca.sumsqr(u * units)
    usable = [found["total"] <= LARGEST**2]
    z, most = before[known:], ca.DM(servo.state_bounds.state)
    if servo.nz:
        period = found["period"]
        usable += [period >= 0.0, period <= servo.state_bounds.period]
        usable += [ca.fabs(z[k]) <= float(most[k]) for k in range(servo.nz)]
    tests = [
        (reduce(ca.logic_and, usable), TickStatus.BAD_INPUT),
        (found["valid"], TickStatus.INVALID_QUATERNION),
        (pivot >= servo.singular_margin, TickStatus.SINGULAR),
        (size <= (LARGEST * np.min(units, initial=LARGEST)) ** 2, TickStatus.NO_RESULT),
    ]
    if servo.torque_limits is not None:
        # The margin bound is zero if the program found no solution.
        tests.insert(2, (ca.fabs(pivot) > 0.0, TickStatus.NO_TORQUE_WITHIN_LIMITS))
    if watched:
        # Zero is kept where there is no tick before.
        leapt = ca.logic_and(before[1] > 0.0, size > LEAP**2 * before[1])
        away = ca.logic_and(leapt, size * pivot**2 > (RUNAWAY if servo.size else np.inf) ** 2)
        passed = ca.logic_or(found["side"] * before[0] < 0.0, away)
        tests.append((ca.logic_not(passed), TickStatus.SINGULAR))
    if servo.nz:
        # A rate without a number must not become a state; and `after` follows from all of `before`
        # through the status, so that one can be written over the other.
        tests.append((ca.sumsqr(found["zdot"]) <= LARGEST**2, TickStatus.NO_RESULT))
    status = ca.SX(0)
    for holds, otherwise in reversed(tests):
        status = ca.if_else(holds, status, int(otherwise))
    sound, after = status == 0, list[ca.SX]()
    if watched:
        # A singular configuration clears the memory; other faults keep it. This depends on the
        # status only.
        forget = ca.if_else(status == int(TickStatus.SINGULAR), 0.0, before[:KEPT])
        after.append(ca.if_else(sound, ca.vertcat(found["side"], size), forget))
    if servo.nz:
        moved = ca.fmin(ca.fmax(z + found["period"] * found["zdot"], -most), most)
        after.append(ca.if_else(sound, moved, z))
    results = [ca.if_else(sound, u, 0.0), status, ca.vertcat(*after)]
    checks = ca.Function("checks", [*found.values()], results)
    return list(checks.call([given[name] for name in own]))
