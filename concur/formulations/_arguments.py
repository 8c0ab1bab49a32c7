"""Arguments of a `LagrangianSystem`, read and checked: energy, frame, inputs, units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from concur.errors import ShapeError, UnknownNameError, shown
from concur.formulations._expressions import EXACT, SINGULAR, Row, Space, least_eigenvalue
from concur.robot import Motor


def quadratic_energy(space: Space, value: Any) -> ca.SX:
    """Kinetic energy as a quadratic form, from an energy or a mass matrix."""
    given, what = space.column(value, "`kinetic`"), "`kinetic`"
    size = (space.nv, space.nv)
    is_matrix = given.shape == size and not ca.depends_on(given, space.v)
    if not is_matrix and given.shape != (1, 1):
        expected = f"a scalar energy, or a mass matrix of shape {size} without velocities"
        cure = "Add up the energies of all bodies."
        raise space.refused(what, expected, f"shape {given.shape}", cure, ShapeError)
    matrix = given if is_matrix else ca.hessian(given, space.v)[0]
    matrix = ca.substitute(matrix, space.v, ca.SX.zeros(space.nv))
    energy = ca.bilin(matrix, space.v, space.v) / 2 if is_matrix else given
    both = ca.Function("both", [space.q, space.v], [energy, matrix])
    for q, v in space.samples():
        number, mass = (np.array(part) for part in both(q, v))
        if not (np.isfinite(number).all() and np.isfinite(mass).all()):
            raise space.infinite(what, q)
        size_of = float(np.abs(v) @ np.abs(mass) @ np.abs(v))
        skew = np.abs(mass - mass.T).max()
        if skew > EXACT * np.abs(mass).max():
            row, column = divmod(int(np.abs(mass - mass.T).argmax()), space.nv)
            came = f"entries {mass[row, column]:.6g} and {mass[column, row]:.6g} of {row}, {column}"
            raise space.refused(what, "a symmetric mass matrix", came, "Correct one of them.")
        rest = abs(number[0, 0] - v @ mass @ v / 2)
        if rest > EXACT * (size_of or 1.0):
            came = f"a rest of {rest:.3g} J at a random state"
            cure = "Leave out terms that are constant or linear in the velocities."
            raise space.refused(what, "a quadratic function of the velocities", came, cure)
    return energy


def drawn_frames(
    space: Space, value: Any
) -> tuple[tuple[tuple[str, str | None], ...], list[ca.SX]]:
    """Names of frames that are drawn, each with the one a bar comes from, and their poses."""
    if value is None:
        return (), []
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        cure = 'Write {"pivot": casadi.SX.zeros(3), "bob": place}.'
        raise space.refused("`drawn`", "frames by name", shown(value), cure)
    names, found, poses = list(value), list[tuple[str, str | None]](), list[ca.SX]()
    for k, (name, entry) in enumerate(value.items()):
        pair = isinstance(entry, tuple) and len(entry) == 2
        given, origin = entry if pair else (entry, names[k - 1] if k else None)
        what = f"`drawn` `{name}`"
        if origin not in (names[:k] or [None]):
            before = ", ".join(names[:k])
            expected = f"the name of a frame before it ({before})" if k else "no name: it is first"
            cure = "Put the frame from which the bar comes first."
            raise space.refused(what, expected, shown(origin), cure, UnknownNameError)
        pose = space.column(given, what)
        if pose.shape in ((3, 1), (1, 3)):
            pose = ca.vertcat(ca.horzcat(ca.SX.eye(3), ca.vec(pose)), ca.SX([[0, 0, 0, 1]]))
        if pose.shape != (4, 4):
            cure = "Join the rotation and the position with casadi.horzcat and vertcat."
            came = f"shape {pose.shape}"
            raise space.refused(what, "a position (3,) or a pose (4, 4)", came, cure, ShapeError)
        if ca.depends_on(pose, space.v):
            cure = "Write it in the configurations `q` of the factors."
            raise space.refused(what, "an expression of configurations", "one of velocities", cure)
        rotate = ca.Function("pose", [space.q], [pose])
        for q, _ in space.samples():
            matrix = np.array(rotate(q))
            if not np.isfinite(matrix).all():
                raise space.infinite(what, q)
            turn = matrix[:3, :3]
            off = float(np.abs(turn.T @ turn - np.eye(3)).max())
            last = float(np.abs(matrix[3] - [0, 0, 0, 1]).max())
            if max(off, last) > EXACT or np.linalg.det(turn) < 0.0:
                came = f"a matrix that is {max(off, last):.3g} off at a random configuration"
                cure = "Use `pose` of a factor in SO2, SO3, SE2 or SE3 for the rotation."
                raise space.refused(what, "a rotation and a row 0, 0, 0, 1", came, cure)
        found.append((name, origin))
        poses.append(ca.densify(pose))
    return tuple(found), poses


def frame_matrix(space: Space, velocities: Sequence[Row]) -> ca.SX:
    """Matrix A of the frame's velocities, regular."""
    if len(velocities) != space.nv:
        expected, came = f"{space.nv} velocities", f"{len(velocities)}"
        cure = "Give as many as the factors have; three for a two-sphere."
        raise space.refused("`frame`", expected, came, cure, ShapeError)
    matrix = space.linear(velocities, "`frame`")
    regular = ca.Function("frame", [space.q], [matrix])
    for q, _ in space.samples():
        rows = np.array(regular(q))
        least, _ = least_eigenvalue(rows @ rows.T)
        if least < SINGULAR:
            came = f"a singular matrix (least eigenvalue {least:.1e}) at a random configuration"
            cure = "Replace a velocity that follows from the others."
            raise space.refused("`frame`", "independent velocities", came, cure)
    return matrix


def input_rows(
    space: Space, velocities: Sequence[Row], inputs: Any
) -> tuple[tuple[int, ...], list[Row], tuple[Motor, ...]]:
    """Velocities with a motor each, if all inputs are such, the inputs' own, and their motors."""
    if inputs is None:
        return (), [], ()
    if isinstance(inputs, Mapping):
        return (), space.rows(inputs, "`inputs`", "input"), ()
    names = [label for label, _, _ in velocities]
    listed = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    motors = tuple(motor for motor in listed if isinstance(motor, Motor))
    if motors:
        return (), _motor_rows(space, velocities, listed), motors
    unknown = next((name for name in listed if name not in names), None)
    if unknown is not None or len(set(listed)) < len(listed):
        expected = f"different velocities ({', '.join(names)}), or expressions by name"
        cure = 'Write ["cart"], or {"force": tip_velocity} for other forces.'
        kind, name = UnknownNameError, str(unknown)
        raise space.refused("`inputs`", expected, shown(inputs), cure, kind, name=name)
    places = tuple(names.index(name) for name in listed)
    return places, [velocities[k] for k in places], ()


def _motor_rows(space: Space, velocities: Sequence[Row], listed: Sequence[Any]) -> list[Row]:
    """Speed of each motor, and the velocities of inputs without one."""
    known, found = {label: row for label, *row in velocities}, dict[str, Row]()
    for given in listed:
        motor = given if isinstance(given, Motor) else None
        name = motor.name if motor else str(given)
        ratios = motor.ratios if motor else {name: 1.0}
        what = f"`inputs` `{name}`"
        for missing in [joint for joint in ratios if joint not in known]:
            expected, cure = f"velocities of the system ({', '.join(known)})", "Correct the name."
            kind = UnknownNameError
            raise space.refused(what, expected, f"`{missing}`", cure, kind, name=missing)
        if name in found:
            cure = "Rename or remove one."
            raise space.refused("`inputs`", "different names", f"`{name}` twice", cure)
        if motor and (motor.body or motor.stator or motor.shaft):
            expected = "a motor with ratios of velocities alone"
            came = next(f for f in ("body", "stator", "shaft") if getattr(motor, f))
            cure = "A system has no bodies. Write the power of a thruster as an expression, and "
            cure += "the energy of a rotor that turns with the system into `kinetic`."
            raise space.refused(what, expected, f"`{came}`", cure)
        row = sum((ratio * known[joint][0] for joint, ratio in ratios.items()), ca.SX(0))
        units = [known[joint][1] or force_unit(space, (name, row, None)) for joint in ratios]
        linear = (motor is None or abs(motor.gear) == 1.0) and all(unit == "N" for unit in units)
        found[name] = (name, row, "N" if linear else "N m" if motor else units[0])
    return list(found.values())


def rotor_energy(rows: Sequence[Row], motors: Sequence[Motor]) -> ca.SX:
    """Kinetic energy of rotors by their speeds relative to their stators, J."""
    speeds = {label: row for label, row, _ in rows}
    return sum((m.rotor * speeds[m.name] ** 2 / 2 for m in motors if m.rotor), ca.SX(0))


def rows_without_spin(space: Space, rows: Sequence[Row], what: str) -> ca.SX:
    """Matrix of linear functions of the velocities on which spin has no effect."""
    labels = [label for label, _, _ in rows]
    column = space.without_spin(ca.vertcat(ca.SX(0, 1), *[row for _, row, _ in rows]))
    parts = [(label, column[k], None) for k, label in enumerate(labels)]
    return space.linear(parts, what) if rows else ca.SX(0, space.nv)


def force_unit(space: Space, row: Row) -> str:
    """Unit of the force along a velocity."""
    _, expression, unit = row
    turning = [turns for factor in space.factors for turns in factor.turning]
    used = ca.jacobian(expression, space.v).sparsity().get_triplet()[1]
    return unit or ("N m" if all(turning[k] for k in used) else "N")
