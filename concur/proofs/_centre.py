"""The closed-loop motion from the declared start: centre of all tubes.

**What holds.** The models contain the vectors of the declared motion without disturbance, turned
into the axes of a base with any heading within the wall, at every time of a segment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from concur._polynomials import Floats, Model, Space
from concur.proofs._errors import Channel
from concur.proofs._heading import Heading, candidate
from concur.proofs._motion import Motion
from concur.proofs._quantities import CLOCK, DELTA, SPACE, Nominal, turned_back

NOWHERE: Floats = np.zeros((0, 3))
"""No points in the world."""


@dataclass(frozen=True, eq=False)
class Centre:
    """Declared motion on a uniform grid.

    Parameters
    ----------
    motion : Motion
        The reference.
    channels : list of Channel
        Error dynamics of base and hand.
    start : numpy.ndarray
        x and ve at time 0, shape (2, 5).
    step : float
        Length of a step (s).
    count : int
        Number of steps.
    """

    motion: Motion
    channels: list[Channel]
    start: Floats
    step: float
    count: int

    def _errors(
        self, space: Space, clock: int, middle: Floats, half: Floats
    ) -> tuple[list[Model], list[Model]]:
        x, ve = list[Model](), list[Model]()
        for channel in self.channels:
            own = channel.centre(space, clock, self.start[:, channel.rows], middle, half)
            x += own[0]
            ve += own[1]
        return x, ve

    def heading(self, start: float, arm: float) -> Heading:
        """Candidate of the heading, from its value at the start (rad)."""
        space, half = Space((1,)), np.full(self.count, self.step / 2)
        middle = np.asarray((np.arange(self.count) + 0.5) * self.step, dtype=np.float64)
        pose = self.motion.models(space, 0, middle, half)
        ve = self._errors(space, 0, middle, half)[1]
        velocity = [a + b for a, b in zip(pose[1][:2], ve[:2], strict=True)]
        speeds = np.empty((2, 2 * self.count + 1))
        for k, model in enumerate(velocity):
            speeds[k, 1::2] = model.c
            speeds[k, :-1:2] = model.at(np.array([[-1.0]]))
            speeds[k, -1] = model.at(np.array([[1.0]]))[-1]
        return candidate(start, arm, self.step, speeds, velocity)

    def nominal(
        self,
        heading: Heading,
        first: np.ndarray,
        last: np.ndarray,
        wall: Floats,
        points: Floats = NOWHERE,
    ) -> Nominal:
        """Vectors over segments of steps first <= k < last, with headings within the wall (b,).

        `points` (k, 3) are in the world.
        """
        middle, half = (first + last) / 2 * self.step, (last - first) / 2 * self.step
        pose, rate, acceleration, jerk = self.motion.models(SPACE, CLOCK, middle, half)
        x, ve = self._errors(SPACE, CLOCK, middle, half)
        theta = heading.model(SPACE, CLOCK, first, last) + SPACE.symbol(DELTA, wall)
        cosine, sine = theta.cos(), theta.sin()
        place = [a - b for a, b in zip(pose, x, strict=True)]
        apart = [place[2] - place[0], place[3] - place[1]]
        relative = turned_back([*apart, *apart, place[4]], cosine, sine)[2:]

        def turned(vector: list[Model]) -> list[Model]:
            return turned_back(vector, cosine, sine)

        moved = [a + b for a, b in zip(rate, ve, strict=True)]
        places = []
        for point in points:
            way = [-m + float(at) for m, at in zip(place[:2], point[:2], strict=True)]
            height = SPACE.constant(np.full(len(middle), point[2]))
            places.append([*turned([*way, *way, height])[:2], height])
        return Nominal(
            turned(x),
            turned(ve),
            turned(moved),
            turned(acceleration),
            turned(jerk),
            relative,
            places,
        )
