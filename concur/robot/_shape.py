"""Shape of a body, for drawings: it has no part in the dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from concur.errors import DescriptionError, ShapeError, shown
from concur.robot._pose import Pose, vector

KINDS = {
    "box": ("lengths along x, y and z", 3),
    "cylinder": ("radius, and length along z", 2),
    "sphere": ("radius", 1),
    "capsule": ("radius, and length of the cylinder along z without the caps", 2),
}
"""Meaning and number of the sizes of each kind of shape."""


@dataclass(frozen=True)
class Shape:
    """A box, cylinder, sphere or capsule that a body looks like; drawings use it, dynamics do not.

    Parameters
    ----------
    kind : str
        "box", "cylinder", "sphere" or "capsule".
    size : sequence of float
        Lengths of a box along x, y and z; radius and length along z of a cylinder, and of a capsule
        without its caps; radius of a sphere; m.
    placement : Pose
        Pose of the shape's centre and axes in the body frame.

    Raises
    ------
    DescriptionError
        If the kind is unknown or a size is not above zero.
    ShapeError
        If the number of sizes does not fit the kind.
    """

    kind: str
    size: Sequence[float]
    placement: Pose = field(default_factory=Pose)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DescriptionError(
                "Shape, `kind`",
                expected=f"one of {', '.join(KINDS)}",
                came=shown(self.kind),
                cure="Name one of them; meshes are not read.",
            )
        words, count = KINDS[self.kind]
        try:
            size = vector(self.size, count, "Shape, `size`")
        except ShapeError as error:
            cure = f"Give {words}, m."
            expected, came = error.expected, error.came
            raise ShapeError("Shape, `size`", expected=expected, came=came, cure=cure) from None
        if not min(size) > 0.0:
            raise DescriptionError(
                "Shape, `size`",
                expected=f"{words}, above zero",
                came=shown(size),
                cure="Correct the size.",
            )
        object.__setattr__(self, "size", size)
