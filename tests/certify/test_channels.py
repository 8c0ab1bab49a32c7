"""Channels: each moves independently, and together they have the loop's linearized rate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import concur as cc
from concur.certify._channels import split
from concur.control import ErrorDynamics
from concur.errors import NonFiniteError, OutputError, ShapeError
from concur.groups import so3
from concur.outputs.groups import Angle, PlanarPose, Pose, Product, Rotation, Vector

FACTORS = [Vector("xyz"), Rotation(), PlanarPose(), Angle(), Pose(), Vector("y")]
EVERYTHING = Product(FACTORS)


def gains(size, stiffness=4.0, damping=2.8, inertia=1.0):
    return [np.eye(size) * value for value in (stiffness, damping, inertia)]


def channels_of(group, *, couple=(), length=None, **values):
    """Channels for gains that are multiples of the identity, with entries added."""
    matrices = gains(group.dim, **values)
    for which, i, j, value in couple:
        matrices[which][i, j] += value
    return split(ErrorDynamics(group, *matrices), length)


def only(channels):
    assert len(channels) == 1
    return channels[0]


def definite(rng, size):
    factor = rng.normal(size=(size, size))
    matrix = factor @ factor.T / size + np.eye(size)
    return (matrix + matrix.T) / 2.0


def linearisation(dynamics):
    """Jacobian of the deployed rate at zero error, by central differences."""
    n, step = dynamics.size, 1e-5
    columns = []
    for direction in np.eye(2 * n) * step:
        ahead = np.concatenate(dynamics.rate(direction[:n], direction[n:]))
        behind = np.concatenate(dynamics.rate(-direction[:n], -direction[n:]))
        columns.append((ahead - behind) / (2 * step))
    return np.column_stack(columns)


# --- splitting -------------------------------------------------------------------------------


def test_factors_without_coupling_are_channels_of_their_own():
    channels = channels_of(EVERYTHING)
    assert [list(c.index) for c in channels] == [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
        [9],
        [10, 11, 12, 13, 14, 15],
        [16],
    ]
    assert [c.kind for c in channels] == [
        "linear",
        "SO3 isotropic",
        "SE2",
        "linear",
        "SE3 isotropic",
        "linear",
    ]
    assert [c.group for c in channels] == FACTORS
    assert channels[2].units == ("m", "m", "rad")
    assert channels[2].names == ("x", "y", "heading")
    assert channels[2].name == "channel (6: x, 7: y, 8: heading)"


@pytest.mark.parametrize("which", range(3), ids=["stiffness", "damping", "inertia"])
@pytest.mark.parametrize(("i", "j"), [(0, 16), (16, 0)])
@pytest.mark.parametrize("value", [0.5, -5e-324])
def test_one_entry_joins_factors_however_small_or_one_sided(which, i, j, value):
    channels = channels_of(EVERYTHING, couple=[(which, i, j, value)])
    joined = channels[0]
    assert list(joined.index) == [0, 1, 2, 16]
    assert joined.names == ("x", "y", "z", "y")
    assert joined.kind == "linear"
    assert joined.factors == (FACTORS[0], FACTORS[5])
    assert len(channels) == 5
    block = (joined.stiffness, joined.damping, joined.inertia)[which]
    assert block[(0, 3) if i < j else (3, 0)] == value


def test_couplings_do_not_cancel():
    channels = channels_of(EVERYTHING, couple=[(0, 0, 16, 0.1), (1, 0, 16, -0.3)])
    assert list(channels[0].index) == [0, 1, 2, 16]


def test_coupling_is_passed_on():
    channels = channels_of(EVERYTHING, couple=[(0, 0, 9, 0.1), (1, 9, 16, 0.1), (2, 3, 6, 0.1)])
    assert [list(c.index) for c in channels] == [
        [0, 1, 2, 9, 16],
        [3, 4, 5, 6, 7, 8],
        [10, 11, 12, 13, 14, 15],
    ]
    assert [c.kind for c in channels] == ["linear", "general", "SE3 isotropic"]


def test_products_within_products_are_taken_apart():
    nested = Product([Product([Vector("x"), Rotation()]), Product([Angle()])])
    assert [list(c.index) for c in channels_of(nested)] == [[0], [1, 2, 3], [4]]


def test_blocks_are_copies_that_cannot_be_written():
    matrices = gains(3)
    channel = only(split(ErrorDynamics(Rotation(), *matrices)))
    matrices[0][0, 0] = 7.0
    assert channel.stiffness[0, 0] == 4.0
    for array in (channel.index, channel.stiffness, channel.damping, channel.inertia):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_channels_of_a_servo():
    model = cc.reduce(cc.robots.rover_arm())
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    servo = cc.Servo(model, [base, hand], stiffness=[4, 9], damping=[4, 6])
    channels = split(servo.error_dynamics)
    assert [c.kind for c in channels] == ["linear", "linear"]
    assert [c.true_rate for c in channels] == [2.0, 3.0]


# --- kinds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("which", range(3), ids=["stiffness", "damping", "inertia"])
@pytest.mark.parametrize(
    ("group", "kind"), [(Rotation(), "SO3"), (Pose(), "SE3")], ids=["SO3", "SE3"]
)
def test_isotropic_means_exactly(which, group, kind):
    assert only(channels_of(group)).kind == f"{kind} isotropic"
    last = group.dim - 1
    matrices = gains(group.dim)
    matrices[which][last, last] = np.nextafter(matrices[which][last, last], 9.0)
    assert only(split(ErrorDynamics(group, *matrices))).kind == kind
    assert only(channels_of(group, couple=[(which, 0, last, 1e-300)])).kind == kind
    assert only(channels_of(group, couple=[(which, 1, 0, -1e-300)])).kind == kind


def test_isotropic_pose_may_have_other_gains_for_each_block():
    blocks = [np.diag([a] * 3 + [b] * 3) for a, b in [(1.0, 9.0), (2.5, 7.5), (1.0, 0.25)]]
    assert only(split(ErrorDynamics(Pose(), *blocks))).kind == "SE3 isotropic"


def test_groups_of_a_users_own_are_general():
    class Bent(Vector):
        def error_map(self, x):
            return (1.0 + x[0] ** 2) * super().error_map(x)

    class Twisted(Rotation):
        def error_map(self, x):
            return 2.0 * super().error_map(x)

    assert only(channels_of(Bent("x"))).kind == "general"
    assert only(channels_of(Twisted())).kind == "general"


# --- true rate -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stiffness", "damping", "rate"),
    [(4.0, 5.0, 1.0), (4.0, 2.8, 1.4), (1.0, 2.5, 0.5), (9.0, 7.5, 1.5), (4.0, 4.0, 2.0)],
)
@pytest.mark.parametrize("group", [Vector("x"), Rotation(), PlanarPose(), Pose()])
def test_true_rate_of_isotropic_gains(group, stiffness, damping, rate):
    assert only(channels_of(group, stiffness=stiffness, damping=damping)).true_rate == rate


def test_true_rate_with_other_gains_for_position_and_rotation():
    blocks = [np.diag([a] * 3 + [b] * 3) for a, b in [(1.0, 9.0), (2.5, 7.5), (1.0, 1.0)]]
    assert only(split(ErrorDynamics(Pose(), *blocks))).true_rate == 0.5


def test_true_rate_of_anisotropic_gains_and_of_the_same_gains_turned():
    stiffness, damping = np.diag([4.0, 6.0, 9.0]), np.diag([4.0, 5.0, 6.6])
    straight = only(split(ErrorDynamics(Rotation(), stiffness, damping, np.eye(3))))
    assert straight.kind == "SO3"
    assert straight.true_rate == pytest.approx(3.3 - np.sqrt(1.89), rel=1e-14)
    assert straight.true_rate == pytest.approx(1.925, abs=5e-4)
    turn = so3.exp(np.array([0.3, -0.8, 0.5]))
    turned = [turn @ gain @ turn.T for gain in (stiffness, damping)]
    channel = only(split(ErrorDynamics(Rotation(), *turned, np.eye(3))))
    assert channel.true_rate == pytest.approx(straight.true_rate, rel=1e-12)


@pytest.mark.parametrize("group", FACTORS, ids=lambda g: type(g).__name__)
def test_true_rate_is_that_of_the_deployed_error_dynamics(group):
    rng = np.random.default_rng(group.dim)
    dynamics = ErrorDynamics(group, *(definite(rng, group.dim) for _ in range(3)))
    measured = -np.linalg.eigvals(linearisation(dynamics)).real.max()
    assert only(split(dynamics)).true_rate == pytest.approx(measured, rel=1e-7)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_true_rate_has_the_units_of_one_over_time(number, speed, weight):
    rng = np.random.default_rng(number)
    stiffness, damping, inertia = (definite(rng, 3) for _ in range(3))
    rate = only(split(ErrorDynamics(Rotation(), stiffness, damping, inertia))).true_rate
    faster = ErrorDynamics(
        Rotation(), weight * speed**2 * stiffness, weight * speed * damping, weight * inertia
    )
    assert only(split(faster)).true_rate == pytest.approx(speed * rate, rel=1e-6)


def test_true_rate_of_strong_damping_does_not_cancel():
    channel = only(channels_of(Vector("x"), stiffness=1.0, damping=1e9))
    assert channel.true_rate == pytest.approx(1e-9, rel=1e-15)


@pytest.mark.parametrize(
    ("stiffness", "damping", "rate"),
    [(-4.0, 3.0, -1.0), (4.0, -5.0, -4.0), (4.0, 0.0, 0.0), (0.0, 3.0, 0.0), (4.0, -2.0, -1.0)],
)
def test_true_rate_of_a_loop_that_is_not_stable_is_not_above_zero(stiffness, damping, rate):
    values = {"stiffness": stiffness, "damping": damping}
    assert only(channels_of(Rotation(), **values)).true_rate == rate
    # The same through the eigenvalues: one entry keeps the matrices from being diagonal.
    full = only(channels_of(Rotation(), couple=[(0, 0, 1, 1e-13)], **values))
    assert full.true_rate == pytest.approx(rate, abs=1e-9)


@pytest.mark.parametrize("entry", [0.0, 0.5])
def test_no_rate_with_a_singular_inertia(entry):
    couple = [(2, 2, 2, -1.0), (0, 0, 1, entry)]
    assert np.isnan(only(channels_of(Rotation(), couple=couple)).true_rate)


# --- length ----------------------------------------------------------------------------------


def test_length_from_the_inertia():
    inertia = np.diag([2.0, 2.0, 2.0, 0.5, 0.5, 0.5])
    channel = only(split(ErrorDynamics(Pose(), np.eye(6), np.eye(6), inertia)))
    assert channel.length == 0.5
    uneven = np.diag([1.0, 3.0, 18.0])
    assert only(split(ErrorDynamics(PlanarPose(), *gains(3)[:2], uneven))).length == 3.0


@pytest.mark.parametrize("group", [Vector("xyz"), Rotation(), Angle()])
def test_length_is_one_where_units_do_not_mix(group):
    assert only(channels_of(group, inertia=4.0)).length == 1.0


def test_length_as_given():
    assert only(channels_of(Pose(), length=0.3)).length == 0.3


def test_length_of_an_inertia_that_is_not_positive_is_one():
    assert only(channels_of(Pose(), inertia=-1.0)).length == 1.0
    assert only(channels_of(Pose(), inertia=0.0)).length == 1.0


@pytest.mark.parametrize("length", [0.0, -1.0, np.nan, np.inf])
def test_length_must_be_above_zero(length):
    with pytest.raises(OutputError, match="metres per radian"):
        channels_of(Pose(), length=length)


# --- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["stiffness", "damping", "inertia"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_gains_must_be_finite(name, value):
    matrices = dict(zip(("stiffness", "damping", "inertia"), gains(3), strict=True))
    matrices[name][1, 2] = value
    with pytest.raises(NonFiniteError, match=name):
        split(ErrorDynamics(Rotation(), **matrices))


@pytest.mark.parametrize("value", [np.eye(2), np.ones(3), 4.0, "stiff"])
def test_gains_must_fit_the_group(value):
    with pytest.raises(ShapeError, match="`damping`"):
        split(ErrorDynamics(Rotation(), np.eye(3), value, np.eye(3)))
