"""Docstring sections generated from a signature: common arguments, and the result."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence

ARGUMENTS = {
    "q": "Configuration",
    "q0": "Start configuration",
    "q1": "Target configuration",
    "v": "Velocity: body-twist coordinates of all joints",
    "vdot": "Derivative of the velocity",
    "dv": "Displacement in the bases of the joints, m and rad",
    "s": "Shape velocities",
    "sdot": "Rates of the shape velocities",
    "p": "Reduced momentum Mhat s",
    "u": "Control forces and torques, N and N m",
    "momentum": "Spatial momentum about the inertial origin, kg m/s and kg m^2/s",
    "body_momentum": "Momentum Pi in the frame of the base",
    "x": "Remaining coordinates",
    "zeta": "Coordinates of the slice",
    "joints": "Coordinates of the joints after the base",
    "pose": "Reference pose, flat",
    "twist": "Reference velocity",
    "acceleration": "Rate of the reference velocity",
    "body": "Name of the body.",
}
"""Descriptions of common arguments; those of arguments that are not arrays end with a stop."""

_SECTION = r"\n\n(?=(?:Parameters|Returns|Raises|Warns|See Also|Notes|References|Examples)\n---)"


def completed(
    doc: str | None,
    names: Sequence[str],
    shapes_in: Sequence[tuple[str | int, ...]],
    shapes_out: Sequence[tuple[str | int, ...]],
) -> str | None:
    """A docstring with sections on arguments and result, unless it already has them."""
    if doc is None:
        return None
    head, *sections = re.split(_SECTION, inspect.cleandoc(doc))
    titles = [section.partition("\n")[0] for section in sections]
    at = int("Parameters" in titles)
    if len(shapes_out) == 1 and "Returns" not in titles:
        kind = "numpy.ndarray" if shapes_out[0] else "float"
        text = f"The value{_shape(shapes_out[0])}."
        sections.insert(at, f"Returns\n-------\n{kind} or casadi.SX\n    {text}")
    if names and not at and ARGUMENTS.keys() >= set(names):
        entries = [
            f"{name} : array_like\n    {ARGUMENTS[name]}{_shape(shape)}."
            for name, shape in zip(names, shapes_in, strict=False)
        ]
        entries += [f"{name} : str\n    {ARGUMENTS[name]}" for name in names[len(shapes_in) :]]
        sections.insert(0, "\n".join(["Parameters", "----------", *entries]))
    return "\n\n".join([head, *sections])


def _shape(shape: tuple[str | int, ...]) -> str:
    inside = ", ".join(map(str, shape))
    return f", shape ({inside}{',' * (len(shape) == 1)})" if shape else ""
