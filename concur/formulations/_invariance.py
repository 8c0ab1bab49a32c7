"""The symmetry group that a `LagrangianSystem` declares: its factors, and their invariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import shown
from concur.formulations._expressions import EXACT, Space
from concur.robot import unknown_name

ROUNDING = 1e-12
"""Largest change of a potential energy that is rounding, relative to its terms."""


def group_names(space: Space, symmetry: Any, *, framed: bool, constrained: bool) -> tuple[str, ...]:
    """Names of the factors of the symmetry group, in the order of the factors."""
    given = (symmetry,) if isinstance(symmetry, str) else symmetry
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        cure = 'Write symmetry="hull", or ["hull", "rotor"].'
        raise space.refused("`symmetry`", "names of factors", shown(symmetry), cure)
    names = [factor.name for factor in space.factors]
    for name in given:
        if name not in names:
            raise unknown_name(f"{space.where}, `symmetry`", "factor", name, names)
    found = tuple(factor.name for factor in space.factors if factor.name in given)
    if not found:
        return ()
    spheres = [f.name for f in space.factors if f.spherical and f.name in found]
    if spheres:
        came = f"`{spheres[0]}`, a two-sphere"
        cure = "Name factors in R^n, SO2, SO3, SE2 or SE3."
        raise space.refused("`symmetry`", "groups", came, cure)
    if len(found) == len(names):
        came, cure = "all of them", "Name those whose momentum is constant, not the shape."
        raise space.refused("`symmetry`", "some of the factors", came, cure)
    if framed or constrained:
        what = "`frame`" if framed else "`constraints`"
        cure = "Leave the symmetry out: such a system is reduced by its constraints alone."
        if framed:
            cure = "Leave the frame out: the momentum is dual to the velocities of the factors."
        raise space.refused("`symmetry`", f"no {what} beside a symmetry", f"{what}", cure)
    return found


def check_invariance(space: Space, graph: ca.Function, names: tuple[str, ...]) -> None:
    """Demand energies and inputs that do not depend on where the group's factors are.

    Changes are relative, so that no unit matters: of the mass matrix and of inputs in velocities
    that have the mass one, of the potential energy to it and to its terms.
    """
    q, v = space.q, space.v
    energy, height, _, _, inputs = graph(q, v)
    mass = ca.substitute(ca.hessian(energy, v)[0], v, ca.SX.zeros(space.nv))
    terms = ca.fabs(height) + ca.dot(ca.fabs(ca.gradient(height, q)), ca.fabs(q))
    parts = ca.Function("parts", [q], [mass, height, inputs, terms])
    places = [place for place, _ in space.samples()]
    numbers = [[np.array(part) for part in parts(place)] for place in places]
    size = max(float(part[3][0, 0]) for part in numbers)
    at_q, at_v = 0, 0
    for factor in space.factors:
        span, own = slice(at_q, at_q + factor.nq), slice(at_v, at_v + factor.nv)
        at_q, at_v = span.stop, own.stop
        if factor.name not in names:
            continue
        for place, other, here in zip(places, places[1:] + places[:1], numbers, strict=True):
            moved = place.copy()
            moved[span] = other[span]
            there = [np.array(part) for part in parts(moved)]
            unit = 1.0 / np.sqrt(np.diag(here[0]))
            rows = here[2] * unit
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            lengths[lengths == 0.0] = 1.0
            found = (
                ("the kinetic energy", (there[0] - here[0]) * np.outer(unit, unit), EXACT),
                ("the potential energy", (there[1] - here[1]) / (size or 1.0), ROUNDING),
                ("an input", (there[2] - here[2]) * unit / lengths, EXACT),
            )
            for name, changes, most in found:
                change = np.abs(changes).max(initial=0.0)
                if not change <= most:
                    expected = f"energies and inputs that do not depend on `{factor.name}`"
                    came = f"{name} that changes by {change:.2g} of its size as it moves"
                    cure = (
                        "Write energies in its velocities v, in body axes. Gravity breaks the "
                        "symmetry: name a factor along which it does no work."
                    )
                    raise space.refused("`symmetry`", expected, came, cure)
            push = np.abs(rows[:, own] / lengths).max(initial=0.0)
            if push > EXACT:
                expected = f"no input along `{factor.name}`, whose momentum is then constant"
                came = f"an input with {push:.2g} of its size along it"
                cure = "Leave the symmetry out: inputs change this momentum."
                raise space.refused("`symmetry`", expected, came, cure)
