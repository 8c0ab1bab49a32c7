"""Proofs: true claims are proved, false ones refuted, undecidable ones left UNDECIDED."""

from functools import cache

import casadi as ca
import numpy as np
import pytest

from concur.certify._prove import prove
from concur.certify._reduction import affine_in_positions
from concur.certify._search import search
from concur.certify._status import Status
from concur.errors import OutputError, ShapeError
from concur.outputs.groups import Angle, PlanarPose, Pose, Product, Rotation, Vector
from tests.certify._channel import channel, slack

POSE = channel(Pose(), 4.0, 2.8)
ROTATION = channel(Rotation(), 4.0, 2.8)
RIGHT_ANGLE = np.pi / 2


def proof(owner, found, angle, distance=None, rate=1.0, **options):
    options = {"multipliers": found.multipliers} | options
    return prove(owner, found.P, rate * found.alpha, angle, distance, **options)


@pytest.fixture(scope="module")
def near():
    """The fastest decay for position errors up to half a metre, at 90 degrees."""
    return search(POSE, RIGHT_ANGLE, 0.5)


def plain(owner, P, alpha, multipliers, x):
    """The inequality's matrix at x, written independently with NumPy."""
    n = owner.size
    B = np.asarray(ca.evalf(owner.group.error_map(ca.SX(x))))
    T, start = np.eye(n), 0
    for factor in owner.factors:
        if isinstance(factor, (Pose, Rotation)):
            places = slice(start + factor.dim - 3, start + factor.dim)
            T[places, places] = B[places, places].T
        start += factor.dim
    scale = np.linalg.inv(owner.inertia)
    F = np.block([[np.zeros((n, n)), -B], [scale @ B.T @ owner.stiffness, -scale @ owner.damping]])
    L, M = multipliers
    nothing = np.hstack([L @ (np.eye(n) - B) + M @ (np.eye(n) - T), np.zeros((2 * n, n))])
    A = -P @ F - alpha * P + nothing
    return (A + A.T) / 2


# --- true claims -----------------------------------------------------------------------------


@pytest.mark.by_default(4)
@pytest.mark.parametrize("damping", [0.1, 2.8, 4.0, 5.0, 100.0])
@pytest.mark.parametrize("degrees", [179.999, 30.0, 90.0, 170.0])
def test_isotropic_rotations_get_the_true_rate_below_half_a_turn(damping, degrees):
    owner, angle = channel(Rotation(), 4.0, damping), np.radians(degrees)
    found = search(owner, angle)
    result = proof(owner, found, angle)
    assert result.status is Status.PROVED, result.reason
    assert found.alpha >= 0.99 * owner.true_rate


OTHERS = {
    "R3": (channel(Vector("xyz"), 4.0, 2.8), 1.0, None, "linear"),
    "R2, critical": (channel(Vector("xy"), 4.0, 4.0), 1.0, None, "linear"),
    "SO2": (channel(Angle(), 2.0, 1.0, 0.3), 3.0, None, "linear"),
    "SE2": (channel(PlanarPose(), 4.0, 2.8), 1.5, 1.5, "all"),
    "SE2, diagonal": (channel(PlanarPose(), [4.0, 5.0, 6.0], 3.0), 3.0, 1.0, "all"),
    "SO3, diagonal": (
        channel(Rotation(), [4.0, 5.0, 6.0], [2.8, 3.0, 3.2]),
        0.5,
        None,
        "two octants",
    ),
}


@cache
def candidate(name):
    owner, angle, distance, _ = OTHERS[name]
    return search(owner, angle, distance)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", OTHERS)
def test_other_groups_are_proved_too(name):
    owner, angle, distance, reduction = OTHERS[name]
    found = candidate(name)
    result = proof(owner, found, angle, distance)
    assert (result.status, result.reduction) == (Status.PROVED, reduction), result.reason


@pytest.mark.extended
@pytest.mark.parametrize(
    ("degrees", "least"),
    [
        (30, 0.88),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in [(90, 0.83), (120, 0.7)]),
    ],
)
def test_anisotropic_rotations_are_proved(degrees, least):
    owner, angle = channel(Rotation(), [4.0, 6.0, 9.0], [4.0, 5.0, 6.6]), np.radians(degrees)
    found = search(owner, angle)
    result = proof(owner, found, angle)
    assert result.status is Status.PROVED, result.reason
    assert found.alpha > least * owner.true_rate
    # That many boxes were enough when this was written, with some room.
    assert result.tested < 8000


# --- false claims ----------------------------------------------------------------------------


def test_a_form_for_half_a_metre_is_refuted_for_two(near):
    result = proof(POSE, near, RIGHT_ANGLE, 2.0)
    assert result.status is Status.REFUTED
    found = result.counterexample
    assert np.linalg.norm(found.x[:3]) <= 2.0
    assert np.linalg.norm(found.x[3:]) <= RIGHT_ANGLE
    A = plain(POSE, near.P, near.alpha, near.multipliers, found.x)
    value = found.direction @ A @ found.direction
    assert value < 0.0
    assert value == pytest.approx(found.value, rel=1e-6)
    assert found.positive


def test_a_rate_five_percent_higher_is_refuted(near):
    assert proof(POSE, near, RIGHT_ANGLE, 0.5, rate=1.05).status is Status.REFUTED
    fast = search(ROTATION, 2.0)
    result = proof(ROTATION, fast, 2.0, rate=1.05)
    assert result.status is Status.REFUTED
    # Here the motion itself is slower than claimed, not only this proof impossible.
    found = result.counterexample
    assert found.motion
    x, ve = found.direction[:3], found.direction[3:]
    np.testing.assert_array_equal(x, found.x)
    assert slack(ROTATION, fast.P, 1.05 * fast.alpha, x, ve) < 0.0


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", OTHERS)
def test_no_group_gets_more_than_its_true_rate(name):
    owner, angle, distance, _ = OTHERS[name]
    found = candidate(name)
    result = prove(
        owner, found.P, 1.001 * owner.true_rate, angle, distance, multipliers=found.multipliers
    )
    assert result.status is Status.REFUTED


@pytest.mark.extended
def test_counterexamples_to_random_claims_hold():
    rng = np.random.default_rng(5)
    for owner, distance in ((POSE, 0.8), (ROTATION, None), (OTHERS["SE2"][0], 0.8)):
        for _ in range(5):
            n = owner.size
            factor = rng.normal(size=(2 * n, 2 * n))
            P = factor @ factor.T + np.eye(2 * n)
            P = (P + P.T) / 2
            multipliers = tuple(rng.normal(size=(2, 2 * n, n)))
            result = prove(owner, P, 0.1, 1.0, distance, multipliers=multipliers)
            assert result.status is Status.REFUTED
            found = result.counterexample
            A = plain(owner, P, 0.1, multipliers, found.x)
            assert found.direction @ A @ found.direction < 0.0


def test_a_form_that_is_not_positive_is_refuted():
    for P in (-np.eye(6), np.diag([1.0, 1.0, 1.0, 1.0, 1.0, -1e-9]), np.zeros((6, 6))):
        result = prove(ROTATION, P, 0.1, 1.0)
        assert result.status is Status.REFUTED
        assert not result.counterexample.positive
        direction = result.counterexample.direction
        assert direction @ P @ direction <= 0.0


# --- undecided claims -----------------------------------------------------------------------


def test_a_small_budget_leaves_boxes_and_no_verdict(near):
    result = proof(POSE, near, RIGHT_ANGLE, 0.5, budget=2)
    assert result.status is Status.UNDECIDED
    assert "budget of 2" in result.reason
    assert result.tested == 2
    covered = sum(np.ptp(b) for b in result.boxes) + sum(np.ptp(b) for b in result.undecided_boxes)
    assert covered == pytest.approx(RIGHT_ANGLE)
    assert len(result.undecided_boxes) > 0


def test_an_inequality_that_holds_with_equality_is_not_proved():
    # V = (kp |x|^2 - kd x.ve + |ve|^2) / 2 falls at kd / 2 exactly, at every angle.
    P = np.kron([[4.0, -1.5], [-1.5, 1.0]], np.eye(3))
    owner = channel(Rotation(), 4.0, 3.0)
    assert prove(owner, P, 1.5, 2.0).status is Status.UNDECIDED
    assert prove(owner, P, 1.499, 2.0).status is Status.PROVED
    assert prove(owner, P, 1.501, 2.0).status is Status.REFUTED


@pytest.mark.extended
def test_the_marginal_form_of_a_solver_is_never_proved():
    found = search(POSE, 1.0, 1.0, backoff=0.0)
    verdicts = set()
    for rate in np.linspace(0.995, 1.005, 6):
        result = proof(POSE, found, 1.0, 1.0, rate=rate, budget=60)
        verdicts.add(result.status)
        least = min(
            np.linalg.eigvalsh(
                plain(POSE, found.P, rate * found.alpha, found.multipliers, x)
            )[0]
            for t in np.linspace(0.0, 1.0, 41)
            for x in result.offsets + result.matrix @ [t]
        )  # fmt: skip
        if least < 1e-12:
            assert result.status is not Status.PROVED
    assert len(verdicts) > 1


def test_groups_without_an_argument_are_left_open():
    both = channel(Product([Rotation(), Rotation()]), np.eye(6) * 4.0 + 0.1)
    result = prove(both, np.eye(12), 0.1, 1.0)
    assert (result.status, result.reduction) == (Status.UNDECIDED, "none")

    class Own(Rotation):
        def error_map(self, x):
            return ca.SX.eye(3)

    result = prove(channel(Own()), np.kron([[4.0, -1.4], [-1.4, 1.0]], np.eye(3)), 1.3, 1.0)
    assert (result.status, result.reduction) == (Status.UNDECIDED, "none")


@pytest.mark.extended
def test_a_form_with_less_symmetry_gets_no_reduction_by_symmetry(near):
    P = near.P.copy()
    P[3, 3] = np.nextafter(P[3, 3], 9e9)
    result = prove(POSE, P, near.alpha, 0.2, 0.1, budget=0, multipliers=near.multipliers)
    assert result.reduction == "all"
    assert len(result.parameters) == 3
    # Mirror images are left: half of the corners of a cube around all positions.
    assert len(result.offsets) == 4
    # A form that joins position and rotation is not even under reflections.
    P = near.P.copy()
    P[:3, 3:6] = P[3:6, :3] = 1e-3 * np.eye(3)
    result = prove(POSE, P, near.alpha, 0.2, 0.1, budget=0, multipliers=near.multipliers)
    assert result.reduction == "all"


# --- contents of a proof --------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("name", ["SE2", "SO3, diagonal"])
def test_boxes_cover_the_domain_and_hold_in_samples(name):
    owner, angle, distance, _ = OTHERS[name]
    found = candidate(name)
    result = proof(owner, found, angle, distance)
    assert result.status is Status.PROVED
    rng = np.random.default_rng(6)
    low, high = result.boxes[:, 0], result.boxes[:, 1]
    for _ in range(100):
        p = rng.uniform(result.lower, result.upper)
        if np.linalg.norm(p) > result.radius:
            continue
        assert ((low <= p) & (p <= high)).all(-1).any()
        for offset in result.offsets:
            A = plain(owner, found.P, found.alpha, found.multipliers, offset + result.matrix @ p)
            assert np.linalg.eigvalsh(A)[0] > 0.0


def test_reduced_errors_stand_for_the_whole_domain():
    # Any position of the disc is a mean of the corners and their mirror images.
    result = prove(POSE, np.eye(12), 0.1, 1.0, 2.0)
    corners = result.offsets[:, [0, 2]]
    images = np.concatenate([corners * [sx, sz] for sx in (1, -1) for sz in (1, -1)])
    for turn in np.linspace(0.0, 2 * np.pi, 361):
        direction = np.array([np.cos(turn), np.sin(turn)])
        # The polygon's support is at least the disc's in every direction.
        assert (images @ direction).max() >= 2.0
    planar = prove(OTHERS["SE2"][0], np.eye(6), 0.1, 1.0, 2.0)
    for turn in np.linspace(0.0, 2 * np.pi, 361):
        direction = np.array([np.cos(turn), np.sin(turn), 0.0])
        assert (planar.offsets @ direction).max() >= 2.0


def test_turned_and_mirrored_errors_give_the_same_spectrum(near):
    rng = np.random.default_rng(7)
    arguments = near.P, near.alpha, near.multipliers
    for _ in range(20):
        rho, phi = rng.normal(size=(2, 3))
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        image = np.concatenate([Q @ rho, np.linalg.det(Q) * Q @ phi])
        first = np.linalg.eigvalsh(plain(POSE, *arguments, np.concatenate([rho, phi])))
        second = np.linalg.eigvalsh(plain(POSE, *arguments, image))
        np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.parametrize("name", OTHERS)
def test_error_maps_are_affine_in_positions(name):
    assert affine_in_positions(OTHERS[name][0])
    assert affine_in_positions(POSE)


def test_an_error_map_that_is_not_affine_is_noticed(monkeypatch):
    straight = Pose.error_map
    monkeypatch.setattr(Pose, "error_map", lambda self, x: straight(self, x) * (1 + x[0] ** 2))
    assert not affine_in_positions(POSE)
    assert prove(POSE, np.eye(12), 0.1, 1.0, 1.0).status is Status.UNDECIDED


def test_it_is_the_deployed_map_that_is_looked_at(monkeypatch, near):
    right = Pose.error_map
    monkeypatch.setattr(Pose, "error_map", lambda self, x: right(self, -2.0 * x))
    assert proof(POSE, near, RIGHT_ANGLE, 0.5).status is Status.REFUTED


def test_progress_rises_to_one(near):
    seen = []
    proof(POSE, near, RIGHT_ANGLE, 0.5, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)


# --- rejected arguments -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("P", "options", "error", "words"),
    [
        (np.eye(5), {}, ShapeError, "symmetric matrix of shape"),
        (np.triu(np.ones((6, 6))), {}, ShapeError, "not symmetric"),
        (np.eye(6), {"multipliers": (np.eye(6), np.eye(6))}, ShapeError, "two matrices"),
        (np.full((6, 6), np.inf), {}, OutputError, "finite"),
        (np.eye(6), {"alpha": float("nan")}, OutputError, "finite"),
        (np.eye(6), {"angle": 3.2}, OutputError, "at most pi"),
        (np.eye(6), {"angle": 0.0}, OutputError, "above 0"),
    ],
)
def test_claims_that_make_no_sense_are_refused(P, options, error, words):
    with pytest.raises(error, match=words):
        prove(ROTATION, P, **({"alpha": 0.1, "angle": 1.0} | options))


@pytest.mark.parametrize("distance", [None, -1.0, np.inf, np.nan])
def test_poses_need_a_distance(distance):
    with pytest.raises(OutputError, match="distance"):
        prove(POSE, np.eye(12), 0.1, 1.0, distance)
