"""Which joints keep their momentum, and what changes the momentum of those that do not.

A joint that leaves kinetic energy, potential and constraints invariant has a constant momentum
if nobody drives it - and, on wheels, if the curvature two-form has no leg along it: reactions
of the wheels act on its momentum otherwise (Proposition 4.2.12, corollary 4.2.13 of the thesis).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from concur.mechanism import unknown_name
from concur.reduction._derivative import along

if TYPE_CHECKING:
    from concur.reduction._model import ReducedModel

SAMPLES = 6
"""Random states at which conservation is tested."""

ROUNDING = 1e-9
"""Rate of a momentum, relative to the forces at work, that counts as zero."""


@dataclass(frozen=True)
class Conservation:
    """Whether a joint keeps its momentum on a reduced robot, and why or why not.

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
        Largest rate of its momentum without a force on it, relative to the forces at work.
    metric, potential, form : float
        What this rate is made of, relative alike: the change of the reduced metric along the
        joint, that of the potential, and the curvature two-form's leg along the joint.
    legs : tuple of str
        Shape velocities with which the two-form has a leg along the joint, on wheels.
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
    legs: tuple[str, ...] = ()

    @property
    def equation(self) -> str:
        """Momentum equation, in words and signs."""
        terms = [f"d/dt p[{self.joint}] ="]
        if self.conserved:
            return f"{terms[0]} 0"
        if self.driven:
            terms.append(f"+ u[{self.joint}]")
        terms += [f"+ Xi[{self.joint}, {leg}] s[{leg}]" for leg in self.legs]
        if self.metric > ROUNDING:
            terms.append(f"- dH/d[{self.joint}] of the kinetic energy")
        if self.potential > ROUNDING:
            terms.append(f"- dV/d[{self.joint}]")
        return " ".join(terms)

    def __str__(self) -> str:
        return f"`{self.joint}`: {'conserved' if self.conserved else 'not conserved'}, {self.why}"


def conservation(model: ReducedModel, joint: str) -> Conservation:
    """Test whether a joint keeps its momentum on a reduced robot.

    The momentum of the joint, in the frame that it attaches to and in its own, is differentiated
    along the motion, exactly, at random states with random forces on the other controls.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot.
    joint : str
        Name of the joint's body.

    Returns
    -------
    Conservation
        Whether it is conserved, and what changes it.

    Raises
    ------
    UnknownNameError
        If the body does not exist or its velocity is not a shape velocity.
    """
    robot = model.robot
    names = [
        body.name
        for body in robot.bodies
        if body.joint.nv and set(_rows(model, body.name)) <= set(model.shape)
    ]
    if joint not in names:
        raise unknown_name(f"model of `{model.name}`, `joint`", "shape joint", joint, names)
    rows = _rows(model, joint)
    driven = bool(set(rows) & set(robot.actuated_freedoms))
    function = _terms(model, joint)
    rng = np.random.default_rng(11)
    worst, touched = np.zeros(5), np.zeros(model.ns)
    tried = 0
    while tried < SAMPLES:
        q = robot.random(rng)
        if model.regularity(q) < 1e-3:
            continue
        tried += 1
        s, u = rng.uniform(-1.0, 1.0, model.ns), rng.uniform(-1.0, 1.0, model.nu)
        u[[k for k, i in enumerate(robot.actuated_freedoms) if i in rows]] = 0.0
        *terms, columns, scale = (np.array(part) for part in function(q, s, u))
        touched = np.maximum(touched, np.abs(columns).max(axis=1, initial=0.0))
        sizes = np.array([np.abs(term).max(initial=0.0) for term in terms])
        worst = np.maximum(worst, sizes / max(float(scale.item()), 1e-12))
    left, right, metric, potential, form = (float(x) for x in worst)
    seen_from = "parent" if left <= ROUNDING or left <= right else "body"
    rate = min(left, right)
    legs = [
        name
        for name, size in zip(model.shape_names, touched, strict=True)
        if robot.wheels and size > ROUNDING * max(1.0, touched.max())
    ]
    reasons = []
    if driven:
        reasons.append("its drive changes it")
    if rate > ROUNDING:
        parts = (
            (metric, "the reduced inertia depends on it"),
            (potential, "gravity acts along it"),
            (form * bool(robot.wheels), "reactions of the wheels act along it, the two-form's leg"),
        )
        reasons += [f"{text} ({size:.1e})" for size, text in parts if size > ROUNDING]
        if len(reasons) == int(driven):
            reasons.append(f"its momentum changes at the relative rate {rate:.1e}")
    return Conservation(
        joint,
        not reasons,
        "; ".join(reasons)
        or f"nobody drives it, and its momentum changes at the relative rate {rate:.1e} only",
        seen_from,
        driven,
        rate,
        metric,
        potential,
        form * bool(robot.wheels),
        tuple(legs),
    )


def _rows(model: ReducedModel, joint: str) -> list[int]:
    return list(range(*model.robot.v_slice(joint).indices(model.nv)))


def _terms(model: ReducedModel, joint: str) -> ca.Function:
    """Rate of the joint's momentum, seen from where it attaches and from its body; parts of it.

    The last result is the size of the forces at work.
    """
    robot, rows = model.robot, _rows(model, joint)
    group = [model.shape.index(i) for i in rows]
    q, s, u = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns), ca.SX.sym("u", model.nu)
    v = model.velocity(q, s)
    horizontal, _ = model.lift(q)
    vdot = horizontal @ model.acceleration(q, s, u) + model.drift_acceleration(q, s)
    first = model.first
    own_columns = [first.shape.index(i) for i in rows]

    def momenta(x: ca.SX) -> ca.SX:
        return first.momentum_fields(x)[:, own_columns].T @ robot.mass_matrix(x)

    turning = along(momenta, q, robot.rate(q, v)) @ v
    # Seen from where the joint attaches: d/dt Ad*_(n^-1) Pi = Ad*_(n^-1) (Pidot - ad*_xi Pi).
    unit = ca.SX.sym("y", robot.nv)
    only, along_joint, momentum = (ca.SX(robot.nv, 1) for _ in range(3))
    own = momenta(q) @ v
    for k, i in enumerate(rows):
        only[i], along_joint[i], momentum[i] = v[i], unit[i], own[k]
    turned = ca.gradient(ca.dot(momentum, robot.bracket(only, along_joint)), unit)[rows]
    change = turning + momenta(q) @ vdot

    def slope(value: ca.SX) -> ca.SX:
        """Derivative along motions n -> exp(e) n of the joint, seen from where it attaches."""
        gradient = ca.gradient(value, q)
        w = ca.SX.sym("w", robot.nv)
        return ca.gradient(ca.dot(gradient, robot.rate(q, w)), w)[rows]

    frozen = ca.SX.sym("s_", model.ns)
    energy = ca.bilin(model.mass_matrix(q), frozen, frozen) / 2
    p = model.mass_matrix(q) @ s
    shape_turned = robot.bracket(*(_embed(model, part) for part in (s, unit[list(model.shape)])))
    own = ca.gradient(ca.dot(p, shape_turned[list(model.shape)]), unit)[rows]
    metric = ca.substitute(slope(energy), frozen, s) + own - turned
    potential = slope(robot.potential_energy(q))
    columns = ca.densify(model.two_form(q, p))[:, group]
    form = columns.T @ s
    mass = robot.mass_matrix(q)
    scale = ca.norm_inf(mass @ vdot) + ca.norm_inf(robot.bias(q, v))
    results = [
        ca.densify(part)
        for part in (change - turned, change, metric, potential, form, columns, scale)
    ]
    return ca.Function("conservation", [q, s, u], results, {"cse": True})


def _embed(model: ReducedModel, s: ca.SX) -> ca.SX:
    full = ca.SX(model.nv, 1)
    full[list(model.shape)] = s
    return full
