"""Which joints keep their momentum, and what changes the momentum of those that do not.

The momentum of a joint is that along the first stage's horizontal lift, ``p = H_N^T M v``, on
wheels, and ``p = (M v)_N`` otherwise. Its rate, in the axes of the frame the joint attaches to, is

    pdot = E_N T - E_N V - Xi_N s + H_N^T B u

with E_N the derivative along the lift, at fixed velocities: kinetic energy, potential,
the curvature two-form (on wheels only) and the controls. Seen from the joint's own body
``ad*_xi p`` is added. A joint on which none of these acts can be reduced by its momentum
(Proposition 4.2.12 and corollary 4.2.13 of the thesis).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import DescriptionError, UnknownNameError
from concur.reduction._derivative import along
from concur.reduction._model import ReducedModel, check_model
from concur.robot import Mechanism, control_velocities, unknown_name

SAMPLES = 6
"""Random states at which conservation is tested."""

ROUNDING = 1e-9
"""Rate of a momentum, relative to the terms that have to cancel in it, that counts as zero."""


@dataclass(frozen=True)
class Conservation:
    """Whether a joint keeps its momentum on a reduced robot, and why or why not.

    Made by `conservation`.

    Parameters
    ----------
    joint : str
        The joint's body.
    conserved : bool
        Whether its momentum stays constant whatever the drives do.
    why : str
        The evidence, with numbers.
    seen_from : str
        Axes in which its momentum is constant, or nearest to it: "parent", those of the frame it
        attaches to (a symmetry of left translations), or "body", its own (right translations).
        For a joint with one freedom there is no difference.
    driven : bool
        Whether the joint is driven.
    rate : float
        Largest rate of its momentum without its own drive, relative to the terms that have to
        cancel in it.
    metric, potential, form, push : float
        What this rate is made of, relative alike: the change of the kinetic energy along the
        joint, that of the potential, the curvature two-form's leg along the joint, and what the
        drives of other joints do to it through wheels.
    legs : tuple of str
        Velocities with which the two-form has a leg along the joint, on wheels.
    controls : tuple of str
        Controls that act along the joint: its own, and on wheels those of wheels that follow it.
    tolerance : float
        Rate up to which its momentum counts as constant.

    See Also
    --------
    conservation : makes one.

    Examples
    --------
    >>> import concur as cc
    >>> from dataclasses import replace
    >>> crane = cc.robots.crane_car()
    >>> free = replace(crane, actuated=["steering", "left_wheel", "boom"])
    >>> print(cc.reduction.conservation(cc.reduce(free), "column").joint)
    column
    """

    joint: str
    conserved: bool
    why: str
    seen_from: str
    driven: bool
    rate: float
    metric: float
    potential: float
    form: float
    push: float
    legs: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    tolerance: float = ROUNDING

    @property
    def equation(self) -> str:
        """Momentum equation, in words and signs, in the axes of `seen_from`."""
        left = f"d/dt p[{self.joint}] ="
        if self.conserved:
            return f"{left} 0"
        terms = []
        # Four terms make the rate: one of them is as large as this.
        least = min(self.tolerance, ROUNDING) / 4
        if self.metric > least:
            terms.append(f"dT/d[{self.joint}]")
            if self.seen_from == "body":
                terms.append(f"+ ad*_v p[{self.joint}]")
        if self.potential > least:
            terms.append(f"- dV/d[{self.joint}]")
        if self.form > least:
            terms += [f"+ Xi[{self.joint}, {leg}] s[{leg}]" for leg in self.legs]
        for name in self.controls:
            own = name.split("[")[0] == self.joint
            terms.append(f"+ u[{name}]" if own else f"+ H[{name}, {self.joint}] u[{name}]")
        return f"{left} {' '.join(terms).removeprefix('+ ')}"

    def __str__(self) -> str:
        return f"`{self.joint}`: {'conserved' if self.conserved else 'not conserved'}, {self.why}"


def conservation(model: ReducedModel, joint: str, tolerance: float = ROUNDING) -> Conservation:
    """Test whether a joint keeps its momentum on a reduced robot.

    The momentum of the joint, in the frame that it attaches to and in its own, is differentiated
    along the motion, exactly, at random states with random forces on the other controls. A
    joint counts as a whole: one that keeps some components of its momentum only does not keep it,
    though `reduce` takes these components for a stage.

    On wheels this is the momentum of the reduced robot, which can be constant where that of the
    joint itself is not: the question that `reduce` asks before a stage. What `symmetry` reports,
    joint by joint and component by component, is the momentum of the joint itself.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot; stages that it went through hold their momenta.
    joint : str
        Name of the joint's body.
    tolerance : float
        Rate of the momentum, relative to the terms that have to cancel in it, up to which it counts
        as constant: between 0 and 1. Robots whose numbers were rounded, as those of imported files,
        may need more than the default.

    Returns
    -------
    Conservation
        Whether it is conserved, and what changes it.

    Raises
    ------
    ReductionError
        If `model` is no reduced model.
    UnknownNameError
        If the body does not exist or its velocity is not a shape velocity.
    DescriptionError
        If `tolerance` is out of range.

    See Also
    --------
    symmetry : all joints at once, and the groups behind it.

    References
    ----------
    Thesis, Proposition 4.2.12, Corollary 4.2.13, Proposition 4.2.15.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> cc.reduction.conservation(model, "left_wheel").equation
    'd/dt p[left_wheel] = Xi[left_wheel, right_wheel] s[right_wheel] + u[left_wheel]'
    """
    check_model(model, "conservation")
    tolerance = read_tolerance(tolerance, "conservation")
    robot = model.robot
    names = [
        body.name
        for body in robot.bodies
        if body.joint.nv and set(robot.freedoms(body.name)) <= set(model.shape)
    ]
    if not isinstance(joint, str) or joint not in names:
        error = unknown_name(f"model of `{model.name}`, `joint`", "shape joint", joint, names)
        if isinstance(joint, str) and joint in {body.name for body in robot.bodies}:
            raise UnknownNameError(
                error.where,
                expected=error.expected,
                came=error.came,
                cure="In this model its velocity, or part of it, follows from those of the others, "
                "or it has none.",
            )
        raise error
    rows = robot.freedoms(joint)
    own_drives = _acting_on(robot, rows)
    function = rate_terms(model, joint)
    worst, columns, pushes = np.zeros(7), np.zeros(model.first.ns), np.zeros(model.nu)
    rng = np.random.default_rng(11)
    for q in regular_configurations(model, rng):
        s, u = random_state(model, q, rng, still=joint)
        *terms, legs, acting, scale = (np.array(part) for part in function(q, s, u))
        sizes = np.array([np.abs(term).max(initial=0.0) for term in terms])
        worst = np.maximum(worst, sizes / scale.max())
        columns = np.maximum(columns, np.abs(legs).max(axis=1, initial=0.0))
        pushes = np.maximum(pushes, np.abs(acting).max(axis=1, initial=0.0))
    left, right, from_parent, from_body, potential, form, push = (float(x) for x in worst)
    seen_from = "parent" if left <= max(right, tolerance) else "body"
    rate, metric = min((left, from_parent), (right, from_body))
    if seen_from == "parent":
        rate, metric = left, from_parent
    parts = (
        (metric, "the inertia depends on it"),
        (potential, "gravity acts along it"),
        (form, "reactions of the wheels act along it, the two-form's leg"),
        (push, "other drives act along it through the wheels"),
    )
    reasons = ["its drive changes it"] if own_drives else []
    if rate > tolerance:
        large = [(size, text) for size, text in parts if size > tolerance] or [max(parts)]
        reasons += [f"{text} ({size:.1e})" for size, text in large]
    held = f"it is unactuated, and its momentum changes only at the relative rate {rate:.1e}"
    if rate > ROUNDING:
        held += f", within the tolerance {tolerance:.1g}"
    shape, least = model.first.shape_names, min(tolerance, ROUNDING) / 4
    return Conservation(
        joint,
        conserved=not reasons,
        why="; ".join(reasons) or held,
        seen_from=seen_from,
        driven=bool(own_drives),
        rate=rate,
        metric=metric,
        potential=potential,
        form=form,
        push=push,
        legs=tuple(shape[i] for i in _large(columns)) if form > least else (),
        controls=tuple(
            model.control_names[i] for i in _large(pushes) if i in own_drives or push > least
        ),
        tolerance=tolerance,
    )


def read_tolerance(tolerance: Any, where: str) -> float:
    """Read a tolerance between 0 and 1."""
    given = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if not given or not 0.0 < tolerance < 1.0:
        raise DescriptionError(
            f"{where}, `tolerance`",
            expected="a number above 0 and below 1",
            came=f"{tolerance!r:.40}",
            cure="Leave it out for the default.",
        )
    return float(tolerance)


def random_state(
    model: ReducedModel, q: np.ndarray, rng: np.random.Generator, still: str
) -> tuple[np.ndarray, np.ndarray]:
    """Draw shape velocities and forces, with no force on the joint of the body `still`."""
    s = rng.uniform(-1.0, 1.0, model.ns)
    u = _efforts(model, q) * rng.uniform(-1.0, 1.0, model.nu)
    u[_acting_on(model.robot, model.robot.freedoms(still))] = 0.0
    return s, u


def _acting_on(robot: Mechanism, freedoms: list[int]) -> list[int]:
    """Controls that act on some freedoms, perhaps with others."""
    acting = ca.SX(robot.actuation(ca.SX.sym("q", robot.nq)))
    return [k for k in range(robot.nu) if acting[freedoms, k].nnz()]


def _efforts(model: ReducedModel, q: np.ndarray) -> np.ndarray:
    """Force of each control that alone accelerates its own motion by one, shape (nu,)."""
    inputs = model.input_matrix(q)
    mobility = np.einsum("ik,ik->k", inputs, np.linalg.solve(model.mass_matrix(q), inputs))
    return np.array([1.0 / m if m > 0.0 else 0.0 for m in mobility])


def _large(sizes: np.ndarray) -> list[int]:
    """Where an array is not zero but for rounding."""
    return [int(i) for i in np.flatnonzero(sizes > ROUNDING * np.max(sizes, initial=0.0))]


def regular_configurations(model: ReducedModel, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw configurations far from where the lift does not exist."""
    drawn = [model.robot.random(rng) for _ in range(4 * SAMPLES)]
    return sorted(drawn, key=lambda q: -float(model.regularity(q)))[:SAMPLES]


def rate_terms(model: ReducedModel, joint: str) -> ca.Function:
    """Rate of the momentum of a joint of the first stage and what it is made of, over q, s and u.

    The function returns the rate as seen from the frame the joint attaches to, and from its body,
    both in the body's axes; the kinetic energy's part of each; potential; two-form; controls;
    then the two-form's columns, the controls' columns and the size of the terms that the
    rate is the sum of.
    """
    robot, first, rows = model.robot, model.first, model.robot.freedoms(joint)
    shape, group = list(first.shape), [first.shape.index(i) for i in rows]
    q, s, u = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns), ca.SX.sym("u", model.nu)
    v = model.velocity(q, s)
    vdot = model.lift(q)[0] @ model.acceleration(q, s, u) + model.drift_acceleration(q, s)

    def weights(x: ca.SX) -> ca.SX:
        return first.momentum_fields(x)[:, group].T @ robot.mass_matrix(x)

    at, fields = weights(q), first.momentum_fields(q)[:, group]
    turning = along(weights, q, robot.rate(q, v))
    momentum = at @ v
    # Speeds are of order one: where nothing accelerates, momentum per second is the measure.
    scale = ca.fabs(turning) @ ca.fabs(v) + ca.fabs(at) @ (ca.fabs(vdot) + ca.fabs(v))

    # d/dt Ad*_(n^-1) p = Ad*_(n^-1) (pdot - ad*_xi p)
    y = ca.SX.sym("y", len(rows))
    unit = ca.SX.eye(model.nv)[:, rows]
    own = [unit @ part for part in (v[rows], y, momentum)]
    turned = ca.gradient(ca.dot(own[2], robot.bracket(own[0], own[1])), y)
    rate = turning @ v + at @ vdot

    def slope(value: ca.SX) -> ca.SX:
        gradient = ca.gradient(value, q)
        return ca.vertcat(
            *[ca.dot(gradient, robot.rate(q, fields[:, k])) for k in range(len(rows))]
        )

    rolling = bool(robot.wheels)
    metric = first.mass_matrix(q) if rolling else robot.mass_matrix(q)
    moving = ca.densify(v[shape] if rolling else v)
    frozen = ca.SX.sym("w", moving.shape[0])
    kinetic = ca.substitute(slope(ca.bilin(metric, frozen, frozen) / 2), frozen, moving)
    legs = ca.SX(first.ns, len(rows))
    if rolling:
        legs = first.two_form(q, first.mass_matrix(q) @ moving)[:, group]
    acting = control_velocities(robot, q, fields)
    results = [
        rate - turned,
        rate,
        kinetic,
        kinetic + turned,
        slope(robot.potential_energy(q)),
        legs.T @ v[shape],
        acting.T @ u,
        legs,
        acting,
        scale,
    ]
    dense = [ca.densify(ca.SX(part)) for part in results]
    return ca.Function("conservation", [q, s, u], dense, {"cse": True})
