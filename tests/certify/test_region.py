"""Region that V_L keeps: Schur complements against constrained minima, and the printed region."""

from fractions import Fraction
from math import inf, pi

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import minimize

from concur.certify._channels import split
from concur.certify._region import region_level, region_radius
from concur.control import ErrorDynamics
from concur.errors import OutputError
from concur.outputs.groups import Angle, PlanarPose, Pose, Product, Rotation, Vector
from tests.certify._thesis_cases import channel, pose, positive, rotation

COUPLED = {
    "SE2": (PlanarPose(), [[2]], [[0, 1]]),
    "SE3": (Pose(), [[3, 4, 5]], [[0, 1, 2]]),
    "R2 with SO2": (Product([Vector("xy"), Angle()]), [[2]], [[0, 1]]),
    "SO3 with SE2": (Product([Rotation(), PlanarPose()]), [[0, 1, 2], [5]], [[3, 4]]),
    "two SO3": (Product([Rotation(), Rotation()]), [[0, 1, 2], [3, 4, 5]], []),
}


def smallest_norm(stiffness, part, length):
    """Least |x|_KP of the x whose part has a length, by constrained optimisation."""
    found = []
    for start in np.vstack([np.eye(len(part)), -np.eye(len(part)), np.ones(len(part))]):
        x = np.zeros(len(stiffness))
        x[part] = length * start / np.linalg.norm(start)
        answer = minimize(
            lambda x: x @ stiffness @ x,
            x,
            jac=lambda x: 2 * stiffness @ x,
            constraints={"type": "eq", "fun": lambda x: x[part] @ x[part] - length**2},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert abs(answer.x[part] @ answer.x[part] - length**2) < 1e-8
        found.append(np.sqrt(answer.fun))
    return min(found)


@pytest.mark.parametrize("name", COUPLED)
@pytest.mark.parametrize("angle", [0.7, pi])
def test_radius_is_the_least_norm_of_an_error_at_the_angle(name, angle):
    group, rotations, _ = COUPLED[name]
    rng = np.random.default_rng(len(name))
    stiffness = positive(rng, group.dim)
    outputs = channel(group, stiffness, np.eye(group.dim))
    wanted = min(smallest_norm(stiffness, part, angle) for part in rotations)
    assert region_radius(outputs, angle) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("name", [name for name in COUPLED if COUPLED[name][2]])
def test_a_distance_limits_the_region_too(name):
    group, rotations, positions = COUPLED[name]
    rng = np.random.default_rng(len(name))
    stiffness = positive(rng, group.dim)
    outputs = channel(group, stiffness, np.eye(group.dim))
    wanted = min(
        [smallest_norm(stiffness, part, 1.2) for part in rotations]
        + [smallest_norm(stiffness, part, 0.1) for part in positions]
    )
    assert wanted < region_radius(outputs, 1.2)
    assert region_radius(outputs, 1.2, 0.1) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("name", ["A", "B", "C"])
@pytest.mark.parametrize("make", [rotation, pose])
def test_isotropic_region_is_that_of_the_rotation(name, make):
    outputs = make(name)
    kpw = outputs.stiffness[-1, -1]
    for angle in (0.5, 2.0, pi):
        level = region_level(outputs, angle)
        assert level == pytest.approx(kpw * angle**2 / 2, rel=1e-12)
        # On the safe side: whatever V_L allows is inside the angle, exactly.
        assert 2 * Fraction(level) <= Fraction(kpw) * Fraction(angle) ** 2
        assert Fraction(region_radius(outputs, angle)) ** 2 <= 2 * Fraction(level)


def test_default_distance_of_isotropic_gains_costs_nothing():
    outputs = pose("C")
    angle = 1.0
    distance = angle * np.sqrt(9.0 / 1.0)
    assert region_level(outputs, angle, distance) == pytest.approx(region_level(outputs, angle))
    assert region_level(outputs, angle, distance / 2) == pytest.approx(
        region_level(outputs, angle) / 4
    )


def test_positions_alone_are_limited_by_a_distance_only():
    outputs = channel(Vector("xyz"), np.diag([1.0, 4.0, 9.0]), np.eye(3))
    assert region_level(outputs, 1.0) == region_radius(outputs, 1.0) == inf
    assert region_level(outputs, 1.0, 0.5) == pytest.approx(0.5**2 / 2)


def test_a_heading_on_a_circle_is_limited():
    outputs = channel(Angle(), 4.0 * np.eye(1), np.eye(1))
    assert region_level(outputs, pi) == pytest.approx(2 * pi**2)


def test_region_of_a_product_is_the_smallest_of_its_channels():
    dynamics = ErrorDynamics(
        Product([Vector("xyz"), Rotation(), Rotation()]),
        np.diag([1.0] * 3 + [9.0] * 3 + [4.0] * 3),
        np.eye(9),
        np.eye(9),
    )
    levels = [region_level(part, 1.0) for part in split(dynamics)]
    assert levels == [inf, pytest.approx(4.5), pytest.approx(2.0)]


@pytest.mark.parametrize(
    ("angle", "distance", "word"),
    [
        (0.0, None, "angle"),
        (3.2, None, "angle"),
        (float("nan"), None, "angle"),
        (1.0, 0.0, "distance"),
        (1.0, inf, "distance"),
        (1.0, -2.0, "distance"),
    ],
)
def test_limits_out_of_range_are_refused(angle, distance, word):
    with pytest.raises(OutputError, match=word):
        region_level(pose("A"), angle, distance)


def test_the_printed_region_is_too_large():
    """V_L(0) < W_R^2 with W_R = pi, as printed, does not keep the angle below pi.

    Misprint 001-53.
    """
    stiffness, damping = 1.0, 0.1
    outputs = channel(Rotation(), stiffness * np.eye(3), damping * np.eye(3))
    x = np.array([0.9 * pi, 0.0, 0.0])
    ve = np.array([-np.sqrt(1.8 - 0.81) * pi, 0.0, 0.0])
    energy = outputs.dynamics.lyapunov(x, ve)
    assert energy == pytest.approx(0.9 * pi**2)
    assert energy < pi**2  # the printed condition holds
    assert energy > region_level(outputs, pi)  # the right one does not

    times = np.linspace(0.0, 0.3, 3001)
    angles = np.linalg.norm(outputs.dynamics.solve(x, ve, times), axis=1)
    passed = times[np.argmax(angles > pi)]
    assert passed == pytest.approx(0.106, abs=0.001)
    # About one axis the loop is linear: the same by a matrix exponential.
    linear = np.array([[0.0, -1.0], [stiffness, -damping]])
    flow = np.array([(expm(linear * t) @ [x[0], ve[0]])[0] for t in times])
    np.testing.assert_allclose(angles, flow, rtol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_errors_from_the_edge_of_the_region_stay_below_the_angle(seed):
    rng = np.random.default_rng(seed)
    group = [Rotation(), PlanarPose(), Pose(), Product([Vector("x"), Rotation()])][seed]
    stiffness, damping = positive(rng, group.dim), positive(rng, group.dim, 0.05, 0.2)
    outputs = channel(group, stiffness, damping)
    rotations = [i for i, unit in enumerate(outputs.units) if unit == "rad"]
    angle = 2.5
    radius = region_radius(outputs, angle)
    largest = 0.0
    for _ in range(5):
        y = rng.normal(size=2 * group.dim)
        y *= radius * (1 - 1e-9) / np.linalg.norm(y)
        x = np.linalg.inv(np.linalg.cholesky(stiffness)).T @ y[: group.dim]
        path = outputs.dynamics.solve(x, y[group.dim :], np.linspace(0.0, 6.0, 200))
        largest = max(largest, np.linalg.norm(path[:, rotations], axis=1).max())
    assert 0.3 * angle < largest < angle
