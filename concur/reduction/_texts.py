"""Sentences about results of the reduction: what is constant or is not, and the evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from concur.groups import classify
from concur.reduction._search import ROUNDING, ConstantMomentum, is_whole
from concur.robot import Mechanism

DIRECTION = 1e-6
"""Axes and twists closer than this (rad, lengths of the part) are the same."""

_ALONG_AXIS = re.compile(r"(.* (?:along|about) )([xyz])\b(.*)")


def momentum_units(
    robot: Mechanism, joint: str, generators: Sequence[Sequence[float]]
) -> tuple[str, ...]:
    """Units of the momenta along generators of a joint: N m s about an axis, N s along one."""
    basis = robot.bodies[robot.index(joint)].joint.basis
    turns = np.abs((basis @ np.array(generators).T)[3:]).max(axis=0) > ROUNDING
    return tuple("N m s" if turn else "N s" for turn in turns)


def momenta_text(theta: Sequence[float] | np.ndarray, units: Sequence[str]) -> str:
    """Momenta with sign and unit.

    Parameters
    ----------
    theta : sequence of float
        The momenta.
    units : sequence of str
        Unit of each.

    Returns
    -------
    str
        The text.
    """
    if not np.any(theta):
        return "zero"
    numbers = [f"{value:.4g}" for value in theta]
    if len(numbers) == 1:
        return f"{numbers[0]} {units[0]}"
    if len(set(units)) == 1:
        return f"({', '.join(numbers)}) {units[0]}"
    return f"({', '.join(f'{x} {unit}' for x, unit in zip(numbers, units, strict=True))})"


def keeps(robot: Mechanism, part: ConstantMomentum) -> str:
    """Part of its momentum that a joint keeps, like "wz in the axes of the body"."""
    if is_whole(robot, part):
        return "keeps its momentum"
    names, texts = robot.bodies[robot.index(part.joint)].joint.freedom_names, []
    for generator in part.generators:
        terms = [
            (("- " if x < 0.0 else "+ ") + ("" if abs(x) == 1.0 else f"{abs(x):.4g} ") + name)
            for x, name in zip(generator, names, strict=True)
            if x
        ]
        texts.append(" ".join(terms).removeprefix("+ "))
    axes = "the frame it attaches to" if part.seen_from == "parent" else "the body"
    turned = ", with all it carries turned back" if part.seen_from == "link" else ""
    return f"keeps a part of its momentum, {', '.join(texts)} in the axes of {axes}{turned}"


def why_kept(robot: Mechanism, part: ConstantMomentum, tolerance: float) -> str:
    """Evidence that a momentum is constant, and where velocities do not follow from it."""
    if is_whole(robot, part):
        text = _held(part.rate)
    else:
        basis = robot.bodies[robot.index(part.joint)].joint.basis
        group = classify(basis @ np.array(part.generators).T).name
        text = f"{group}, momentum changes at the relative rate {part.rate:.1e} only"
    if part.rate > ROUNDING:
        text += f", within the tolerance {tolerance:.1g}"
    if not part.everywhere:
        follows = " and ".join(robot.freedom_names[i] for i in part.follows)
        text += f"; {follows} does not follow from it everywhere, see `regularity`"
    return text


def _held(rate: float) -> str:
    return f"it is unactuated, and its momentum changes only at the relative rate {rate:.1e}"


def conservation_reason(found: Any) -> str:
    """Evidence of a `Conservation`."""
    reasons = ["its drive changes it"] if found.driven else []
    if found.rate > found.tolerance:
        parts = (
            (found.metric, "the inertia depends on it"),
            (found.potential, "gravity acts along it"),
            (found.form, "reactions of the wheels act along it, the two-form's leg"),
            (found.push, "other drives act along it through the wheels"),
        )
        large = [(size, text) for size, text in parts if size > found.tolerance] or [max(parts)]
        reasons += [f"{text} ({size:.1e})" for size, text in large]
    held = _held(found.rate)
    if found.rate > ROUNDING:
        held += f", within the tolerance {found.tolerance:.1g}"
    return "; ".join(reasons) or held


def momentum_equation(found: Any) -> str:
    """Momentum equation of a `Conservation`, in words and signs."""
    left = f"d/dt p[{found.joint}] ="
    if found.conserved:
        return f"{left} 0"
    terms = []
    # Four terms make the rate: one of them is as large as this.
    least = min(found.tolerance, ROUNDING) / 4
    if found.metric > least:
        terms.append(f"dT/d[{found.joint}]")
        if found.seen_from == "body":
            terms.append(f"+ ad*_v p[{found.joint}]")
    if found.potential > least:
        terms.append(f"- dV/d[{found.joint}]")
    if found.form > least:
        terms += [f"+ Xi[{found.joint}, {leg}] s[{leg}]" for leg in found.legs]
    for name in found.controls:
        own = name.split("[")[0] == found.joint
        terms.append(f"+ u[{name}]" if own else f"+ H[{name}, {found.joint}] u[{name}]")
    return f"{left} {' '.join(terms).removeprefix('+ ')}"


def conserved_names(row: Any, basis: np.ndarray, abelian: bool, length: float) -> tuple[str, ...]:
    """Names of the constant momenta of a `JointSymmetry`."""
    found = [momentum_name(twist, length) for twist in row.conserving.twists.T]
    if row.own is not None and not abelian:
        # Where motions commute, left and right translations are the same.
        found += [momentum_name(twist, length) + " of the body" for twist in row.own.twists.T]
    if row.turned is not None:
        turned = [momentum_name(twist, length) for twist in row.turned.twists.T]
        found += [f"{text} of the body, with all it carries turned back" for text in turned]
    for part in row.along:
        of_body = " of the body" if part.seen_from == "body" else ""
        names = [
            momentum_name(basis @ np.array(generator), length) for generator in part.generators
        ]
        rolling = [f"{name}{of_body}" for name in names if f"{name}{of_body}" not in found]
        found += [f"{name}, with what rolls along" for name in rolling]
    return () if row.driven else tuple(found)


def symmetry_reason(row: Any, conserved: bool, given: bool, rolls: bool) -> str:
    """Why a joint of a `JointSymmetry` keeps its momentum, or does not."""
    keep = "kinetic energy, potential and constraints" if rolls else "kinetic energy and potential"
    lost = _lost(row)
    if not row.kept.dim and not conserved:
        return lost
    if row.driven:
        verdict = "driven: its momentum changes with the torque"
    elif conserved and row.kept.dim and row.conserving.dim:
        verdict = f"conserved: it is unactuated, and {keep} keep it"
    elif row.conserved and row.along and not row.conserving.dim:
        verdict = "conserved: it is unactuated, and nothing changes its momentum on wheels"
    elif conserved and rolls:
        verdict = (
            "conserved: it is unactuated, kinetic energy and potential keep it, and rolling "
            "admits it"
        )
    elif conserved:
        verdict = f"conserved: it is unactuated, and {keep} keep it"
    elif given:
        verdict = (
            f"rolling: {keep} keep it and the wheels give its velocity, but their reactions "
            "change its momentum"
        )
    else:
        verdict = f"rolling: {keep} keep it, but the reactions of the wheels change its momentum"
    if conserved and not row.driven and not row.conserving.dim and not row.along:
        return verdict + ", moved in the axes of its body"
    return verdict + (f"; {lost}" if lost and row.kept.dim else "")


def _lost(row: Any) -> str:
    """What makes the group of a joint smaller than the joint's, in words with numbers."""
    left, whole = row.left, row.whole
    parts = []
    if left.dim < whole.dim:
        rest = f"the rest of {whole.name}" if left.dim else "it"
        parts.append(f"kinetic energy depends on {rest} (change {left.violation:.1e})")
    for group, word in (
        (row.potential, "gravity breaks {}"),
        (row.constraints, "the rolling constraints depend on {}"),
    ):
        if group.dim < left.dim:
            rest = f"the rest of {left.name}" if group.dim else "it"
            parts.append(f"{word.format(rest)} (change {group.violation:.1e})")
    if left.dim and not row.constraints.dim:
        parts[-1] = "metric only: " + parts[-1]
    if row.potential.dim and row.constraints.dim and not row.kept.dim:
        parts.append("no motion keeps both")
    return "; ".join(parts)


def momentum_name(twist: np.ndarray, length: float) -> str:
    """Name of the component of momentum that belongs to a twist."""
    shift, turn = twist[:3], twist[3:]
    if np.linalg.norm(turn) * length < DIRECTION * np.linalg.norm(shift):
        return f"linear momentum along {_axis(shift)}"
    speed = np.linalg.norm(turn)
    pitch, point = float(shift @ turn) / speed**2, np.cross(turn, shift) / speed**2
    text = f"angular momentum about {_axis(turn)}"
    if abs(pitch) > DIRECTION * length:
        text = f"screw momentum about {_axis(turn)} with pitch {pitch:.4g} m/rad"
    if np.linalg.norm(point) > DIRECTION * length:
        text += f" through {_numbers(point)}"
    return text


def gathered(components: tuple[str, ...]) -> list[str]:
    """Names of components, those along several axes of one kind as one."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for component in components:
        parts = _ALONG_AXIS.match(component)
        head, axis, tail = parts.groups() if parts else (component, "", "")
        kinds.setdefault((head, tail), []).append(axis)
    return [head + ", ".join(axes) + tail for (head, tail), axes in kinds.items()]


def _axis(direction: np.ndarray) -> str:
    unit = direction / np.linalg.norm(direction)
    for name, axis in zip("xyz", np.eye(3), strict=True):
        if np.abs(unit - axis).max() < DIRECTION:
            return name
    return _numbers(unit)


def _numbers(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{x + 0.0:.4g}" for x in values) + ")"


def constant_reason(one: Any) -> str:
    """Evidence of a `ConstantOfMotion`."""
    found = []
    if not one.conserved:
        found.append(f"changes along the motion, {{h, H}} = {one.rate:.1e}")
    if not one.generator:
        found.append("not affine in the momenta: its field is no motion of the shape")
    if not one.basic:
        found.append(f"its field changes the two-form on the level set ({one.two_form_defect:.1e})")
    if one.steepness <= ROUNDING:
        found.append("its differential vanishes somewhere")
    text = "; ".join(found) or "constant, and its field generates motions that keep Omega"
    if one.conserved and one.controls:
        text += f"; changed by the controls {', '.join(one.controls)}"
    return text


def joint_reasons(several: Any) -> tuple[str, ...]:
    """What speaks against reducing by all of `ConstantsOfMotion` at once."""
    found = [
        f"`{one.name}` {one.why}"
        for one in several.constants
        if not (one.conserved and one.generator)
    ]
    if not several.involutive:
        i, j = divmod(int(np.argmax(several.brackets)), len(several.constants))
        found.append(
            f"`{several.names[i]}` and `{several.names[j]}` are not in involution: each changes "
            f"along the field of the other ({several.brackets[i, j]:.1e})"
        )
    if several.two_form_defect > ROUNDING:
        found.append(
            f"the fields change the two-form on the level set ({several.two_form_defect:.1e})"
        )
    if several.constants and several.independence <= ROUNDING:
        found.append("their differentials are not independent everywhere")
    return tuple(found) if several.constants else ("there is no constant of motion",)
