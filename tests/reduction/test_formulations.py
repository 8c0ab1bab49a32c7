"""Three ways to the same motion: multipliers, reduced accelerations, reduced momenta."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from concur.reduction import ReducedModel, reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from tests.oracles import (
    CASE_STUDY,
    Constrained,
    Pinocchio,
    assert_close,
    difference_quotient,
    random_rover,
    rover,
    rover_rows,
)
from tests.reduction._reduced import Reference, torques


def _spherical_rover() -> Mechanism:
    """Differential base, a ball joint and an offset elbow: a shape that is not abelian."""
    tensor = ((0.05, 0.004, -0.003), (0.004, 0.03, 0.002), (-0.003, 0.002, 0.04))
    platform = rover().bodies[:3]
    arm = [
        Body(
            "shoulder",
            joints.Spherical(),
            "chassis",
            Pose((0.15, -0.05, 0.2), (0.1, 0.2, -0.3, np.sqrt(0.86))),
            Inertia(2.0, (0.1, 0.05, 0.2), tensor),
        ),
        Body(
            "elbow",
            joints.Revolute((1, 2, -1)),
            "shoulder",
            Pose((0.0, 0.1, 0.4)),
            Inertia(1.0, (0.05, -0.1, 0.2), tensor),
        ),
    ]
    wheels = [Wheel("left", 0.1), Wheel("right", 0.1)]
    return Mechanism("ball", [*platform, *arm], wheels, gravity=(0, 0, -9.81))


def _caster_rover(actuated: tuple[str, ...] | None = None) -> Mechanism:
    """Differential base with a caster: its rows depend on an angle that the base drags along."""
    platform = rover().bodies[:3]
    caster = [
        Body(
            "fork",
            joints.Revolute((0, 0, 1)),
            "chassis",
            Pose((0.3, 0, 0)),
            Inertia(0.8, (-0.03, 0, 0), (0.01, 0.008, 0.006)),
        ),
        Body(
            "caster",
            joints.Revolute((0, 1, 0)),
            "fork",
            Pose((-0.05, 0, -0.04)),
            Inertia(0.6, moments=(0.001, 0.0018, 0.001)),
        ),
    ]
    wheels = [Wheel("left", 0.1), Wheel("right", 0.1), Wheel("caster", 0.06)]
    return Mechanism("caster", [*platform, *caster], wheels, (0, 0, -9.81), actuated)


def _caster_rows(q: np.ndarray) -> np.ndarray:
    cos, sin = np.cos(q[5]), np.sin(q[5])
    xc, d, b = 0.3, 0.05, 0.06
    rows = np.zeros((5, 7), dtype=q.dtype)
    rows[:3] = [[0, 1, 0, 0, 0, 0, 0], [1, 0, -0.25, -0.1, 0, 0, 0], [1, 0, 0.25, 0, -0.1, 0, 0]]
    rows[3, [0, 1, 2, 6]] = cos, sin, xc * sin, -b
    rows[4, [0, 1, 2, 5]] = -sin, cos, xc * cos - d, -d
    return rows


@dataclass(frozen=True)
class Case:
    robot: Mechanism
    rows: Callable[[np.ndarray], np.ndarray]


def _case(name: str) -> Case:
    if name == "rover of 4.6.1":
        return Case(rover(), rover_rows(0.10, 0.25))
    if name == "rover of 5.5":
        return Case(rover(CASE_STUDY), rover_rows(0.10, 0.25))
    if name == "ball joint":
        return Case(_spherical_rover(), rover_rows_on_velocity(9))
    if name == "caster":
        return Case(_caster_rover(), _caster_rows)
    if name == "caster dragged":
        return Case(_caster_rover(actuated=("left", "right")), _caster_rows)
    sample = random_rover(int(name.split()[-1]))
    return Case(sample.robot, sample.rows)


def rover_rows_on_velocity(nv: int) -> Callable[[np.ndarray], np.ndarray]:
    """Rows of the differential base on v; for robots whose v is shorter than q."""

    def rows(q: np.ndarray) -> np.ndarray:
        constant = np.zeros((3, nv), dtype=q.dtype)
        constant[:, :5] = [[0, 1, 0, 0, 0], [1, 0, -0.25, -0.1, 0], [1, 0, 0.25, 0, -0.1]]
        return constant

    return rows


CASES = {
    "rover of 4.6.1": 10,
    "rover of 5.5": 10,
    "ball joint": 10,
    "caster": 10,
    "caster dragged": 10,
    **{f"random rover {seed}": 4 for seed in range(4)},
}
"""Number of random states for each robot."""


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, ReducedModel, Reference]:
    described = _case(request.param)
    model = reduce(described.robot)
    # An undriven fork follows the base: the rows depend on it, there is no symmetry group.
    assert (model.kind == "constrained") == (request.param == "caster dragged")
    full = Constrained(Pinocchio(described.robot), described.rows)
    return request.param, model, Reference(full, model.shape, model.dependent)


def _states(name: str, model: ReducedModel, reference: Reference):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(CASES[name])
    found = 0
    while found < CASES[name]:
        q, s = model.robot.random(rng), rng.uniform(-2.0, 2.0, model.ns)
        lift = reference.lift(q)
        if np.abs(lift).max() > 30.0:  # a caster across the axle: the chosen shape degenerates
            continue
        found += 1
        yield q, s, rng.uniform(-3.0, 3.0, model.nu)


Sampled = tuple[str, ReducedModel, Reference]


@pytest.mark.by_default(3)
def test_motion_is_that_of_the_multipliers(case: Sampled) -> None:
    """Thesis: (4.1.1), (4.1.3), (4.1.4), (4.1.7), (4.2.9), (4.2.13), (5.1.4), (5.1.6)."""
    name, model, reference = case
    wrong = 0.0
    for q, s, u in _states(name, model, reference):
        tau = torques(model, u)
        sdot = model.acceleration(q, s, u)
        assert_close(sdot, reference.acceleration(q, s, tau), 1e-9)
        p = model.mass_matrix(q) @ s
        v, pdot = model.vector_field(q, p, u)
        expected = reference.momentum_rate(q, s, tau)
        assert_close(v, reference.lift(q) @ s, 1e-10)
        assert_close(pdot, expected, 1e-9)
        # With the other sign of the two-form the momenta would change otherwise.
        flipped = pdot + 2 * s @ model.two_form(q, p)
        wrong = max(wrong, np.abs(flipped - expected).max())
        qdot = reference.full.oracle.rate(q, v)
        power = difference_quotient(
            lambda h, q=q, s=s, qdot=qdot, sdot=sdot: reference.energy(q + h * qdot, s + h * sdot)
        )
        forces = v[list(model.robot.actuated_freedoms)] * u
        assert float(power) == pytest.approx(forces.sum(), abs=1e-6 * (1 + np.abs(forces).max()))
    assert wrong > 1e-3
