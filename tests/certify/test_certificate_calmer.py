"""Transient bound against rate: slower certificates with smaller transient bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from concur.certify._certify import certify
from concur.certify._channels import split
from concur.certify._search import search
from concur.certify._status import Status
from concur.checker import recheck
from concur.control import ErrorDynamics
from concur.errors import OutputError
from concur.outputs.groups import Pose, Product, Rotation, Vector
from concur.rounding import rounded_up
from tests.certify._motions import motions
from tests.certify.test_soundness import certify_law, draw


def critical(group, kp=4.0):
    one = np.eye(group.dim)
    return ErrorDynamics(group, kp * one, 2.0 * np.sqrt(kp) * one, one)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("group", [Vector("xyz"), Rotation(), Product([Vector("xyz"), Rotation()])])
def test_critically_damped_loops_get_a_bound_that_is_of_use(group, tmp_path):
    certificate = certify(critical(group), 2.5)
    assert certificate.status is Status.PROVED
    assert certificate.rate >= 0.99 * certificate.true_rate
    calmer = certificate.low_transient
    assert calmer.status is Status.PROVED
    assert calmer.rate >= 0.89 * certificate.true_rate
    assert calmer.transient_bound < 15.0 < 400.0 < certificate.transient_bound
    assert rounded_up(calmer.transient_bound, 4) in str(certificate)
    # It is a separate certificate of the same region.
    calmer.save(tmp_path / "proof.json")
    assert recheck(tmp_path / "proof.json") is Status.PROVED
    x = np.full(group.dim, 0.3)
    assert certificate.contains(x, 0 * x) is calmer.contains(x, 0 * x) is True


def test_only_channels_with_a_large_overshoot_are_made_calmer():
    group = Product([Vector("x"), Vector("y")])
    kp, kd = np.diag([4.0, 9.0]), np.diag([4.0, 3.0])
    certificate = certify(ErrorDynamics(group, kp, kd, np.eye(2)), 1.0)
    first, second = certificate.parts
    assert first.transient_bound > 50.0 > second.transient_bound
    assert certificate.low_transient.parts[1] is second
    assert certificate.low_transient.parts[0].transient_bound < 15.0


def test_loops_with_a_small_overshoot_have_no_other():
    certificate = certify(ErrorDynamics(Rotation(), 4 * np.eye(3), 2.8 * np.eye(3), np.eye(3)), 1.0)
    assert certificate.transient_bound < 4.0
    assert certificate.low_transient is None
    assert certificate.bounds == ((certificate.rate, certificate.transient_bound),)


def test_the_bound_is_the_least_of_both_and_lies_over_the_motion():
    """The exact growth of a linear loop is the norm of its matrix exponential."""
    dynamics = critical(Vector("x"))
    certificate = certify(dynamics, 1.0)
    (fast, large), (slow, small) = certificate.bounds
    assert fast > slow
    assert large > small
    F = np.array([[0.0, -1.0], [4.0, -4.0]])
    for time in np.linspace(0.0, 60.0, 61):
        bound = certificate.bound(time)
        growth = np.linalg.norm(expm(F * time), 2)
        assert growth <= bound * (1 + 1e-9)
        alone = [large * np.exp(-fast * time), small * np.exp(-slow * time)]
        assert bound == pytest.approx(min(alone), rel=1e-12)
    assert certificate.bound(0.0) == small
    # After a long time the faster one is the smaller one.
    assert certificate.bound(60.0) == pytest.approx(large * np.exp(-fast * 60.0))


def test_the_bound_lies_over_motions_of_rotations():
    certificate = certify(critical(Rotation()), 2.0)
    rng = np.random.default_rng(3)
    x, ve = rng.normal(size=(2, 300, 3))
    level = 2.0 * (x**2).sum(1) + (ve**2).sum(1) / 2
    scale = np.sqrt(0.999 * certificate.parts[0].level / level)[:, None]
    times = np.linspace(0.0, 4.0, 41)
    sizes = np.linalg.norm(
        motions(certificate.dynamics, scale * x, scale * ve, times), axis=2
    )  # fmt: skip
    bounds = np.array([certificate.bound(t) for t in times])
    share = sizes / sizes[0] / bounds[:, None]
    assert share.max() <= 1.0 + 1e-6
    # A fifth of the bound is reached, so that a bound a fifth as large would be found out.
    assert share.max() > 0.1


def test_a_share_of_the_rate_buys_a_smaller_overshoot():
    dynamics = critical(Rotation())
    rates, overshoots = [], []
    for share in (1.0, 0.9, 0.7, 0.5):
        certificate = certify(dynamics, 2.0, rate_fraction=share)
        assert certificate.status is Status.PROVED
        rates.append(certificate.rate)
        overshoots.append(certificate.transient_bound)
        assert (certificate.low_transient is None) == (share < 1.0)
    np.testing.assert_allclose(rates, 0.995 * 2.0 * np.array([1.0, 0.9, 0.7, 0.5]))
    assert overshoots == sorted(overshoots, reverse=True)
    assert overshoots[-1] < 0.5 * overshoots[1]


@pytest.mark.parametrize("share", [0.0, -0.5, 1.1, float("nan")])
def test_a_share_out_of_its_range_is_refused(share):
    (owner,) = split(critical(Rotation()))
    with pytest.raises(OutputError, match="rate_fraction"):
        search(owner, 1.0, rate_fraction=share)


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_a_certificate_wants_a_share_that_makes_sense(share):
    with pytest.raises(OutputError, match="rate_fraction"):
        certify(critical(Rotation()), 1.0, rate_fraction=share)


@pytest.mark.extended
def test_a_proof_after_failed_attempts_tells_them_too(monkeypatch):
    """A first rate that is too high: the reason lists failed attempts after the proof."""
    from concur.certify import _certify

    monkeypatch.setattr(_certify, "_RATES", (1.2, 1.0))
    certificate = certify(critical(Pose()), 1.0, 0.5)
    (part,) = certificate.parts
    assert part.status is Status.PROVED
    assert part.reason.startswith("The matrix inequality holds")
    assert f"Not proved: {1.2 * part.rate:.4g} 1/s: The matrix inequality fails" in part.reason


@pytest.mark.extended
def test_a_solver_that_gives_up_at_the_limit_is_asked_for_less():
    """Gains with which the form of least condition is not found right at the fastest rate."""
    certificate = certify_law(draw("SE3 isotropic", 11))
    assert certificate.status is Status.PROVED
    assert certificate.rate > 0.9 * certificate.true_rate
