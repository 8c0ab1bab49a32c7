"""Quantities of a statement: what proofs bound, samples record and files claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from concur.control import Servo
from concur.errors import OutputError


def require_known(given: Iterable[str], names: Sequence[str], where: str) -> None:
    """Reject other names than known ones."""
    for name in given:
        if name not in names:
            raise OutputError(
                where,
                expected=f"names out of {', '.join(names)}",
                came=name,
                cure="Check the spelling.",
            )


@dataclass(frozen=True)
class Quantity:
    """A number over time that a statement may limit.

    Parameters
    ----------
    kind, name, unit : str
        What it is, of what, and its unit.
    sign : float
        1 if its largest value counts, -1 for its least one.
    """

    kind: str
    name: str
    unit: str
    sign: float = 1.0

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name, which identify it."""
        return self.kind, self.name


def quantities_of(servo: Servo, joints: list[str]) -> list[Quantity]:
    """Quantities of each robot: of controls, shape velocities, joints, law and outputs.

    `joints` are the joints whose angles a proof bounds.
    """
    model = servo.model
    found = [Quantity("torque", name, "N m") for name in model.control_names]
    found += [Quantity("speed", name, "rad/s") for name in model.shape_names]
    found += [Quantity("angle above", name, "rad", -1.0) for name in joints]
    found += [Quantity("angle below", name, "rad") for name in joints]
    found += [Quantity("margin", "decoupling", "", -1.0), Quantity("pivot", "of the law", "", -1.0)]
    return found + [Quantity("corridor", output.name, "m") for output in servo.outputs]
