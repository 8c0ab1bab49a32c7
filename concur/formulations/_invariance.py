"""The symmetry group that a `LagrangianSystem` declares: its factors, and their invariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import shown
from concur.formulations._expressions import EXACT, Space
from concur.robot import unknown_name


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
    """Demand energies and inputs that do not depend on where the group's factors are."""
    starts_q, starts_v = (
        np.cumsum([0, *(f.nq for f in space.factors)]),
        np.cumsum([0, *(f.nv for f in space.factors)]),
    )
    what = ("the kinetic energy", "the potential energy", None, None, "an input")
    samples = space.samples()
    for k, factor in enumerate(space.factors):
        if factor.name not in names:
            continue
        span = slice(starts_q[k], starts_q[k + 1])
        own = slice(starts_v[k], starts_v[k + 1])
        for (q, v), (other, _) in zip(samples, samples[1:] + samples[:1], strict=True):
            moved = q.copy()
            moved[span] = other[span]
            here, there = ([np.array(part) for part in graph(place, v)] for place in (q, moved))
            for name, a, b in zip(what, here, there, strict=True):
                change = np.abs(a - b).max(initial=0.0)
                if name is not None and change > EXACT * (1.0 + np.abs(a).max(initial=0.0)):
                    expected = f"energies and inputs that do not depend on `{factor.name}`"
                    came = f"{name} that changes by {change:.3g} as it moves at a random state"
                    cure = (
                        "Write energies in its velocities v, in body axes. Gravity breaks the "
                        "symmetry: name a factor along which it does no work."
                    )
                    raise space.refused("`symmetry`", expected, came, cure)
            push = np.abs(here[4][:, own]).max(initial=0.0)
            if push > EXACT:
                expected = f"no input along `{factor.name}`, whose momentum is then constant"
                came = f"an input with {push:.3g} along it"
                cure = "Leave the symmetry out: inputs change this momentum."
                raise space.refused("`symmetry`", expected, came, cure)
