"""Whether a joint of a reduced robot keeps its momentum as a whole, and what changes it.

In the axes of the frame it attaches to, the rate of the momentum along the lift's field N is

    pdot = E_N T - E_N V - Xi_N s + H_N^T B u

with E_N the derivative along the lift, at fixed velocities: kinetic energy, potential, the
curvature two-form (on wheels only) and the controls. Seen from the joint's own body ``ad*_xi p`` is
added. A joint on which none of these acts can be reduced by its momentum (Proposition 4.2.12 and
corollary 4.2.13 of the thesis).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from concur.reduction._model import ReducedModel, check_model
from concur.reduction._search import ROUNDING, Search, acting_on, read_tolerance
from concur.robot import (
    JointPlace,
    Mechanism,
    as_tree,
    joint_names,
    joint_place,
    joint_places,
    unknown_name,
)

SAMPLES = 6
"""Random states at which conservation is tested."""


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
        # Four terms make the rate: one of them is as large as this.
        least = min(self.tolerance, ROUNDING) / 4
        terms = ["+ dT/d[{0}]"] if self.metric > least else []
        if self.metric > least and self.seen_from == "body":
            terms.append("+ ad*_v p[{0}]")
        if self.potential > least:
            terms.append("- dV/d[{0}]")
        terms += [f"+ Xi[{{0}}, {leg}] s[{leg}]" for leg in self.legs]
        for name in self.controls:
            own = name.split("[")[0] == self.joint
            terms.append(f"+ u[{name}]" if own else f"+ H[{name}, {{0}}] u[{name}]")
        return f"{left} {' '.join(terms).format(self.joint).removeprefix('+ ')}"

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
        Name of the joint's body, or of a factor.
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
    if not joint_places(model.system):
        as_tree(model.system, f"conservation of `{model.name}`")
    tolerance = read_tolerance(tolerance, "conservation")
    return tested(Search(model), joint, tolerance, f"model of `{model.name}`, `joint`")


def tested(search: Search, joint: str, tolerance: float, where: str) -> Conservation:
    """Test a joint at the states of a search."""
    model, robot, first = search.model, search.robot, search.model.first
    places = {
        place.name: place
        for place in joint_places(robot)
        if place.freedoms and set(place.freedoms) <= set(model.shape)
    }
    named = joint_names(robot).get(joint) if isinstance(joint, str) else None
    if named is None or named not in places:
        labels = tuple(place.label for place in places.values())
        raise unknown_name(where, "shape joint", joint, labels)
    place, joint = places[named], named
    own_drives = acting_on(robot, place.freedoms)
    others = [k for k in range(model.nu) if k not in own_drives]
    form_legs = _legs(model, joint)
    worst, columns, pushes = np.zeros(7), np.zeros(first.ns), np.zeros(model.nu)
    for q, v, efforts in search.states(11, SAMPLES):
        terms, legs = search.momenta.at(joint, q, v), form_legs(q, v)
        left, form = terms.rate - terms.turned, -legs.T @ v[list(first.shape)]
        kinetic = left + terms.pull - form
        acting = np.abs(terms.acting).max(axis=1, initial=0.0)
        push = float((efforts * acting)[others].max(initial=0.0))
        parts = (left, terms.rate, kinetic, kinetic + terms.turned, terms.pull, form, push)
        sizes = np.array([np.abs(part).max(initial=0.0) for part in parts])
        sizes[:2] = np.maximum(sizes[:2], push)
        worst = np.maximum(worst, sizes / terms.size.max())
        columns = np.maximum(columns, np.abs(legs).max(axis=1, initial=0.0))
        pushes = np.maximum(pushes, acting)
    left, right, from_parent, from_body, potential, form, push = (float(x) for x in worst)
    seen_from = "parent" if left <= max(right, tolerance) else "body"
    rate, metric = (left, from_parent) if seen_from == "parent" else (right, from_body)
    least = min(tolerance, ROUNDING) / 4
    found = Conservation(
        place.label,
        conserved=not own_drives and rate <= tolerance,
        why="",
        seen_from=seen_from,
        driven=bool(own_drives),
        rate=rate,
        metric=metric,
        potential=potential,
        form=form,
        push=push,
        legs=tuple(first.shape_names[i] for i in _large(columns)) if form > least else (),
        controls=tuple(
            model.control_names[i] for i in _large(pushes) if i in own_drives or push > least
        ),
        tolerance=tolerance,
    )
    potential_of = _sources(search, place) if found.potential > tolerance else ""
    return replace(found, why=_evidence(found, potential_of))


def _sources(search: Search, place: JointPlace) -> str:
    """Name what of the potential energy changes along a joint: gravity, springs, or both."""
    robot, first = search.model.system, search.model.first
    if not isinstance(robot, Mechanism):
        return "the potential energy changes along it"
    parts = {"gravity": replace(robot, springs=()), "springs": replace(robot, gravity=(0, 0, 0))}
    q = ca.SX.sym("q", robot.nq)
    fields = first.momentum_fields(q)[:, [first.shape.index(i) for i in place.freedoms]]
    slopes = [
        ca.gradient(part.potential_energy(q), q).T @ robot.rate(q, fields[:, k])
        for part in parts.values()
        for k in range(fields.shape[1])
    ]
    pulls = ca.Function("pulls", [q], [ca.reshape(ca.vertcat(*slopes), -1, len(parts))])
    samples = [np.abs(np.array(pulls(at))) for at, _, _ in search.states(11, SAMPLES)]
    sizes = np.max(samples, axis=(0, 1))
    names = [name for name, size in zip(parts, sizes, strict=True) if size > ROUNDING * sizes.max()]
    return f"{' and '.join(names)} {'act' if names[-1] == 'springs' else 'acts'} along it"


def _evidence(found: Conservation, potential_of: str) -> str:
    """What changes the momentum, each with its relative rate."""
    reasons = {
        "the inertia depends on it, or dampers act along it": found.metric,
        potential_of: found.potential,
        "reactions of the wheels act along it, the two-form's leg": found.form,
        "other drives act along it through the wheels": found.push,
    }
    texts = [f"{text} ({rate:.1e})" for text, rate in reasons.items() if rate > found.tolerance]
    if found.driven:
        texts.insert(0, "its drive changes it")
    return "; ".join(texts) or f"it changes at the relative rate {found.rate:.1e} only"


def _legs(model: ReducedModel, joint: str) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Columns of the two-form along a joint, on wheels, as a function of q and v."""
    first, rows = model.first, joint_place(model.system, joint).freedoms
    if not getattr(model.system, "wheels", model.system.nf):
        return lambda q, v: np.zeros((first.ns, len(rows)))
    group = [first.shape.index(i) for i in rows]
    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    momentum = first.mass_matrix(q) @ ca.densify(v[list(first.shape)])
    legs = first.two_form(q, momentum)[:, group]
    graph = ca.Function("legs", [q, v], [ca.densify(legs)], {"cse": True})
    return lambda q, v: np.array(graph(q, v))


def _large(sizes: np.ndarray) -> list[int]:
    """Where an array is not zero but for rounding."""
    return [int(i) for i in np.flatnonzero(sizes > ROUNDING * np.max(sizes, initial=0.0))]
