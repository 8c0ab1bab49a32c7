"""Poses with gains that depend on the direction: mirror images, boxes and certificates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_continuous_lyapunov

from concur.certify import examine
from concur.certify._certify import certify
from concur.certify._inequality import Claim, inequality, turned_components
from concur.certify._prove import prove
from concur.certify._reduction import reduce_domain
from concur.certify._status import Status
from concur.outputs.groups import Pose
from tests.certify._channel import channel, random_error, slack
from tests.certify._motions import error_maps, motions

DIAGONAL = channel(Pose(), [4.0, 4.0, 5.0, 4.0, 4.5, 5.0], [3.0, 3.0, 3.5, 3.0, 3.2, 3.5])
ANGLE, DISTANCE = np.radians(3.0), 0.03


def block(rng):
    """Positive definite blocks of three, alone."""
    gain = np.zeros((6, 6))
    for part in (slice(0, 3), slice(3, 6)):
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        own = turn @ np.diag(rng.uniform(3.0, 4.0, 3)) @ turn.T
        gain[part, part] = (own + own.T) / 2
    return gain


def form(owner, share=0.4):
    """A Lyapunov function that decays at small errors."""
    n = owner.size
    pull = np.linalg.solve(owner.inertia, np.hstack([owner.stiffness, -owner.damping]))
    F = np.vstack([np.hstack([np.zeros((n, n)), -np.eye(n)]), pull])
    P = solve_continuous_lyapunov((F + share * owner.true_rate * np.eye(2 * n)).T, -np.eye(2 * n))
    return (P + P.T) / 2


def matrix(owner, P, x):
    gains = (
        owner.stiffness,
        np.linalg.inv(owner.inertia),
        np.linalg.solve(owner.inertia, owner.damping),
    )
    none = np.zeros((12, 6))
    claim = Claim(P, 0.3, none, none)
    B = error_maps(owner.factors, x[None])[0]
    return inequality(gains, turned_components(owner), B, claim, 0.3)


def reduction(owner, P):
    none = np.zeros((12, 6))
    return reduce_domain(owner, Claim(P, 0.1, none, none), 1.0, 2.0)


def test_images_have_the_spectrum_of_what_stands_for_them():
    P, rng = form(DIAGONAL), np.random.default_rng(0)
    P = P * np.kron(np.ones((2, 2)), np.eye(6))
    for _ in range(10):
        x = rng.normal(size=6)
        first = np.linalg.eigvalsh(matrix(DIAGONAL, P, x))
        for Q in (np.diag([-1.0, 1, 1]), np.diag([1.0, -1, -1]), -np.eye(3)):
            image = np.concatenate([Q @ x[:3], np.linalg.det(Q) * Q @ x[3:]])
            np.testing.assert_allclose(
                np.linalg.eigvalsh(matrix(DIAGONAL, P, image)), first, atol=1e-12
            )  # fmt: skip
        # Another change of signs is none of them.
        other = np.linalg.eigvalsh(matrix(DIAGONAL, P, x * [1, 1, 1, -1, 1, 1]))
        assert np.abs(other - first).max() > 1e-6


def test_what_is_left_out_is_an_image():
    whole = DIAGONAL
    P = form(whole) * np.kron(np.ones((2, 2)), np.eye(6))
    found = reduction(whole, P)
    assert found.name == "all"
    assert len(found.offsets) == 4
    np.testing.assert_array_equal(found.lower, [0.0, 0.0, -1.0])
    covered = {
        (*np.sign(signs * phi),)
        for signs in found.images
        for phi in ([1, 1, 1], [1, 1, -1])
    }  # fmt: skip
    assert len(covered) == 8
    corners = {(*np.sign(sign * corner[:3]),) for sign in (1, -1) for corner in found.offsets}
    assert len(corners) == 8
    rng = np.random.default_rng(1)
    turned = channel(Pose(), block(rng), block(rng), block(rng))
    found = reduction(turned, form(turned) * np.kron(np.ones((2, 2)), turned.inertia != 0))
    assert len(found.offsets) == 4
    np.testing.assert_array_equal(found.lower, [-1.0] * 3)
    assert len(found.images) == 1
    joined = form(DIAGONAL)
    joined[0, 3] = joined[3, 0] = 1e-9
    found = reduction(DIAGONAL, joined)
    assert len(found.offsets) == 8
    np.testing.assert_array_equal(found.lower, [-1.0] * 3)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("kind", ["diagonal", "blocks"])
def test_small_errors_are_proved_in_boxes_that_cover_the_domain(kind):
    rng = np.random.default_rng(2)
    owner = DIAGONAL if kind == "diagonal" else channel(Pose(), block(rng), block(rng))
    P, alpha = form(owner), 0.3 * owner.true_rate
    pattern = np.eye(6) if kind == "diagonal" else np.kron(np.eye(2), np.ones((3, 3)))
    P = P * np.kron(np.ones((2, 2)), pattern)
    found = prove(owner, P, alpha, ANGLE, DISTANCE, budget=60)
    assert found.status is Status.PROVED
    np.testing.assert_array_equal(found.lower, [-ANGLE] * 3)
    low, high = found.boxes[:, 0], found.boxes[:, 1]
    for _ in range(200):
        phi = rng.uniform(-ANGLE, ANGLE, 3)
        assert np.linalg.norm(phi) > ANGLE or ((low <= phi) & (phi <= high)).all(1).any()
    for _ in range(200):
        x = random_error(owner, rng, ANGLE, DISTANCE)
        assert slack(owner, P, alpha, x, rng.normal(size=6) * rng.choice([0.05, 1.0])) > 0.0


def test_too_fast_a_rate_is_refuted():
    P = form(DIAGONAL) * np.kron(np.ones((2, 2)), np.eye(6))
    found = prove(DIAGONAL, P, 1.01 * DIAGONAL.true_rate, ANGLE, DISTANCE, budget=60)
    assert found.status is Status.REFUTED


@pytest.mark.slow
def test_certificates_of_poses_with_diagonal_gains(tmp_path):
    certificate = certify(DIAGONAL.dynamics, ANGLE, DISTANCE)
    assert certificate.status is Status.PROVED
    assert certificate.rate > 0.6 * certificate.true_rate
    certificate.save(tmp_path / "proof.json")
    finding = examine(tmp_path / "proof.json")
    assert finding.status is Status.PROVED, finding.reason
    rng = np.random.default_rng(5)
    x, ve = rng.normal(size=(2, 200, 6)) * [[[0.02]], [[0.03]]]
    level = (np.einsum("ki,ij,kj->k", x, DIAGONAL.stiffness, x) + (ve**2).sum(1)) / 2
    scale = np.sqrt(0.999 * certificate.parts[0].level / level)[:, None]
    x, ve = scale * x, scale * ve
    times = np.linspace(0.0, 3.0, 31)
    z = motions(certificate.dynamics, x, ve, times)
    P = certificate.parts[0].P
    norms = np.sqrt(np.einsum("tki,ij,tkj->tk", z, P, z))
    held = norms * np.exp(certificate.rate * times)[:, None]
    assert (held[1:] <= held[:-1] * (1 + 1e-6)).all()
