"""A base on four mecanum wheels with an arm: numbers computed outside this package."""

from __future__ import annotations

import numpy as np
import pytest

from concur.reduction import ReducedModel, reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from tests.oracles import Constrained, Pinocchio, assert_close
from tests.reduction._reduced import Reference, torques

LX, LY, R = 0.25, 0.2, 0.076
CORNERS = {"fl": (1, 1, -45), "fr": (1, -1, 45), "rl": (-1, 1, 45), "rr": (-1, -1, -45)}
S0 = np.array([3.0, 1.0, -2.0, 0.5])


def _robot() -> Mechanism:
    wheel = Inertia(0.5, moments=(0.001, 0.0015, 0.001))
    bodies = [
        Body("base", joints.Planar(), inertia=Inertia(8.0, (0.02, 0.01, 0), (0.1, 0.1, 0.2))),
        *(
            Body(name, joints.Revolute((0, 1, 0)), "base", Pose((x * LX, y * LY, 0)), wheel)
            for name, (x, y, _) in CORNERS.items()
        ),
        Body(
            "arm",
            joints.Revolute((0, 0, 1)),
            "base",
            Pose((0.1, 0, 0)),
            Inertia(2.0, (0.3, 0, 0), (0.01, 0.02, 0.02)),
        ),
    ]
    wheels = [
        Wheel(name, R, kind="mecanum", roller_angle=np.deg2rad(angle))
        for name, (_, _, angle) in CORNERS.items()
    ]
    return Mechanism("mecanum", bodies, wheels, actuated=["fl", "fr", "rl", "arm"])


def _rows(q: np.ndarray) -> np.ndarray:
    """R psi' = vx -+ vy -+ (lx + ly) w at the four corners."""
    reach = LX + LY
    rows = np.zeros((4, 8), dtype=q.dtype)
    rows[:, :3] = [[1, -1, -reach], [1, 1, reach], [1, 1, -reach], [1, -1, reach]]
    rows[:, 3:7] = -R * np.eye(4)
    return rows


@pytest.fixture(scope="module")
def model() -> ReducedModel:
    return reduce(_robot())


@pytest.fixture(scope="module")
def q() -> np.ndarray:
    return np.array([0.4, -0.1, 1.1, 0.3, -2.0, 0.6, 0.9, 0.7])


def test_shape_is_the_driven_joints(model: ReducedModel) -> None:
    assert model.kind == "chaplygin"
    assert model.shape_names == ("fl", "fr", "rl", "arm")


def test_rows(model: ReducedModel, q: np.ndarray) -> None:
    ours, hand = model.robot.constraints(q), _rows(q)
    assert ours.shape == hand.shape
    scale = ours[:, :1]
    assert np.abs(scale).min() > 0.1
    order = [model.robot.constraint_names.index(f"{name}: rolling") for name in CORNERS]
    np.testing.assert_allclose((ours / scale)[order], hand, rtol=0, atol=1e-14)


def test_lift(model: ReducedModel, q: np.ndarray) -> None:
    connection = [
        [-0.038, -0.038, 0, 0],
        [0.038, 0, -0.038, 0],
        [0, -0.0844444444, 0.0844444444, 0],
        [-1, -1, 1, 0],
    ]
    lift, _ = model.lift(q)
    np.testing.assert_allclose(-lift[[0, 1, 2, 6]], connection, rtol=0, atol=1e-10)
    v = model.velocity(q, S0)
    expected = [0.152, -0.19, 0.2533333333, 6.0]
    np.testing.assert_allclose(v[[0, 1, 2, 6]], expected, rtol=0, atol=1e-10)


def test_reduced_quantities(model: ReducedModel, q: np.ndarray) -> None:
    upper = [0.037656, 0.0147031789, -0.0147031789, -0.0321265651, 0.0225022255]
    upper += [-0.0025434943, 0.006075926, 0.020240763, -0.0033256874, 0.2]
    mass = model.mass_matrix(q)
    np.testing.assert_allclose(mass[np.triu_indices(4)], upper, rtol=0, atol=1e-10)
    p = mass @ S0
    expected = [0.1410142543, 0.0747367139, -0.0887974008, 0.0163476055]
    np.testing.assert_allclose(p, expected, rtol=0, atol=1e-10)
    assert model.hamiltonian(q, p) == pytest.approx(0.3417740406, abs=1e-10)
    form = np.zeros((4, 4))
    form[0, 1], form[0, 2], form[1, 2] = -0.0010606802, 0.0010606802, 0.0107678704
    np.testing.assert_allclose(model.two_form(q, p), form - form.T, rtol=0, atol=1e-10)


def test_motion_is_that_of_the_multipliers(model: ReducedModel) -> None:
    full = Constrained(Pinocchio(model.robot), _rows)
    reference = Reference(full, model.shape, model.dependent)
    rng = np.random.default_rng(1)
    for _ in range(20):
        state, s = model.robot.random(rng), rng.uniform(-3, 3, 4)
        u = rng.uniform(-2, 2, 4)
        tau = torques(model, u)
        assert_close(model.acceleration(state, s, u), reference.acceleration(state, s, tau), 1e-10)
        _, pdot = model.vector_field(state, model.mass_matrix(state) @ s, u)
        assert_close(pdot, reference.momentum_rate(state, s, tau), 1e-10)


def test_margin_measures_all_columns_in_metres(model: ReducedModel, q: np.ndarray) -> None:
    # A spin's column is divided by the wheel's radius: else small wheels would look singular.
    # That of the base's turning is divided by the robot's size, from corner to corner.
    own = _rows(q)[:, [0, 1, 2, 6]]
    own[:, 2] /= 2.0 * np.hypot(LX, LY)
    own[:, 3] /= R
    values = np.linalg.svd(own, compute_uv=False)
    ratio = model.audit()["NHR3"].values["ratio"]
    assert ratio == pytest.approx(values[-1] / values[0], rel=1e-12)
