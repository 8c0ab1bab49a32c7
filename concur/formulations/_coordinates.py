"""A system in other coordinates: its energies, constraints and inputs along a map into them."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from concur.errors import ShapeError
from concur.formulations._expressions import EXACT, Space
from concur.formulations._factor import Factor


def pulled_back(system: Any, space: Space, configuration: Any) -> dict[str, Any]:
    """Arguments of the system in the coordinates of a space.

    Parameters
    ----------
    system : LagrangianSystem
        The system.
    space : Space
        The other coordinates.
    configuration : casadi.SX
        Configuration of the system by those coordinates, shape (nq,).

    Returns
    -------
    dict of str to any
        Arguments of `LagrangianSystem`, but for factors and name.
    """
    place = _placed(system, space, configuration)
    rates = [f.rate(f.q, f.v) for f in space.factors]
    moved = ca.jtimes(place, space.q, ca.vertcat(*rates))
    v = ca.vertcat(*_velocities(system, space, place, moved))
    kinetic, potential, _, held, inputs = system.graph(place, v)
    frames = dict(zip(system.drawn, system._poses.call([place]), strict=True))
    kept = [factor.name for factor, _ in _unchanged(system, space, place)]
    names = [name for name in kept if name in system.symmetry]
    return {
        "kinetic": kinetic,
        "potential": potential,
        "constraints": _named(system.constraint_names, held @ v, None) or None,
        "inputs": _named(system.control_names, inputs @ v, system.control_units) or None,
        "symmetry": names,
        "drawn": {name: (pose, origin) for (name, origin), pose in frames.items()} or None,
    }


def _named(names: tuple[str, ...], rows: ca.SX, units: tuple[str, ...] | None) -> dict[str, Any]:
    """Rows by name, with their units."""
    if units is None:
        return {name: rows[k] for k, name in enumerate(names)}
    return {name: (rows[k], unit) for k, (name, unit) in enumerate(zip(names, units, strict=True))}


def _placed(system: Any, space: Space, configuration: Any) -> ca.SX:
    """Read the map, and demand that it gives configurations of the system."""
    what = "`configuration`"
    given = configuration
    if isinstance(given, list | tuple) and given:
        given = ca.vertcat(*given)
    place = space.column(given, what)
    if place.shape != (system.nq, 1):
        cure = "Give the configurations of its factors in their order: casadi.vertcat."
        expected = f"shape ({system.nq}, 1), a configuration of `{system.name}`"
        raise space.refused(what, expected, f"shape {place.shape}", cure, ShapeError)
    if ca.depends_on(place, space.v):
        expected, came = "an expression of the coordinates", "one that depends on velocities"
        raise space.refused(what, expected, came, "Write it in `q` of the factors.")
    value = ca.Function("place", [space.q], [place])
    for q, _ in space.samples():
        here = np.array(value(q))[:, 0]
        if not np.isfinite(here).all():
            raise space.infinite(what, q)
        off = float(np.abs(np.asarray(system.normalize(here)) - here).max())
        if off > EXACT:
            expected = "directions and quaternions of norm one"
            came = f"a norm that is {off:.2g} off at random coordinates"
            raise space.refused(what, expected, came, "Correct the map.")
    return place


def _unchanged(system: Any, space: Space, place: ca.SX) -> list[tuple[Factor, Factor]]:
    """Factors of the system that the map leaves as they are, with those of the space."""
    own, found, at = {factor.name: factor for factor in space.factors}, list[Any](), 0
    for factor in system.factors:
        q, at = place[at : at + factor.nq], at + factor.nq
        same = own.get(factor.name)
        if same is not None and same.group == factor.group and ca.is_equal(q, same.q, 8):
            found.append((factor, same))
    return found


def _velocities(system: Any, space: Space, place: ca.SX, moved: ca.SX) -> list[ca.SX]:
    """Velocities of each factor of the system for rates of its configuration."""
    own = {factor.name: same.v for factor, same in _unchanged(system, space, place)}
    found, at = list[ca.SX](), 0
    for factor in system.factors:
        q, rate = place[at : at + factor.nq], moved[at : at + factor.nq]
        at += factor.nq
        found.append(own[factor.name] if factor.name in own else _velocity(factor, q, rate))
    return found


def _velocity(factor: Factor, q: ca.SX, rate: ca.SX) -> ca.SX:
    """Velocity of a factor for a rate of its configuration; without spin of a two-sphere."""
    if factor.spherical:
        return ca.SX(ca.cross(q, rate))
    v = ca.SX.sym("v", factor.nv)
    rows = ca.jacobian(factor.rate(q, v), v)
    return ca.SX(ca.solve(rows.T @ rows, rows.T @ rate))
