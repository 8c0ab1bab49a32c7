"""Gains, limits and weights as a user writes them, read into arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from concur.codegen import LARGEST, as_floats, finite_floats, nonfinite_error, shape_error
from concur.errors import ConcurError, NonFiniteError, OutputError, ShapeError
from concur.outputs import Output, check_planar, checked_outputs
from concur.reduction import ReducedModel
from concur.robot import Mechanism, scalar, unknown_name

NO_MOTORS = (
    "Add motors, thrusters or inputs in `actuated` of the robot, a wheel or slider that holds what "
    'the wheels leave free, or reduce(robot, stages="auto") for joints that keep their momentum. '
    "Loads on cables are damped by a regulator of `concur.control.linear_loop(model, at=q)`. "
    "Without a law `concur.simulation.forced_motion` moves the robot."
)
"""What to do where controls do not suffice for a law."""


def is_one_pose(outputs: Sequence[Output]) -> bool:
    """Whether the reference pose may be a matrix (4, 4): of one output that is a full pose."""
    return [output.group in ("SE3", "R3xSO3") for output in outputs] == [True]


def matching_outputs(model: Any, outputs: Any) -> tuple[Output, ...]:
    """Outputs that fit a reduced robot: at most as many coordinates as shape velocities.

    There must be at least as many controls, and no planar output on a body that tilts.
    """
    if not isinstance(model, ReducedModel):
        raise OutputError(
            "servo, `model`",
            expected="a reduced model",
            came=f"{type(model).__name__} {model!r:.40}",
            cure="Pass reduce(robot).",
        )
    checked = checked_outputs(model.system, outputs, "servo", functions=True)
    where = f"servo of `{model.name}`"
    check_controls(model, where)
    needed = sum(output.dim for output in checked)
    if needed > model.ns:
        sizes = ", ".join(f"{o.name} {o.group} {o.dim}" for o in checked)
        raise OutputError(
            f"{where}, `outputs`",
            expected=f"at most {model.ns} output coordinates, one per shape velocity "
            f"({', '.join(model.shape_names)})",
            came=f"{needed} ({sizes})",
            cure="Remove outputs or drive more joints.",
            outputs=needed,
            controls=model.nu,
        )
    for output in checked:
        if output.lie.planar and isinstance(model.system, Mechanism):
            check_planar(where, model.robot, output, lambda q: model.lift(q)[0])
    return checked


def check_controls(model: ReducedModel, where: str) -> None:
    """Demand at least as many controls as shape velocities, of which there are some."""
    if model.ns and model.nu >= model.nd:
        return
    shape = f"the shape velocities {', '.join(model.shape_names)}" if model.ns else "a law"
    names = f": {', '.join(model.control_names)}" if model.nu else ""
    raise OutputError(
        f"{where}, controls",
        expected=f"at least {max(model.nd, 1)} controls for {shape}",
        came=f"{model.nu}{names}",
        cure=NO_MOTORS,
    )


def positive(
    where: str,
    value: Any,
    expected: str = "a number above zero",
    cure: str | None = None,
    error: type[ConcurError] = OutputError,
) -> float:
    """Read a finite number above zero."""
    number = scalar(value, where)
    if not number > 0.0:
        cure = cure or "Leave it out for the default."
        raise error(where, expected=expected, came=f"{number:.6g}", cure=cure)
    return number


def read_each(
    where: str, value: Any, owners: Sequence[str], kind: str = "output", *, zero: bool = False
) -> np.ndarray:
    """Read one number for all, or one for each of some things with names.

    Parameters
    ----------
    where : str
        Place named in errors.
    value : float, sequence of float or mapping
        The numbers, above zero; a mapping gives some of them by name, the others are one.
    owners : sequence of str
        Names of the outputs, controls or joints.
    kind : str
        What they are.
    zero : bool
        Whether zero is allowed.

    Returns
    -------
    numpy.ndarray
        One number for each, shape (k,), not writable.

    Raises
    ------
    UnknownNameError
        If a name of a mapping is unknown.
    ShapeError
        If the numbers do not fit.
    NonFiniteError
        If one is NaN or infinite.
    OutputError
        If one is below its range.
    """
    if isinstance(value, Mapping):
        value = _by_name(where, value, owners, kind, 1.0)
    numbers = as_floats(value, where)
    if numbers.shape not in ((), (len(owners),)):
        raise unequal(where, "number", owners, kind, numbers.shape)
    if not np.isfinite(numbers).all():
        raise nonfinite_error(where, numbers)
    each = np.broadcast_to(numbers, (len(owners),)).copy()
    for owner, number in zip(owners, each, strict=True):
        if number < 0.0 or (number == 0.0 and not zero):
            raise OutputError(
                f"{where}, {kind} `{owner}`",
                expected="a number not below zero" if zero else "a number above zero",
                came=f"{number:.6g}",
                cure="Give one for all, or one for each.",
            )
    each.setflags(write=False)
    return each


def unequal(
    where: str, what: str, owners: Sequence[str], kind: str, shape: tuple[int, ...]
) -> ShapeError:
    """Build the error for numbers that are neither one for all nor one for each."""
    return ShapeError(
        where,
        expected=f"one {what}, or one for each {kind} ({', '.join(owners)})",
        came=f"shape {shape}",
        cure="Give them in this order.",
    )


def _by_name(where: str, value: Mapping[Any, Any], names: Any, kind: str, usual: Any) -> list[Any]:
    """Entries in order, of a mapping from some of the names."""
    for name in value:
        if name not in names:
            raise unknown_name(where, kind, name, [*names])
    return [value.get(name, usual) for name in names]


def read_outputs(outputs: Any) -> tuple[Output, ...]:
    """Read the outputs that gains are for.

    Parameters
    ----------
    outputs : sequence of Output
        The outputs, or one output.

    Returns
    -------
    tuple of Output
        The outputs.

    Raises
    ------
    OutputError
        If there is no output, or an entry is not an `Output`.
    """
    listed = [outputs] if isinstance(outputs, Output) or not np.iterable(outputs) else [*outputs]
    if not listed or not all(isinstance(output, Output) for output in listed):
        raise OutputError(
            "gains, `outputs`",
            expected="a sequence of Output",
            came=repr(outputs)[:60],
            cure="Pass the outputs that the servo gets.",
        )
    return tuple(listed)


def read_gain(
    where: str, value: Any, outputs: Sequence[Output], definite: bool = True
) -> np.ndarray:
    """Read a gain as a symmetric positive definite matrix (size, size), a read-only copy.

    A number; one entry per output, each a number or one number per coordinate; or a matrix. Unless
    `definite`, it may be singular, as an integral is for outputs without one.
    """
    matrix = _gain_matrix(where, value, outputs)
    cure = "The error dynamics would not be stable: give gains above zero."
    return definite_matrix(where, matrix, cure, 0.0 if definite else -1e-12)


def definite_matrix(where: str, matrix: np.ndarray, cure: str, least: float = 0.0) -> np.ndarray:
    """Check a symmetric matrix, whose eigenvalues are above a share of its largest entry."""
    if not np.isfinite(matrix).all():
        raise nonfinite_error(where, matrix)
    size = np.abs(matrix).max()
    symmetric = np.abs(matrix - matrix.T).max() <= 1e-12 * size
    lowest = float(np.linalg.eigvalsh(matrix)[0]) if symmetric else float("nan")
    if not (lowest > 0.0 if least == 0.0 else lowest >= least * size):
        raise OutputError(
            where,
            expected=f"positive numbers or a symmetric positive {'semi' * (least < 0.0)}definite "
            "matrix",
            came=f"smallest eigenvalue {lowest:.6g}" if symmetric else "an unsymmetric matrix",
            cure=cure,
        )
    # Rounding that is left, as in R D R^T, would be an unsymmetric gain to an exact check.
    matrix = np.asarray((matrix + matrix.T) / 2)
    matrix.setflags(write=False)
    return matrix


def _gain_matrix(where: str, value: Any, outputs: Sequence[Output]) -> np.ndarray:
    size = sum(output.dim for output in outputs)
    if not np.iterable(value) and value is not None:
        return scalar(value, where) * np.eye(size)
    entries = [] if value is None or isinstance(value, str) else list(value)
    nested = [np.iterable(entry) and len(list(entry)) == size for entry in entries]
    if len(entries) == size and all(nested):
        matrix = as_floats(value, where)
        if matrix.shape != (size, size):
            raise shape_error(where, (size, size), matrix.shape)
        _check_directions(where, matrix, outputs)
        return np.array(matrix)
    if len(entries) != len(outputs):
        raise ShapeError(
            where,
            expected=f"a number, {len(outputs)} entries, one per output, or a matrix "
            f"({size}, {size})",
            came=f"{len(entries)} entries" if entries else repr(value),
            cure="Write one gain for each of " + ", ".join(o.name for o in outputs) + ".",
        )
    blocks = []
    for output, entry in zip(outputs, entries, strict=True):
        numbers = as_floats(entry, f"{where}, output `{output.name}`")
        if numbers.shape not in ((), (output.dim,)):
            raise shape_error(f"{where}, output `{output.name}`", (output.dim,), numbers.shape)
        blocks.append(np.broadcast_to(numbers, (output.dim,)))
    matrix = np.diag(np.concatenate(blocks))
    _check_directions(where, matrix, outputs)
    return matrix


def _check_directions(where: str, gain: np.ndarray, outputs: Sequence[Output]) -> None:
    """Demand one number as the gain of a direction, whose normals turn, without coupling."""
    start = 0
    for output in outputs:
        span = slice(start, start + output.dim)
        start = span.stop
        own = np.zeros_like(gain[:, span])
        own[span] = gain[span.start, span.start] * np.eye(output.dim)
        apart = np.array_equal(gain[:, span], own) and np.array_equal(gain[span].T, own)
        if output.group == "S2" and not apart:
            raise OutputError(
                f"{where}, output `{output.name}`",
                expected="one number for a direction, without coupling to other outputs",
                came=f"{gain[span].tolist()}",
                cure="No two normals of a direction are distinct everywhere: give one gain.",
            )


def read_limits(where: str, value: Any, model: ReducedModel) -> np.ndarray:
    """Read torque limits as a user writes them: a law keeps none that is wider than the robot's.

    Parameters
    ----------
    where : str
        Place named in errors.
    value : bool, float, sequence, mapping or None
        True for those of the robot's motors and joints; one limit for all controls; one per
        control; or a mapping from names of controls to limits. A limit is a number (the largest
        size in both directions), a pair (lower, upper), or None or infinity for no limit. N for
        forces, N m for torques. Controls keep the limits of the robot where these are narrower.
    model : ReducedModel
        Model of the robot with its controls.

    Returns
    -------
    numpy.ndarray
        Lower and upper limits, shape (nu, 2), not writable.

    Raises
    ------
    ShapeError
        If the entries do not fit the controls or are not numeric.
    UnknownNameError
        If a name is not that of a control.
    NonFiniteError
        If a number is NaN.
    OutputError
        If a lower limit is not below its upper one, or the robot has no limits.
    """
    own = getattr(model.system, "control_limits", np.full(model.nu, np.inf))[:, None]
    if value is True and not np.isfinite(own).any():
        raise OutputError(
            where,
            expected="limits, or a robot with limits of motors or joints",
            came="a robot without them",
            cure="Give `torque` of its motors or `torque_limit` of its joints.",
        )
    limits = np.array([-1.0, 1.0]) * own if value is True else stated_limits(where, value, model)
    if value is not None:
        limits = np.clip(limits, -own, own)
    for k in np.flatnonzero(limits[:, 0] >= limits[:, 1]):
        raise OutputError(
            f"{where}, control `{model.control_names[k]}`",
            expected=f"room within {own[k, 0]:g}, the limit of the robot",
            came=f"{value!r:.60}",
            cure="Correct the limits.",
        )
    limits.setflags(write=False)
    return limits


def stated_limits(where: str, value: Any, model: ReducedModel) -> np.ndarray:
    """Read torque limits as they are written, where those of the robot may be narrower.

    Parameters
    ----------
    where : str
        Place named in errors.
    value : float, sequence, mapping or None
        As of `read_limits`, without True.
    model : ReducedModel
        Model of the robot with its controls.

    Returns
    -------
    numpy.ndarray
        Lower and upper limits, shape (nu, 2).
    """
    names = list(model.control_names)
    if isinstance(value, Mapping):
        entries = _by_name(where, value, names, "control", None)
    elif value is None or not np.iterable(value) or isinstance(value, str):
        entries = [value] * len(names)
    else:
        entries = list(value)
    if len(entries) != len(names):
        raise unequal(where, "limit", names, "control", (len(entries),))
    pairs = zip(names, entries, strict=True)
    rows = [_read_limit(f"{where}, control `{name}`", entry) for name, entry in pairs]
    return np.array(rows, dtype=float).reshape(-1, 2)


def _read_limit(where: str, entry: Any) -> tuple[float, float]:
    pair = np.iterable(entry) and not isinstance(entry, (str, Mapping))
    parts = list(entry) if pair else [entry, entry]
    free = (-np.inf if pair or entry is None else np.inf, np.inf)
    numbers = [
        as_floats(usual if part is None else part, where)
        for usual, part in zip(free, parts, strict=False)
    ]
    if len(parts) != 2 or any(number.shape != () for number in numbers):
        raise ShapeError(
            where,
            expected="a number or a pair (lower, upper)",
            came=f"{entry!r:.60}",
            cure="Write for example 5.0 or [-2.0, 5.0].",
        )
    lower, upper = map(float, numbers)
    if not pair and entry is not None:
        lower = -lower
    if np.isnan([lower, upper]).any():
        raise NonFiniteError(
            where,
            expected="limits that are numbers or infinite",
            came=f"{entry!r:.60}",
            cure="Write inf, or leave the control out, where there is no limit.",
        )
    if not lower < upper or lower == np.inf or upper == -np.inf:
        raise OutputError(
            where,
            expected="a number above zero, or a lower limit below the upper one",
            came=f"{entry!r:.60}",
            cure="The control would have no room: correct the limits.",
            lower=lower,
            upper=upper,
        )
    return lower, upper


def check_bounds(where: str, longest_period: Any, largest_state: Any, nz: int) -> None:
    """Reject bounds that are not positive and finite, or do not fit the state."""
    if longest_period is not None:
        positive(f"{where}, `longest_period`", longest_period, "a time above zero, s")
    if largest_state is not None and nz:
        bounds = finite_floats(largest_state, f"{where}, `largest_state`", (), (nz,))
        if not ((bounds > 0.0) & (bounds <= LARGEST)).all():
            raise OutputError(
                f"{where}, `largest_state`",
                expected=f"magnitudes above zero and up to {LARGEST:g}",
                came=f"{largest_state!r:.60}",
                cure="Leave it out for the default, or give a number or one for each entry of z.",
            )
