"""Systems without bodies as pictures see them: their declared frames in place of bodies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from concur.errors import ConcurError
from concur.robot import Body, Mechanism
from concur.robot.joints import Free
from concur.system import System


@dataclass(frozen=True, eq=False)
class Scenery:
    """The frames of a system as bodies without mass, which move freely.

    Parameters
    ----------
    system : System
        A system with `drawn` frames and `pose`.
    """

    system: Any
    wheels: tuple[Any, ...] = ()
    ground_height: float | None = None

    @property
    def name(self) -> str:
        """Name of the system."""
        return str(self.system.name)

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        """A body for each frame, on the one from which its bar comes."""
        return tuple(Body(name, Free(), parent) for name, parent in self.system.drawn)

    @property
    def base(self) -> Body:
        """The first frame."""
        return self.bodies[0]

    def pose(self, q: Any, body: str) -> Any:
        """Pose (4, 4) of a frame."""
        return self.system.pose(q, body)


def scenery(system: System) -> Any:
    """The system itself if it has bodies, else its declared frames.

    Parameters
    ----------
    system : System
        A robot, or another system.

    Returns
    -------
    Mechanism or Scenery
        What pictures draw.

    Raises
    ------
    ConcurError
        If it has neither.
    """
    if isinstance(system, Mechanism | Scenery):
        return system
    if getattr(system, "drawn", ()):
        return Scenery(system)
    raise ConcurError(
        f"figure of `{system.name}`",
        expected="a robot with bodies, or a system with declared frames",
        came="a system without bodies",
        cure="Declare frames as `drawn` of the LagrangianSystem, or plot its configuration.",
    )
