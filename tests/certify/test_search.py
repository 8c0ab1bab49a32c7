"""Search: the limits of the reference table, and Lyapunov functions that decay as claimed."""

import numpy as np
import pytest

from concur.certify import _problem
from concur.certify._search import search
from concur.errors import ConcurError, OutputError
from concur.outputs.groups import Angle, PlanarPose, Pose, Product, Rotation, Vector
from tests.certify._channel import channel, random_error, slack

A = {"stiffness": 4.0, "damping": 5.0}
B = {"stiffness": 4.0, "damping": 2.8}
C = {"stiffness": [1.0] * 3 + [9.0] * 3, "damping": [2.5] * 3 + [7.5] * 3}

# Angle in degrees, distance over angle, rate proved over true rate with a back-off of 1.5 %:
# values computed independently of this package.
TABLE = [
    (A, 30, 1, 0.981),
    (A, 90, 1, 0.958),
    (A, 170, 1, 0.920),
    (B, 30, 1, 0.877),
    (B, 90, 1, 0.743),
    (B, 170, 1, 0.635),
    (C, 30, 3, 0.981),
    (C, 90, 3, 0.981),
    (C, 170, 3, 0.962),
]


@pytest.mark.extended
@pytest.mark.parametrize(("gains", "degrees", "ratio", "expected"), TABLE)
def test_rates_of_poses_are_those_of_the_reference(gains, degrees, ratio, expected):
    owner, angle = channel(Pose(), **gains), np.radians(degrees)
    found = search(owner, angle, ratio * angle)
    assert found.alpha / owner.true_rate == pytest.approx(expected, rel=0.01)
    assert found.alpha == pytest.approx(0.985 * found.limit)


CHANNELS = {
    "R3": channel(Vector("xyz"), 4.0, 5.0),
    "R3, full": channel(
        Vector("xyz"),
        [[4.0, 1.0, 0.0], [1.0, 5.0, 0.5], [0.0, 0.5, 6.0]],
        [[4.0, 0.1, 0.0], [0.1, 3.0, 0.0], [0.0, 0.0, 2.0]],
        [1.0, 2.0, 0.5],
    ),
    "R2, critical": channel(Vector("xy"), 4.0, 4.0),
    "SO2": channel(Angle(), 2.0, 1.0, 0.3),
    "SO3": channel(Rotation(), 4.0, 2.8),
    "SO3, overdamped": channel(Rotation(), 0.4, 1.1, 0.037),
    "SO3, critical": channel(Rotation(), 4.0, 4.0),
    "SE3": channel(Pose(), 4.0, 2.8),
    "SE2": channel(PlanarPose(), [4.0, 5.0, 6.0], 3.0),
}
EASY = [name for name in CHANNELS if not name.startswith("SE")]


@pytest.mark.extended
@pytest.mark.parametrize("name", CHANNELS)
def test_the_form_falls_at_the_rate_in_the_whole_domain(name):
    owner, rng = CHANNELS[name], np.random.default_rng(1)
    angle, distance = 2.0, 1.3
    found = search(owner, angle, distance)
    np.testing.assert_array_equal(found.P, found.P.T)
    assert np.linalg.eigvalsh(found.P)[0] > 0.0
    for _ in range(300):
        x = random_error(owner, rng, angle, distance)
        ve = rng.normal(size=owner.size) * rng.choice([0.1, 1.0, 10.0])
        size = np.concatenate([x, ve]) @ found.P @ np.concatenate([x, ve])
        assert slack(owner, found.P, found.alpha, x, ve) > -1e-9 * size


@pytest.mark.parametrize("name", EASY)
def test_linear_and_isotropic_rotational_channels_get_nearly_their_true_rate(name):
    found = search(CHANNELS[name], 3.1)
    assert found.alpha == pytest.approx(0.995 * CHANNELS[name].true_rate)


@pytest.mark.extended
def test_the_form_is_well_conditioned_where_the_reference_is():
    angle = np.pi / 2
    found = search(channel(Pose(), **B), angle, angle)
    assert np.sqrt(np.linalg.cond(found.P)) < 3.0
    assert np.sqrt(np.linalg.cond(search(CHANNELS["R3"], 1.0).P)) < 4.0


@pytest.mark.slow
def test_farther_and_wider_domains_have_slower_rates():
    owner = channel(Pose(), **B)
    by_distance = [search(owner, 1.0, d).limit for d in (0.1, 0.5, 1.0, 2.0)]
    by_angle = [search(owner, a, a).limit for a in (0.5, 1.0, 2.0, 3.0)]
    assert by_distance == sorted(by_distance, reverse=True)
    assert by_angle == sorted(by_angle, reverse=True)
    assert by_distance[0] > 1.2 * by_distance[-1]


def test_the_unit_of_length_does_not_matter():
    centimetres = np.repeat([1.0, 100.0**2], 3)
    angle = 1.2
    metres = search(channel(Pose(), **B), angle, 0.7)
    scaled = channel(Pose(), 4.0 * centimetres, 2.8 * centimetres, centimetres)
    other = search(scaled, angle, 70.0)
    assert other.limit == pytest.approx(metres.limit, rel=5e-3)


@pytest.mark.slow
def test_multipliers_that_vanish_on_the_motion_raise_the_rate_of_anisotropic_rotations():
    owner = channel(Rotation(), [4.0, 6.0, 9.0], [4.0, 5.0, 6.6])
    assert owner.true_rate == pytest.approx(1.925, abs=5e-4)
    found = search(owner, np.radians(30.0))
    # Without them a constant form gets 0.69 of the true rate here.
    assert found.limit > 0.95 * owner.true_rate
    rng = np.random.default_rng(2)
    for _ in range(300):
        x = random_error(owner, rng, np.radians(30.0), 0.0)
        assert slack(owner, found.P, found.alpha, x, rng.normal(size=3)) > 0.0


def test_nothing_is_found_where_there_is_nothing_to_find():
    assert search(channel(Pose(), 4.0, -2.8), 1.0, 1.0) is None
    assert search(channel(Rotation(), -4.0, 2.8), 1.0) is None


def test_problems_that_would_take_hours_are_left_alone():
    coupled = np.eye(6) * 4.0 + 0.1
    assert search(channel(Pose(), coupled), 1.0, 1.0) is None
    assert search(channel(Product([PlanarPose(), PlanarPose()]), coupled), 1.0, 1.0) is None
    assert search(channel(Product([Rotation(), Rotation()]), coupled), 1.0) is None


@pytest.mark.slow
def test_poses_with_diagonal_gains_have_a_form():
    """Slower than a pose with the weakest gains in all directions may be, but by how little."""
    owner = channel(Pose(), [4.0, 5.0, 6.0, 4.0, 6.0, 9.0], [4.0, 4.5, 5.0, 4.0, 5.0, 6.6])
    found = search(owner, np.radians(10.0), 0.1)
    assert found.limit > 0.9 * owner.true_rate
    # Reflections leave no entries between different axes, or a position and a rotation.
    pattern = np.kron(np.ones((2, 2)), np.eye(6))
    np.testing.assert_array_equal(found.P, found.P * pattern)
    rng = np.random.default_rng(4)
    for _ in range(300):
        x = random_error(owner, rng, np.radians(10.0), 0.1)
        assert slack(owner, found.P, found.alpha, x, rng.normal(size=6) * 0.3) > 0.0


@pytest.mark.extended
@pytest.mark.parametrize("group", [Vector("xy"), Rotation(), Pose()], ids=["R2", "SO3", "SE3"])
@pytest.mark.parametrize("frequency", [2.0**-30, 2.0**-7, 2.0**17])
def test_the_unit_of_time_does_not_matter(group, frequency):
    usual = search(channel(group, 1.0, 1.0), 1.0, 1.0)
    other = search(channel(group, frequency**2, frequency), 1.0, 1.0)
    assert other.alpha == pytest.approx(frequency * usual.alpha, rel=5e-3)
    rng = np.random.default_rng(8)
    owner = channel(group, frequency**2, frequency)
    for _ in range(100):
        x = random_error(owner, rng, 1.0, 1.0 if owner.size == 6 else 0.0)
        ve = frequency * rng.normal(size=owner.size)
        assert slack(owner, other.P, other.alpha, x, ve) > 0.0


@pytest.mark.parametrize("backoff", [-0.1, 1.0, float("nan")])
def test_a_back_off_out_of_its_range_is_refused(backoff):
    with pytest.raises(OutputError, match="backoff"):
        search(CHANNELS["SO3"], 1.0, backoff=backoff)


@pytest.mark.parametrize("missing", ["cvxpy", "clarabel"])
def test_without_a_solver_the_extra_is_named(monkeypatch, missing):
    found = _problem.find_spec
    monkeypatch.setattr(_problem, "find_spec", lambda n: None if n == missing else found(n))
    with pytest.raises(ConcurError, match=r"\[certify\]"):
        search(CHANNELS["SO3"], 1.0)
