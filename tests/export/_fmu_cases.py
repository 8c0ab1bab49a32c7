"""Robots that are exported as units for co-simulation, and states to try them with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

from concur.control import Servo
from concur.outputs import ReferenceSample
from concur.simulation import Plant
from tests.control._cases import Q0, S0, case_study, case_study_reference
from tests.control._floating_cases import (
    CHECK_A_Q0,
    CHECK_A_S0,
    check_a_demand,
    flyer,
)
from tests.export._units import Unit, with_compiler

HOLD = 1e-3
INPUTS = ("q", "s", "pose", "twist", "acceleration")


CASES = {
    "rover": (case_study, Q0, S0, case_study_reference),
    "flyer": (flyer, CHECK_A_Q0, CHECK_A_S0, check_a_demand),
}

EACH = [
    pytest.param("rover", "3.0", marks=pytest.mark.extended),
    ("rover", "2.0"),
    ("flyer", "3.0"),
    pytest.param("flyer", "2.0", marks=pytest.mark.slow),
]
"""Cases and versions of FMI."""


FLYER = ["3.0", pytest.param("2.0", marks=pytest.mark.slow)]
"""Versions of FMI for tests of the free-flyer, whose C takes long to compile."""


class Workshop:
    """Writes units when they are asked for, each once.

    Parameters
    ----------
    folder : pathlib.Path
        Where to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[tuple[str, str, str], Path] = {}

    def path(self, kind: str, case: str, version: str) -> Path:
        """The archive of a "servo" or a "plant"."""
        key = kind, case, version
        if key not in self._paths:
            servo, folder = CASES[case][0](), self._folder.joinpath(*key)
            with with_compiler():
                if kind == "servo":
                    written = servo.export(folder, "fmu", fmi=version)
                else:
                    plant = Plant(servo.model.robot)
                    written = plant.export(folder, servo.model, fmi=version)
            assert isinstance(written, Path)
            self._paths[key] = written
        return self._paths[key]


def drawn(
    servo: Servo, q0: np.ndarray, count: int
) -> Iterator[tuple[np.ndarray, np.ndarray, ReferenceSample]]:
    rng = np.random.default_rng(5)
    for _ in range(count):
        q = servo.model.robot.integrate(q0, 0.2 * rng.normal(size=servo.nv))
        pose = servo.output(servo.model.robot.integrate(q, 0.1 * rng.normal(size=servo.nv)))
        twist, acceleration = rng.normal(size=(2, servo.size))
        yield q, rng.normal(size=servo.nw), ReferenceSample(pose, twist, acceleration)


def parts(q: np.ndarray, s: np.ndarray, sample: ReferenceSample) -> dict[str, np.ndarray]:
    """Inputs of a servo by name."""
    flat = sample.flat_pose, sample.twist, sample.acceleration
    return dict(zip(INPUTS, (q, s, *flat), strict=True))


def fill(
    unit: Unit, q: np.ndarray, s: np.ndarray, sample: ReferenceSample, **more: ArrayLike
) -> None:
    unit.set(**parts(q, s, sample), **more)
