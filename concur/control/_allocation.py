"""Torque limits: the commanded acceleration scaled down, in its direction, to what they allow.

Per instant, with decoupling matrix ``Jg``, command residual ``r = nu - b``, nominal shape
acceleration ``sdot*`` (``Jg sdot* = r``) and torque ``u = G sdot + g``, the unknowns are
``sdot``, a scale ``alpha`` and a rest ``e`` with::

    Jg sdot = alpha r + e,    lower <= G sdot + g <= upper,    0 <= alpha <= 1

in this order of importance: ``e`` as small as can be in the metric ``D^2`` of the rows (zero
wherever that is possible), then ``alpha`` as large as can be, then ``sdot`` near ``sdot*`` in
the metric W. So the direction of the command is kept wherever some scale is feasible.

Weights of very different size in one quadratic program would blur this order (a rest of
1/rho where none is needed) and cost digits. The order is kept by cases instead, and only the
case that applies is evaluated:

1. The nominal torque is within limits: it is the answer, bit by bit.
2. No redundancy: the torque is ``g + alpha G sdot*``, and the largest alpha within limits is a
   minimum over rows.
3. Redundancy: ``sdot = alpha s_p + N zeta`` with ``s_p`` the W-least solution for r and N
   W-orthonormal in the null space of Jg. A program in (zeta, alpha) maximises
   ``alpha - eps |(zeta - zeta*, alpha)|^2 / 2``; being linear in alpha, it loses nothing
   of alpha unless that takes a null motion of extreme size.
4. No alpha is feasible (the drift g alone is out of limits): least squares for e over torques in
   their box, then alpha as large as possible with that e. The direction is lost: e is not zero.
   Of many torques with the same e, one near the clipped drift is taken.

Variables and rows are scaled by limits, by D and by the size of the violation, so tolerances
are relative. A result counts only if it passes its optimality conditions; otherwise, and on
any NaN, the status is 0 and the torque is a closed-form one, clipped.

The solver of cases 3 and 4 is DAQP, a dual active-set method, from CasADi's wheel. All were
tried on random problems of up to 14 controls with redundancy 0 to 3 (drift out of reach,
infinite limits, zero residual, nearly singular Jg). DAQP solved every one, was the fastest, is
silent, and CasADi writes C for it; it found the largest scale to 1e-6 in all but 1 of 1000
problems with redundancy, where the null motion is extreme. qpOASES writes its licence and
infeasible problems to the console, and leaves the old result in the buffers at the latter; qrqp
and OSQP missed about 1 in 150 problems with redundancy; PIQP, ProxQP and IPQP many more at this
accuracy; HPIPM takes problems with stages only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from concur.codegen import FINITE, qp_hole, zero_unless_finite
from concur.errors import ShapeError

INPUTS = (
    "decoupling",
    "residual",
    "nominal",
    "torque_map",
    "torque_offset",
    "metric",
    "row_scale",
    "lower",
    "upper",
)
"""Names of the inputs of `allocation`."""

OUTPUTS = ("sdot", "u", "scale", "lost", "active", "status")
"""Names of the outputs of `allocation`."""

_LARGE = 1e20  # beyond this a number counts as infinite
_TINY = 1e-300
_WEAK = 1e-2  # effect of null motion on a control below which it is no way to relieve it
_ROUNDING = 1e-12  # by how much, relative to its width, a limit may be missed before clipping
_CLOSENESS = 1e-3  # weight of nearness to the nominal against the scale
_SPREAD = 1e-9  # weight of a small change of torque against a small rest
_ROUNDS = 3  # repetitions about the last solution, which take the effect of that weight away
_ACCEPTED = 1e-6  # residual of optimality conditions above which a solution is refused
_MENDED = 1e-2  # the same, where a solution can be pulled back within the limits
_SHARE = 0.9  # least share of such a solution that has to be left after that

# Programmes in the graph cannot raise: what they return is checked instead.
SOLVER, HOLE = "daqp", "hole"
_OPTIONS = {"error_on_fail": False, "daqp": {"primal_tol": 1e-12, "dual_tol": 1e-12}}


def allocation(n: int, ns: int, solver: str = SOLVER) -> ca.Function:
    """Build the function that keeps torques within limits, for n outputs and ns shape velocities.

    The function is for use in an MX graph or through buffers; it never raises and prints nothing.
    Outputs are counted by coordinates, 1 <= n <= ns, else the call raises a `ShapeError`; there are
    as many controls as shape velocities. The solver is "daqp", or "hole" for a function to be
    exported: where its programs are, functions named "qp_..." return NaN; the export fills them
    in when it writes C.

    Inputs: `decoupling` Jg (n, ns); `residual` r = nu - b (n,); `nominal` sdot* (ns,) with
    Jg sdot* = r; `torque_map` G (ns, ns), invertible, and `torque_offset` g (ns,), N and
    N m, of u = G sdot + g; `metric` W (ns, ns), symmetric positive definite; `row_scale`
    D (n,), positive, which takes the units from the rows; `lower` and `upper` (ns,),
    N and N m, infinite where there is no limit.

    Outputs: `sdot` (ns,); `u` (ns,), never outside the limits; `scale` alpha; `lost`
    e = Jg sdot - alpha r (n,), exactly zero unless the direction could not be kept;
    `active` 1 if the nominal was changed, else 0; `status` 1, or 0 if the input was not
    finite or no solution passed its test: then u is a clipped fallback and the other
    outputs are those of the last attempt.
    """
    if not 1 <= n <= ns:
        raise ShapeError(
            "allocation",
            expected="at least one output coordinate, and as many shape velocities or more",
            came=f"{n} and {ns}",
            cure="Remove outputs or drive more joints.",
        )
    data = _symbols(ca.SX, n, ns)
    decoupling, residual, nominal, torque_map, offset, metric, row_scale, lower, upper = data
    free = [decoupling, residual, nominal, torque_map, metric, row_scale]
    torque = torque_map @ nominal + offset
    usable = ca.logic_and(_finite(*free, offset, torque), _all(lower < upper))
    within = ca.logic_and(_all(torque <= upper), _all(torque >= lower))
    choice = ca.if_else(usable, 1 + within, 0)
    choose = ca.Function("choose", data, [choice])

    rest = ca.if_else(_finite(offset), zero_unless_finite(offset), 0)
    refused = _case(
        "refused", data, (ca.SX(ns, 1), rest, ca.SX(0), ca.SX(n, 1), ca.SX(1), ca.SX(0))
    )
    kept = _case("kept", data, (nominal, torque, ca.SX(1), ca.SX(n, 1), ca.SX(0), ca.SX(1)))
    limited = _limited(n, ns, solver)

    arguments = _symbols(ca.MX, n, ns)
    switch = ca.Function.conditional("allocation_cases", [refused, limited], kept)
    results = _guard(n, ns)(*switch(choose(*arguments), *arguments), *arguments[-2:])
    return ca.Function("allocation", arguments, results, list(INPUTS), list(OUTPUTS))


def largest_scale(base: Any, slope: Any, lower: Any, upper: Any) -> tuple[Any, Any]:
    """Largest alpha in [0, 1] with lower <= base + alpha slope <= upper.

    All of shape (nu,). Also 1 if all rows are within limits there, up to rounding; else no alpha
    will do.
    """
    bound = ca.if_else(slope > 0, upper - base, base - lower)
    room = ca.if_else(slope == 0, 1.0, bound / ca.fmax(ca.fabs(slope), _TINY))
    scale = ca.fmax(0.0, ca.fmin(1.0, ca.mmin(room)))
    torque = base + scale * slope
    slack = _ROUNDING * _widths(lower, upper, ca.fabs(base) + ca.fabs(slope))
    return scale, ca.logic_and(_all(torque <= upper + slack), _all(torque >= lower - slack))


def _limited(n: int, ns: int, plugin: str) -> ca.Function:
    """The nominal torque is out of limits: cases 2 to 4."""
    scaled = _scaled(n, ns) if n == ns else _redundant(n, ns, plugin)
    lost = _lost(n, ns, plugin)
    arguments = _symbols(ca.MX, n, ns)
    *kept, solved = scaled(*arguments)
    # With redundancy an unsolved program can also be a failure: where the drift alone is within
    # limits alpha = 0 is feasible, and the fallback of the case stands.
    drift = ca.SX.sym("drift", ns), ca.SX.sym("lower", ns), ca.SX.sym("upper", ns)
    room = ca.Function(
        "room", drift, [ca.logic_and(_all(drift[0] <= drift[2]), _all(drift[0] >= drift[1]))]
    )
    keep = ca.fmax(solved, room(arguments[4], *arguments[-2:]))
    values = [ca.MX.sym(f"kept{i}", *value.shape) for i, value in enumerate(kept)]
    given = _symbols(ca.MX, n, ns)
    keeping = ca.Function("keeping", [*values, *given], values)
    losing = ca.Function("losing", [*values, *given], lost(*given))
    switch = ca.Function.if_else("direction", keeping, losing)
    return ca.Function("limited", arguments, switch(keep, *kept, *arguments))


def _scaled(n: int, ns: int) -> ca.Function:
    """Case 2, in closed form."""
    data = _symbols(ca.SX, n, ns)
    _, _, nominal, torque_map, offset, _, _, lower, upper = data
    slope = torque_map @ nominal
    scale, possible = largest_scale(offset, slope, lower, upper)
    results = (scale * nominal, offset + scale * slope, scale, ca.SX(n, 1), ca.SX(1), possible)
    return _case("scaled", data, (*results, possible))


def _redundant(n: int, ns: int, plugin: str) -> ca.Function:
    """Case 3: a program in the null motion and the scale, in their units."""
    k = ns - n
    posed, finish = _null_motion(n, ns)
    arguments = _symbols(ca.MX, n, ns)
    matrix, low, high, unit, _ = parts = posed(*arguments)
    solver = _programme(f"redundancy_{n}_{ns}", ca.Sparsity.diag(k + 1), ns, plugin)
    linear = ca.DM([0] * k + [1])
    answer = solver(
        h=ca.MX(_CLOSENESS * ca.DM.eye(k + 1)),
        g=ca.MX(-linear),
        a=matrix,
        lba=low,
        uba=high,
        lbx=ca.vertcat(-ca.DM.inf(k), 0),
        ubx=ca.vertcat(ca.DM.inf(k), 1 / unit),
    )
    found = [answer[name] for name in ("x", "lam_a", "lam_x")]

    x, multiplier, bound, *given = _likes([*found, *parts])
    rows, low, high, unit, sane = given
    residual = _optimality(
        _CLOSENESS * x - linear + rows.T @ multiplier + bound,
        ca.vertcat(rows @ x, x[k]),
        ca.vertcat(low, 0),
        ca.vertcat(high, 1 / unit),
        ca.vertcat(multiplier, bound[k]),
    )
    # 2: a solution; 1: nearly one.
    quality = ca.if_else(sane, (residual <= _ACCEPTED) + (residual <= _MENDED), 0)
    test = ca.Function("test", [x, multiplier, bound, *given], [quality])
    sdot, u, scale, solved = finish(found[0], test(*found, *parts), *arguments)
    results = [sdot, u, scale, ca.MX(ca.DM.zeros(n, 1)), ca.MX(1), solved, solved]
    return ca.Function("redundant", arguments, results)


def _null_motion(n: int, ns: int) -> tuple[ca.Function, ca.Function]:
    """Data of the program of case 3, and the results from its solution x and its quality."""
    k = ns - n
    data = _symbols(ca.SX, n, ns)
    decoupling, _, nominal, torque_map, offset, metric, row_scale, lower, upper = data
    # Coordinates y = R sdot with W = R^T R: lengths in the metric are Euclidean.
    root = ca.chol(metric)
    rows = ca.solve(root.T, (ca.diag(row_scale) @ decoupling).T)
    null = ca.nullspace(rows.T)
    target = root @ nominal
    particular = ca.solve(root, target - null @ (null.T @ target))
    internal = ca.solve(root, null)
    kept = nominal - particular
    made = torque_map @ nominal
    width = _widths(lower, upper, ca.fabs(offset) + ca.fabs(made))
    slope = (torque_map @ particular) / width
    across = ca.diag(1 / width) @ torque_map @ internal
    # Units: a scale that moves torques by limits, and the null motion that is about needed.
    # Controls without limits do not count.
    bounded = ca.fmin(ca.fabs(lower), ca.fabs(upper)) < _LARGE
    unit_slope = 1 / ca.fmax(_largest(bounded * slope), 1.0)
    torque = offset + made
    beyond = ca.fmax(ca.fmax(torque - upper, lower - torque) / width, 0)
    effect = bounded * ca.sqrt(ca.sum2(across**2))
    unit_internal = ca.mmax(beyond / ca.fmax(effect, ca.fmax(_WEAK * ca.mmax(effect), _TINY)))
    drift = offset + torque_map @ kept
    problem = [
        ca.horzcat(across * unit_internal, slope * unit_slope),
        (lower - drift) / width,
        (upper - drift) / width,
        unit_slope,
    ]

    x, quality = ca.SX.sym("x", k + 1), ca.SX.sym("quality")
    scale = ca.fmax(0.0, ca.fmin(1.0, unit_slope * x[k]))
    sdot = scale * particular + kept + internal @ (unit_internal * x[:k])
    # If the program fails: the nominal scaled as it is, in closed form.
    plain, possible = largest_scale(offset, made, lower, upper)
    # Where little of the command is feasible the solver loses digits. Its result is repaired: it
    # is mixed with half the nominal so scaled, which has the same direction and is feasible.
    room = offset + plain / 2 * made
    share, _ = largest_scale(room, offset + torque_map @ sdot - room, lower, upper)
    mended = ca.logic_and(ca.logic_and(quality == 1, possible), share >= _SHARE)
    share = ca.if_else(mended, share, 1.0)
    passed = ca.logic_or(quality == 2, mended)
    scale = ca.if_else(passed, share * scale + (1 - share) * plain / 2, plain)
    half = plain / 2 * nominal
    sdot = ca.if_else(passed, share * sdot + (1 - share) * half, plain * nominal)
    u = offset + torque_map @ sdot
    outside = ca.mmax(ca.fmax(u - upper, lower - u) / width)
    solved = ca.logic_and(passed, ca.logic_and(outside <= _ACCEPTED, _finite(sdot, u)))
    results = [ca.densify(part) for part in (sdot, u, scale, solved)]
    return _posed(data, problem, (1, 2)), ca.Function("finish", [x, quality, *data], results)


def _lost(n: int, ns: int, plugin: str) -> ca.Function:
    """Case 4: least rest over torques within limits, then the largest scale with that rest."""
    data = _symbols(ca.SX, n, ns)
    decoupling, residual, nominal, torque_map, offset, _, row_scale, lower, upper = data
    width = _widths(lower, upper, ca.fabs(offset) + ca.fabs(torque_map @ nominal))
    factors = ca.qr_sparse(torque_map.T)
    effect = ca.qr_solve(decoupling.T, *factors).T  # Jg G^-1: torque to output acceleration
    effect = ca.diag(row_scale) @ effect @ ca.diag(width)
    size = ca.fmax(ca.norm_fro(effect), _TINY)
    effect /= size
    needed = row_scale * residual / size
    unit = 1 / ca.fmax(ca.norm_2(needed), 1.0)
    needed *= unit
    # Torques are measured from the clipped drift, in widths, and in the size of the violation.
    clipped = ca.fmin(ca.fmax(offset, lower), upper)
    violation = (clipped - offset) / width
    extent = ca.fmax(ca.norm_2(violation), _TINY)
    violation /= extent
    jacobian = ca.densify(ca.horzcat(effect, -needed))
    problem = [
        jacobian.T @ jacobian,
        jacobian.T @ (effect @ violation),
        ca.vertcat((lower - clipped) / width / extent, 0),
        ca.vertcat((upper - clipped) / width / extent, 1 / unit / extent),
    ]
    posed = _posed(data, problem, (2, 3))

    x, centre = ca.SX.sym("x", ns + 1), ca.SX.sym("centre", ns + 1)
    hessian, gradient, low, high, sane = parts = _likes(posed.sx_out())
    inside = ca.fmin(ca.fmax(x, low), high)
    slope = hessian @ inside + gradient + _SPREAD * (inside - centre)
    moved = ca.fmin(ca.fmax(inside - slope, low), high) - inside
    passed = ca.logic_and(sane, ca.logic_and(_finite(x), _largest(moved) <= _ACCEPTED))
    test = ca.Function("test", [x, centre, *parts], [passed])

    accepted = ca.SX.sym("accepted")
    torque = clipped + ca.if_else(accepted, width * extent * x[:ns], 0)
    torque = ca.fmin(ca.fmax(torque, lower), upper)
    begun = ca.if_else(accepted, ca.fmax(0.0, ca.fmin(1.0, unit * extent * x[ns])), 0)
    # Along the nominal motion the rest does not change.
    ahead = (1 - begun) * (torque_map @ nominal)
    more, _ = largest_scale(torque, ahead, lower, upper)
    scale = begun + more * (1 - begun)
    sdot = ca.qr_solve(torque - offset, *ca.qr_sparse(torque_map)) + more * (1 - begun) * nominal
    rest = decoupling @ sdot - scale * residual
    u = torque + more * ahead
    sound = ca.logic_and(accepted, _finite(sdot, u, rest))
    results = [sdot, u, scale, rest, ca.SX(1), sound]
    finish = ca.Function("finish", [x, accepted, *data], [ca.densify(part) for part in results])

    arguments = _symbols(ca.MX, n, ns)
    hessian, gradient, low, high, _ = parts = posed(*arguments)
    solver = _programme(f"rest_{n}_{ns}", ca.Sparsity.dense(ns + 1, ns + 1), 0, plugin)
    point, spread = ca.MX(ca.DM.zeros(ns + 1, 1)), ca.MX(_SPREAD * ca.DM.eye(ns + 1))
    for _ in range(_ROUNDS):
        centre, start = point, gradient - _SPREAD * point
        point = solver(h=hessian + spread, g=start, lbx=low, ubx=high)["x"]
    accepted = test(point, centre, *parts)
    return ca.Function("lost", arguments, finish(point, accepted, *arguments))


def _posed(data: list[Any], problem: Sequence[Any], bounds: tuple[int, int]) -> ca.Function:
    """Data of a program, and whether it is valid.

    CasADi raises on bounds that cross or are NaN, so such data never reaches it: all parts are
    then one, with bounds 0 and 1.
    """
    low, high = (problem[i] for i in bounds)
    others = [part for i, part in enumerate(problem) if i not in bounds]
    apart = ca.logic_and(_all(low <= high), ca.logic_and(_all(low < ca.inf), _all(high > -ca.inf)))
    sane = ca.logic_and(_finite(*others), apart)
    parts = [
        ca.if_else(sane, ca.densify(part), 0.0 if i == bounds[0] else 1.0)
        for i, part in enumerate(problem)
    ]
    return ca.Function("posed", data, [*parts, sane])


def _optimality(gradient: Any, rows: Any, low: Any, high: Any, multiplier: Any) -> Any:
    """Residual of the optimality conditions, infinite if anything is not finite."""
    outside = ca.fmax(ca.fmax(rows - high, low - rows), 0)
    # A multiplier is positive only at the upper and negative only at the lower bound; the
    # smaller of gap and multiplier is what is wrong.
    above = ca.fmin(ca.fabs(high - rows), ca.fmax(multiplier, 0))
    below = ca.fmin(ca.fabs(rows - low), ca.fmax(-multiplier, 0))
    residual = ca.mmax(ca.vertcat(ca.fabs(gradient), outside, above, below))
    return ca.if_else(_finite(gradient, rows, multiplier), residual, ca.inf)


def _programme(name: str, hessian: ca.Sparsity, rows: int, plugin: str) -> ca.Function:
    size = hessian.size1()
    if plugin == HOLE:
        return qp_hole(size, rows)
    shapes = {"h": hessian, "a": ca.Sparsity.dense(rows, size)}
    return ca.conic(name, plugin, shapes, _OPTIONS)


def _likes(values: Sequence[Any]) -> list[Any]:
    """Symbols of the shapes of some values."""
    return [ca.SX.sym(f"x{i}", *value.shape) for i, value in enumerate(values)]


def _symbols(kind: Any, n: int, ns: int) -> list[Any]:
    shapes = [(n, ns), (n,), (ns,), (ns, ns), (ns,), (ns, ns), (n,), (ns,), (ns,)]
    return [kind.sym(name, *shape) for name, shape in zip(INPUTS, shapes, strict=True)]


def _case(name: str, data: list[Any], results: Sequence[Any]) -> ca.Function:
    return ca.Function(name, data, [ca.densify(result) for result in results], {"cse": True})


def _guard(n: int, ns: int) -> ca.Function:
    """Last guard: zero in place of non-finite values, and torques within limits."""
    shapes = {"sdot": ns, "u": ns, "scale": 1, "lost": n, "active": 1, "status": 1}
    sdot, u, scale, lost, active, status = given = [
        ca.SX.sym(name, size) for name, size in shapes.items()
    ]
    lower, upper = ca.SX.sym("lower", ns), ca.SX.sym("upper", ns)
    clipped = ca.fmin(ca.fmax(zero_unless_finite(u), lower), upper)
    values = [zero_unless_finite(value) for value in (sdot, clipped, scale, lost)]
    sound = ca.logic_and(status, _finite(sdot, u, scale, lost))
    return ca.Function("guard", [*given, lower, upper], [*values, active, sound])


def _widths(lower: Any, upper: Any, otherwise: Any) -> Any:
    """Half the room between limits; without two limits the size of the torque at hand."""
    half = (upper - lower) / 2
    sizes = [ca.if_else(ca.fabs(limit) < _LARGE, ca.fabs(limit), 0) for limit in (lower, upper)]
    fallback = ca.fmax(ca.fmax(*sizes), otherwise)
    return ca.if_else(half < _LARGE, half, ca.if_else(fallback > _TINY, fallback, 1.0))


def _finite(*values: Any) -> Any:
    return _all(ca.vertcat(*(ca.fabs(ca.vec(ca.densify(value))) <= FINITE for value in values)))


def _all(conditions: Any) -> Any:
    return ca.mmin(ca.densify(conditions))


def _largest(values: Any) -> Any:
    return ca.mmax(ca.fabs(ca.vec(ca.densify(values))))
