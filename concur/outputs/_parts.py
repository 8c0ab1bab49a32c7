"""Groups of the parts of a reference, and whether they are those of a list of outputs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from concur.errors import OutputError, ShapeError
from concur.outputs._output import Output
from concur.outputs._sample import Part

_LINE: Part = (1, 1, "R")
_SIZES: tuple[int, Part] = (-1, _LINE)
_FACTORS: dict[str, list[Part]] = {
    "R": [_LINE],
    "R3xSO3": [*[_LINE] * 3, (4, 3, "SO3")],
}


def check_parts(parts: tuple[Part, ...], outputs: Sequence[Output], where: str) -> None:
    """Refuse parts that do not fit a list of outputs.

    Sizes must agree, and where a part is made for a certain group, this must be the output's.
    Products count by their factors: a place in R^3 and a quaternion, stacked, fit an output in
    "R3xSO3". A part for any group fits one or several whole outputs.
    """
    needed = tuple((o.pose_size, o.dim, o.group) for o in outputs)
    misfit = _misfit(parts, needed)
    if misfit is None:
        return
    listed = ", ".join(f"`{o.name}` {_shown(w)}" for o, w in zip(outputs, needed, strict=True))
    came = ", ".join(_shown(part) for part in parts)
    if misfit == _SIZES:
        pose_size, size = _total(needed)
        raise ShapeError(
            f"{where}, reference",
            expected=f"{pose_size} pose and {size} twist coordinates, in output order: {listed}",
            came="{} and {}: {}".format(*_total(parts), came),
            cure=_resized(parts, outputs, pose_size),
        )
    first, part = misfit
    raise OutputError(
        f"{where}, reference of output `{outputs[first].name}`",
        expected=f"a part in {_shown(needed[first])}",
        came=f"one in {_shown(part)}; the outputs are {listed}, the parts {came}",
        cure="Make the reference of each output for its group (`group=...`; `planar` for "
        "SE2) and stack them in output order.",
        output=outputs[first].name,
    )


@lru_cache(maxsize=256)
def _misfit(parts: tuple[Part, ...], needed: tuple[Part, ...]) -> tuple[int, Part] | None:
    """Output and part that do not fit, `_SIZES` if the sizes differ, None if all fit."""
    if _total(parts) != _total(needed):
        return _SIZES
    atoms = [(i, atom) for i, part in enumerate(needed) for atom in factors(part)]
    start = 0
    for part in parts:
        stop, fits = _covered(part, [atom for _, atom in atoms[start:]])
        if not fits:
            return atoms[start + stop][0], part
        start += stop
    return None


def _total(parts: Sequence[Part]) -> tuple[int, int]:
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


def _resized(parts: Sequence[Part], outputs: Sequence[Output], pose_size: int) -> str:
    """Remedy for a wrong number of coordinates: a flat pose is not a point of R^7."""
    grouped = [o.group for o in outputs if o.pose_size != o.dim]
    if _total(parts)[0] == pose_size and grouped:
        return (
            f'Name the group of a flat pose, as in `hold(pose, "{grouped[0]}")`, and stack one '
            "reference for each output, in output order."
        )
    return "Stack one reference for each output, in output order."


def _covered(part: Part, atoms: list[Part]) -> tuple[int, bool]:
    """Number of atoms that a part takes up and True, or place of the first misfit and False."""
    if part[2] is None:
        pose_size = size = count = 0
        while pose_size < part[0] or size < part[1]:
            pose_size, size = pose_size + atoms[count][0], size + atoms[count][1]
            count += 1
        fits = (pose_size, size) == part[:2]
        return (count, True) if fits else (0, False)
    own, plain = factors(part), part[2] != "R"
    for i, atom in enumerate(own):
        angle = plain and i < len(atoms) and atom == _LINE and atoms[i][2] == "SO2"
        if not angle and (i >= len(atoms) or atom != atoms[i]):
            return min(i, len(atoms) - 1), False
    return len(own), True


def factors(part: Part) -> list[Part]:
    """Factors of a part: lines for R^n, lines and "SO3" for "R3xSO3", else the part itself."""
    name = part[2] or ""
    if name.startswith("R") and name[1:].isdigit():
        return [_LINE] * int(name[1:])
    return _FACTORS.get(name, [part])


def _shown(part: Part) -> str:
    return f"{part[2] or 'any group'} ({part[0]} pose, {part[1]} twist coordinates)"
