"""One world: the deviations of its quantities, and the key of its random numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class World:
    """One world, as the table `[world]` of a task file has it.

    Parameters
    ----------
    deviations : mapping
        Deviations from the nominal values by kind and name, as of `Uncertainty.world`.
    number, seed : int
        Number of the world and seed of its campaign: the key of jitter and noise.

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_campaign.toml")
    >>> worlds = task.uncertainty.draw(range(3), seed=0)
    >>> worlds.shape[0]
    3
    """

    deviations: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    seed: int = 0

    @property
    def values(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """Deviations by kind and name with a leading axis of one world."""
        return {key: np.array([value], float) for key, value in flat(self.deviations).items()}


def flat(deviations: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Values of nested tables by kind and name."""
    found: dict[tuple[str, str], Any] = {}
    for kind, table in deviations.items():
        for name, value in table.items():
            if isinstance(value, Mapping):
                found |= {(f"{kind}.{name}", field): entry for field, entry in value.items()}
            else:
                found[kind, name] = value
    return found
