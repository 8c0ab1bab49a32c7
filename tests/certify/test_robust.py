"""Tubes of disturbed loops: reference numbers, simulations, minima over the boundary."""

from dataclasses import replace
from itertools import pairwise
from math import inf, pi, radians

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.linalg import solve_continuous_lyapunov
from scipy.optimize import minimize

from concur.certify._certify import certify
from concur.certify._channels import split
from concur.certify._decay import Decay
from concur.certify._disturbance import Disturbance
from concur.certify._prove import prove
from concur.certify._robust import tube, tubes
from concur.certify._status import Status
from concur.control import ErrorDynamics
from concur.errors import NonFiniteError, OutputError, ShapeError
from concur.outputs.groups import Angle, PlanarPose, Pose, Product, Rotation, Vector
from tests.certify._thesis_cases import channel, error_maps, pose, positive, rotation


def form(a, b, c):
    """Matrix of sum (a |x|^2 + b |v|^2 - 2 c x.v) over blocks of three components."""
    cross = np.kron(np.diag(c), -np.eye(3))
    return np.block(
        [[np.kron(np.diag(a), np.eye(3)), cross], [cross, np.kron(np.diag(b), np.eye(3))]]
    )


REFERENCE = form([1.578, 1.702], [0.344, 0.344], [0.446, 0.492])
"""P of the reference tube: set B on SE(3), 60 degrees, 0.5 m, 0.8 of the linearized rate."""


def reference(certified=Status.PROVED):
    return Decay(pose("B"), REFERENCE, 0.8 * 1.4, radians(60), 0.5, certified)


def linear(stiffness, damping, share=0.8, group=None):
    """A linear channel with a P that decays at a fraction of its linearized rate."""
    (own,) = split(
        ErrorDynamics(
            group or Vector("xyz"[: len(stiffness)]), stiffness, damping, np.eye(len(stiffness))
        )
    )
    return Decay(own, falling_form(own, share), share * own.true_rate)


def flow(own):
    """F at zero error."""
    n = own.size
    lower = np.linalg.solve(own.inertia, np.hstack([own.stiffness, -own.damping]))
    return np.vstack([np.hstack([np.zeros((n, n)), -np.eye(n)]), lower])


def falling_form(own, share):
    shifted = flow(own) + share * own.true_rate * np.eye(2 * own.size)
    P = solve_continuous_lyapunov(shifted.T, -np.eye(2 * own.size))
    return (P + P.T) / 2


def test_reference_tube():
    found = tube(reference(), 1.0)
    assert found.size == pytest.approx(0.524, abs=6e-4)
    assert found.radius == pytest.approx(np.sqrt(0.344) / 1.12, rel=1e-12)
    # At dbar = 1 the position may leave 0.5 m, and then nothing is claimed.
    assert found.limit == pytest.approx(0.5, rel=1e-3)
    assert found.status is Status.UNDECIDED
    assert not found.fits
    assert "does not fit" in str(found)

    within = tube(reference(), 0.3)
    assert within.size == pytest.approx(0.157, abs=3e-4)
    assert within.status is Status.PROVED
    assert within.distance == pytest.approx(0.157, abs=3e-4)
    assert within.angle == pytest.approx(0.157, abs=3e-4)


def test_static_and_worst_linear_responses_are_within_the_reference_tube():
    kp, kd = 4.0, 2.8
    damped, rate = np.sqrt(kp - kd**2 / 4), kd / 2
    ends = np.arange(12) * pi / damped
    worst = sum(
        abs(quad(lambda t: np.exp(-rate * t) * np.sin(damped * t) / damped, a, b)[0])
        for a, b in pairwise(ends)
    )
    assert worst == pytest.approx(0.274, abs=5e-4)
    assert 1 / kp < worst < tube(reference(), 1.0).size


def test_the_reference_form_falls_at_the_rate():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6))
    x[:, :3] *= 0.5 / np.linalg.norm(x[:, :3], axis=1, keepdims=True)
    x[:, 3:] *= (
        radians(60) * rng.uniform(size=(300, 1)) / np.linalg.norm(x[:, 3:], axis=1, keepdims=True)
    )
    x[:, :3] *= np.where(np.arange(300) % 2, 1.0, rng.uniform(size=300))[:, None]
    own = pose("B")
    for error, B in zip(x, error_maps(x), strict=True):
        F = np.block([[np.zeros((6, 6)), -B], [B.T @ own.stiffness, -own.damping]])
        fall = -(REFERENCE @ F + F.T @ REFERENCE) / 2 - 1.12 * REFERENCE
        across, velocities = fall[:6, 6:], fall[6:, 6:]
        assert np.linalg.eigvalsh(velocities)[0] > 0
        # Least over all velocities; the form is printed to three digits.
        least = fall[:6, :6] - across @ np.linalg.solve(velocities, across.T)
        assert error @ least @ error > -1e-3 * error @ error


@pytest.mark.by_default(3)
@pytest.mark.parametrize("seed", range(6))
def test_disturbed_motions_stay_in_the_tube(seed):
    """Disturbances of full size along the growth of |z|_P, or switching at random."""
    rng = np.random.default_rng(seed)
    decay, bound = reference(), 0.3
    found = tube(decay, bound)
    dynamics = decay.channel.dynamics
    turn = rng.normal(size=6)
    flips = np.sort(rng.uniform(0.0, 8.0, 12))

    def push(t, z):
        d = turn * (-1) ** np.searchsorted(flips, t)
        if seed % 2:
            d = decay.P[6:] @ (z + 1e-9 * np.concatenate([turn, turn]))
        return bound * d / np.linalg.norm(d)

    def slope(t, z):
        error, velocity = dynamics.rate(z[:6], z[6:])
        return np.concatenate([error, velocity + push(t, z)])

    run = solve_ivp(slope, (0, 8), np.zeros(12), rtol=1e-6, atol=1e-8, max_step=0.05)
    lengths = np.sqrt(np.einsum("it,ij,jt->t", run.y, decay.P, run.y))
    bounds = np.array([found.envelope(t) for t in run.t])
    assert (lengths <= bounds + 1e-6).all()
    assert (np.abs(run.y[:6]).max(axis=1) <= found.components).all()
    assert np.linalg.norm(run.y[:6], axis=0).max() < found.size
    # The disturbance is effective: the error reaches a large part of the bound.
    assert lengths.max() > 0.2 * found.radius


def test_starts_decay_to_the_tube():
    decay = reference()
    start = 0.4
    found = tube(decay, 0.3, start)
    assert found.radius == start > found.ultimate
    assert found.envelope(0.0) == start
    assert found.envelope(30.0) == pytest.approx(found.ultimate, rel=1e-9)
    dynamics, rng = decay.channel.dynamics, np.random.default_rng(1)
    z = rng.normal(size=12)
    z *= start / np.sqrt(z @ decay.P @ z)
    d = 0.3 * np.array([0.6, 0, 0, 0, 0.8, 0])

    def slope(_, z):
        error, velocity = dynamics.rate(z[:6], z[6:])
        return np.concatenate([error, velocity + d])

    run = solve_ivp(slope, (0, 4), z, rtol=1e-8, atol=1e-10)
    for t, state in zip(run.t, run.y.T, strict=True):
        assert found.norm(state[:6], state[6:]) <= found.envelope(t) + 1e-7
    assert tube(decay, 0.3, 0.6).status is Status.UNDECIDED


BOUNDED = {
    "SE2": (PlanarPose(), [([2], 0.7), ([0, 1], 0.4)]),
    "SE3": (Pose(), [([3, 4, 5], 0.7), ([0, 1, 2], 0.4)]),
    "SO3": (Rotation(), [([0, 1, 2], 0.7)]),
    "R2 with SO3": (Product([Vector("xy"), Rotation()]), [([2, 3, 4], 0.7)]),
    "R2 with SO2": (Product([Vector("xy"), Angle()]), [([2], pi)]),
    "R2": (Vector("xy"), []),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_limit_is_the_least_norm_on_the_boundary(name):
    group, parts = BOUNDED[name]
    rng = np.random.default_rng(len(name))
    n = group.dim
    own = channel(group, positive(rng, n), positive(rng, n))
    P = positive(rng, 2 * n)
    decay = Decay(own, P, 0.1, angle=0.7, distance=0.4)
    found = []
    for places, length in parts:
        for start in np.vstack([np.eye(len(places)), -np.eye(len(places))]):
            z = np.zeros(2 * n)
            z[places] = length * start
            answer = minimize(
                lambda z: z @ P @ z,
                z,
                jac=lambda z: 2 * P @ z,
                constraints={
                    "type": "eq",
                    "fun": lambda z, places=places, r=length: z[places] @ z[places] - r**2,
                },
                method="SLSQP",
                options={"ftol": 1e-14, "maxiter": 500},
            )
            found.append(np.sqrt(answer.fun))
    wanted = min(found, default=inf)
    assert decay.limit == pytest.approx(wanted, rel=1e-6)


def test_bounds_of_x_are_reached_by_errors_on_the_tube():
    rng = np.random.default_rng(3)
    own = channel(Pose(), positive(rng, 6), positive(rng, 6))
    decay = Decay(own, positive(rng, 12), 0.1, 1.0, 1.0)
    found = tube(decay, 0.01)
    inverse = np.linalg.inv(decay.P)
    z = inverse[:, 2] / np.sqrt(inverse[2, 2]) * found.radius
    assert found.norm(z[:6], z[6:]) == pytest.approx(found.radius, rel=1e-12)
    assert found.components[2] == pytest.approx(z[2], rel=1e-12)
    block = np.linalg.eigvalsh(inverse[3:6, 3:6])[-1]
    assert found.angle == pytest.approx(found.radius * np.sqrt(block), rel=1e-9)


def test_lengths_count_by_the_channels_length():
    """Millimetres for metres change the numbers but not the motion that they stand for."""
    unit = np.diag([1000.0] * 3 + [1.0] * 3)
    gains = [np.diag([4.0] * 6), np.diag([2.8] * 6), np.diag([1.0] * 3 + [0.25] * 3)]
    (metres,) = split(ErrorDynamics(Pose(), gains[0] @ gains[2], gains[1] @ gains[2], gains[2]))
    small = [np.linalg.inv(unit) @ g @ np.linalg.inv(unit) for g in gains]
    (millimetres,) = split(
        ErrorDynamics(Pose(), small[0] @ gains[2], small[1] @ gains[2], small[2])
    )
    assert metres.length == pytest.approx(0.5)
    assert millimetres.length == pytest.approx(500.0)
    both = np.kron(np.eye(2), np.linalg.inv(unit))
    P = falling_form(metres, 0.5)
    first = tube(Decay(metres, P, 0.1, 1.0, 0.5), 0.1)
    Q = both @ P @ both
    second = tube(Decay(millimetres, (Q + Q.T) / 2, 0.1, 1.0, 500.0), 0.1)
    assert second.radius == pytest.approx(first.radius, rel=1e-9)
    assert second.limit == pytest.approx(first.limit, rel=1e-9)
    assert second.size == pytest.approx(first.size, rel=1e-9)
    assert second.components[:3] == pytest.approx(1000 * first.components[:3], rel=1e-9)


def test_linear_and_isotropic_decays_are_decided_exactly():
    assert linear(np.diag([4.0, 9.0]), np.diag([3.0, 4.0])).status is Status.PROVED
    good = linear(np.diag([4.0]), np.diag([2.8]))
    assert Decay(good.channel, good.P, 1.41).status is Status.UNDECIDED
    assert tube(good, 0.5).status is Status.PROVED
    # Critical in the rational sense: P and 2 alpha for kd^2 < 4 kp make the inequality touch zero.
    exact = form([4.0], [1.0], [1.5])
    own = channel(Rotation(), 4.0 * np.eye(3), 3.0 * np.eye(3))
    assert Decay(own, exact, 1.5, 3.0).status is Status.PROVED
    assert Decay(own, exact, np.nextafter(1.5, 2), 3.0).status is Status.UNDECIDED
    # With P12 > 0 the argument fails, whatever happens at zero error.
    wrong = form([4.0], [1.0], [-0.1])
    assert Decay(own, wrong, 1e-3, 3.0).status is Status.UNDECIDED
    skewed = exact.copy()
    skewed[0, 0] += 1e-6
    assert Decay(own, skewed, 1.0, 3.0).status is Status.UNDECIDED
    assert Decay(rotation("B"), form([4.0], [1.0], [1.4]), 1.4, 1.0).status is Status.PROVED


@pytest.mark.extended
def test_tube_of_a_certificate():
    found = certify(pose("B").dynamics, radians(60), 0.5)
    decay = Decay.of(found.parts[0])
    assert decay.status is found.status is Status.PROVED
    assert decay.rate == found.rate
    small = tube(decay, 0.01)
    assert small.status is Status.PROVED
    assert small.size < 0.01
    assert small.angle <= small.size
    by_theorem = certify(pose("B").dynamics, radians(60), 0.5, method="thesis")
    with pytest.raises(OutputError, match="constant P"):
        Decay.of(by_theorem.parts[0])


def test_the_reference_form_is_proved():
    decay = reference()
    proof = prove(decay.channel, decay.P, decay.rate, decay.angle, decay.distance)
    assert proof.status is Status.PROVED


def test_undecided_decays_and_samples_prove_nothing():
    assert tube(reference(Status.UNDECIDED), 0.1).status is Status.UNDECIDED
    assert tube(reference(Status.REFUTED), 0.1).status is Status.UNDECIDED
    sampled = Disturbance(np.full(6, 0.05), "a grid of joint angles", sampled=True)
    given = Disturbance(np.full(6, 0.05))
    assert tube(reference(), given).status is Status.PROVED
    for bound in (sampled, given + sampled, sampled + given):
        found = tube(reference(), bound)
        assert found.status is Status.UNDECIDED
        assert "samples (" in found.reason
        assert "a grid of joint angles" in found.reason


def test_boxes_points_and_balls():
    rng = np.random.default_rng(5)
    decay = linear(positive(rng, 3), positive(rng, 3))
    bounds = np.array([0.1, 0.5, 0.2])
    inner = rng.uniform(-1, 1, size=(4000, 3)) * bounds
    block = decay.P[3:, 3:]
    corners = np.array(np.meshgrid(*[(-b, b) for b in bounds])).reshape(3, -1).T
    squares = np.einsum("ki,ij,kj->k", corners, block, corners)
    wanted = np.sqrt(squares.max()) / decay.rate
    found = tube(decay, bounds)
    assert found.radius == pytest.approx(wanted, rel=1e-12)
    assert np.sqrt(np.einsum("ki,ij,kj->k", inner, block, inner).max()) / decay.rate < wanted
    points = corners[np.argsort(squares)[:3]]
    fewer = tube(decay, Disturbance(bounds, points=points))
    assert fewer.radius < found.radius
    most = np.sqrt(max(p @ block @ p for p in points)) / decay.rate
    assert fewer.radius == pytest.approx(most, rel=1e-12)
    ball = tube(decay, 0.3).radius
    assert ball == pytest.approx(0.3 * np.sqrt(np.linalg.eigvalsh(block)[-1]) / decay.rate)
    total = Disturbance(bounds) + Disturbance(2 * bounds, "friction")
    assert (total.components >= 3 * bounds).all()
    assert total.components == pytest.approx(3 * bounds)
    assert "friction" in str(total)


def test_either_of_two_disturbances_needs_the_wider_tube():
    rng = np.random.default_rng(6)
    decay = linear(positive(rng, 3), positive(rng, 3))
    first, second = rng.normal(size=(2, 4, 3))
    grown = 0.003 * rng.normal(size=(2, 1, 3, 3))
    one = Disturbance(np.abs(first).max(axis=0), "light", True, first, grown[0])
    other = Disturbance(np.abs(second).max(axis=0), "heavy", True, second, grown[1])
    both = one | other
    assert both.sampled
    assert "light" in both.source
    assert "heavy" in both.source
    widest = max(tube(decay, one).radius, tube(decay, other).radius)
    assert np.isfinite(widest)
    assert widest <= tube(decay, both).radius < 1.5 * widest
    # Without feedback it is just the wider one; without points the box of the components counts.
    still = [replace(d, feedback=None) for d in (one, other)]
    widest = max(tube(decay, d).radius for d in still)
    assert tube(decay, still[0] | still[1]).radius == widest
    boxes = replace(still[0], points=None) | still[1]
    assert boxes.points is None
    assert tube(decay, boxes).radius > widest
    assert (one | still[1]).feedback.shape == (1, 3, 3)
    with pytest.raises(ShapeError):
        one | Disturbance(np.ones(2))
    with pytest.raises(ShapeError, match=r"expected shape \(1,\), got shape \(\)"):
        Disturbance(0.1)
    with pytest.raises(TypeError):
        one | 3


def loop(seed):
    """Two linear channels and their decays."""
    rng = np.random.default_rng(seed)
    group = Product([Vector("xy"), Vector("xyz")])
    KP, KD = np.zeros((2, 5, 5))
    for part in (slice(0, 2), slice(2, 5)):
        KP[part, part] = positive(rng, 3, 2.0, 3.0)[
            : part.stop - part.start, : part.stop - part.start
        ]
        KD[part, part] = positive(rng, 3, 2.0, 3.0)[
            : part.stop - part.start, : part.stop - part.start
        ]
    dynamics = ErrorDynamics(group, KP, KD, np.eye(5))
    parts = split(dynamics)
    return dynamics, [Decay(p, falling_form(p, 0.7), 0.7 * p.true_rate) for p in parts], rng


def test_a_loop_without_feedback_is_its_channels():
    _, decays, _ = loop(0)
    bounds = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    both = tubes(decays, bounds, [0.0, 2.0])
    alone = [tube(d, bounds[d.channel.index], s) for d, s in zip(decays, (0, 2), strict=True)]
    for found, wanted in zip(both, alone, strict=True):
        assert found.status is Status.PROVED
        assert (found.radius, found.ultimate) == (wanted.radius, wanted.ultimate)


def test_small_gain_replaces_the_rate_by_a_difference():
    decay = linear(np.diag([4.0]), np.diag([2.8]))
    gain = 0.05
    bound = Disturbance([0.2], feedback=[[[gain]]])
    found = tube(decay, bound)
    kappa = np.sqrt(np.array([4, -2.8]) @ np.linalg.inv(decay.P) @ np.array([4, -2.8]))
    push = np.sqrt(decay.P[1, 1])
    assert found.radius == pytest.approx(push * 0.2 / (decay.rate - push * gain * kappa), rel=1e-9)
    assert found.status is Status.UNDECIDED
    largest = decay.rate / (push * kappa)
    near = tube(decay, Disturbance([0.2], feedback=[[[0.99 * largest]]]))
    assert found.radius < near.radius < inf
    none = tube(decay, Disturbance([0.2], feedback=[[[1.01 * largest]]]))
    assert none.radius == none.ultimate == inf
    assert not none.fits
    assert "no tube" in str(none)
    assert none.components.tolist() == [inf]


@pytest.mark.parametrize("seed", range(5))
def test_channels_coupled_by_feedback_stay_in_their_tubes(seed):
    dynamics, decays, rng = loop(seed)
    D = 0.02 * rng.normal(size=(2, 5, 5))
    bounds = rng.uniform(0.05, 0.3, 5)
    start = [0.3, 0.0]
    found = tubes(decays, Disturbance(bounds, feedback=D), start)
    assert all(f.radius < inf and f.status is Status.UNDECIDED for f in found)
    plain = tubes(decays, bounds, start)
    assert all(f.ultimate > p.ultimate for f, p in zip(found, plain, strict=True))

    z = np.zeros(10)
    first = decays[0].channel.index
    begin = rng.normal(size=4)
    begin *= start[0] / np.sqrt(begin @ decays[0].P @ begin)
    z[first], z[5 + first] = begin[:2], begin[2:]
    turn = rng.choice([-1.0, 1.0], size=(20, 5))

    def slope(t, z):
        error, feedback = dynamics.rate(z[:5], z[5:])
        k = int(t / 0.5)
        push = D[k % 2] @ feedback + turn[min(k, 19)] * bounds
        return np.concatenate([error, feedback + push])

    run = solve_ivp(slope, (0, 10), z, rtol=1e-7, atol=1e-9, max_step=0.05)
    for f in found:
        index = f.channel.index
        for state in run.y.T:
            assert f.norm(state[:5][index], state[5:][index]) <= f.radius + 1e-7


def test_feedback_gain_on_a_pose_is_above_that_of_small_errors():
    decay = reference()
    root = np.linalg.inv(np.linalg.cholesky(decay.P)).T
    own = decay.channel
    small = np.linalg.norm(np.hstack([own.stiffness, -own.damping]) @ root, 2)
    rng = np.random.default_rng(2)
    x = rng.normal(size=(200, 6))
    x[:, :3] *= 0.5 / np.linalg.norm(x[:, :3], axis=1, keepdims=True)
    x[:, 3:] *= radians(60) / np.linalg.norm(x[:, 3:], axis=1, keepdims=True)
    sampled = max(
        np.linalg.norm(np.hstack([B.T @ own.stiffness, -own.damping]) @ root, 2)
        for B in error_maps(x)
    )
    assert small < decay.feedback_gain
    assert decay.feedback_gain == pytest.approx(sampled, rel=0.02)


def test_text_names_coordinates_and_units():
    text = str(tube(reference(), 0.3))
    assert "PROVED" in text
    assert "deg" in text
    assert " m" in text
    assert text.count("rad") >= 3


def test_wrong_input_is_refused():
    own, P = pose("B"), REFERENCE
    with pytest.raises(ShapeError):
        Decay(own, np.eye(6), 1.0, 1.0, 1.0)
    with pytest.raises(NonFiniteError):
        Decay(own, P * np.nan, 1.0, 1.0, 1.0)
    with pytest.raises(OutputError, match="positive definite"):
        Decay(own, -P, 1.0, 1.0, 1.0)
    crooked = P.copy()
    crooked[0, 1] = 1e-3
    with pytest.raises(OutputError, match="symmetric"):
        Decay(own, crooked, 1.0, 1.0, 1.0)
    for rate in (0.0, -1.0, inf, np.nan):
        with pytest.raises(OutputError, match="rate"):
            Decay(own, P, rate, 1.0, 1.0)
    for angle in (None, 0.0, 3.2, np.nan):
        with pytest.raises(OutputError, match="angle"):
            Decay(own, P, 1.0, angle, 1.0)
    for distance in (None, 0.0, inf, np.nan):
        with pytest.raises(OutputError, match="distance"):
            Decay(own, P, 1.0, 1.0, distance)
    decay = reference()
    for bad in (-0.1, np.nan, inf, 1.1e18, 1e300):
        with pytest.raises(OutputError):
            tube(decay, bad)
        with pytest.raises(OutputError):
            tube(decay, 0.1, bad)
    with pytest.raises(ShapeError):
        tube(decay, np.ones(5))
    with pytest.raises(ShapeError):
        tube(decay, Disturbance(np.ones(5)))
    tube(decay, 1e18, 1e18)
    for bad in ([-1.0], [1.1e18], [1e300]):
        with pytest.raises(OutputError):
            Disturbance(bad)
    with pytest.raises(OutputError, match="feedback"):
        Disturbance([1.0], feedback=[[[1e300]]])
    with pytest.raises(NonFiniteError):
        Disturbance([np.nan])
    with pytest.raises(ShapeError):
        Disturbance([1.0], feedback=np.eye(2))
    with pytest.raises(ShapeError):
        Disturbance([1.0]) + Disturbance([1.0, 2.0])
    _, decays, _ = loop(0)
    with pytest.raises(ShapeError):
        tubes(decays[:1], np.ones(5))
    with pytest.raises(ShapeError):
        tubes(decays, np.ones(5), [1.0])
