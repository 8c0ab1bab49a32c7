"""Figures of certificates, tubes and proofs: bounds lie over motions, and nothing claims more."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.certify import Status, disturbed_motions, tube
from concur.certify._decay import Decay
from concur.outputs.groups import Product, Rotation, Vector
from concur.show import bounds_figure, decay_figure, proof_figure, rate_figure, tube_figure
from tests.certify._channel import channel
from tests.certify.test_robust import reference
from tests.show.fake import line

T = np.linspace(0.0, 5.0, 51)


def certificate(degrees, rate, status="PROVED"):
    return SimpleNamespace(
        angle=np.radians(degrees), rate=rate, true_rate=2.0, status=SimpleNamespace(name=status)
    )


def labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize("own", [None, 3.0 * np.exp(-1.7 * T), np.zeros_like(T)])
def test_bound_lies_over_motions_of_any_size(own):
    norms = np.array([1e-3 * np.exp(-1.5 * T), 40.0 * np.exp(-1.9 * T)])
    motions = SimpleNamespace(t=T, norms=norms, own=own)
    (axes,) = decay_figure(certificate(90, 1.2), motions).axes
    assert_allclose(line(axes, "certified: exp(-1.2 t)").get_ydata(), np.exp(-1.2 * T))
    assert_allclose(line(axes, "linearized rate: exp(-2 t)").get_ydata(), np.exp(-2 * T))
    drawn = [this.get_ydata() for this in axes.get_lines() if this.get_alpha() is not None]
    assert_allclose(drawn, [np.exp(-1.5 * T), np.exp(-1.9 * T)])
    assert "2 random starts in the region" in labels(axes)
    assert axes.get_yscale() == "log"
    if own is not None and own[0]:
        assert_allclose(line(axes, "the task's start").get_ydata(), np.exp(-1.7 * T))
    else:
        assert "the task's start" not in labels(axes)


def test_rates_keep_proved_and_unproved_apart():
    tight = [certificate(30, 1.8), certificate(90, 1.2), certificate(179, 0.0, "UNDECIDED")]
    thesis = [certificate(30, 0.3, "UNDECIDED")]
    (axes,) = rate_figure({"tight": tight, "thesis": thesis}, tight[1]).axes
    proved = line(axes, "tight, proved")
    assert_allclose(proved.get_xdata(), [30, 90])
    assert_allclose(proved.get_ydata(), [1.8, 1.2])
    # A proof up to 90 degrees holds below: the line must not claim more in between.
    assert proved.get_drawstyle() == "steps-pre"
    for label, point in (("tight, not proved", (179, 0.0)), ("thesis, not proved", (30, 0.3))):
        hollow = line(axes, label)
        assert_allclose(np.ravel(hollow.get_data()), point)
        assert (hollow.get_linestyle(), hollow.get_markerfacecolor()) == ("None", "white")
    assert_allclose(np.ravel(line(axes, "requested: 90 deg").get_data()), [90, 1.2])
    assert_allclose(line(axes, "linearized rate, 2 1/s").get_ydata(), [2, 2])


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("status", "said"), [(Status.PROVED, "proved"), (Status.UNDECIDED, "not")])
def test_a_tube_lies_over_motions_and_says_whether_it_is_proved(status, said):
    found = tube(reference(status), 0.3, 0.3)
    motions = disturbed_motions(found, 0.3)
    norm, angle, distance = tube_figure(found, motions).axes
    bounds = np.array([found.envelope(t) for t in motions.t])
    assert_allclose(line(norm, f"bound, {said}").get_ydata(), bounds)
    assert f"limit ≤ {found.limit:.3g} (domain)" in labels(norm)[-1]
    bound = line(angle, "bound").get_ydata()
    assert_allclose(bound, np.degrees(found.angle) * bounds / found.radius)
    assert_allclose(line(distance, "bound").get_ydata(), found.distance * bounds / found.radius)
    drawn = [line.get_ydata() for line in angle.get_lines() if line.get_alpha() is not None]
    assert_allclose(drawn, np.degrees(motions.angles))
    assert [axes.get_ylabel()[-5:] for axes in (angle, distance)] == ["[deg]", "e [m]"]


def test_tubes_of_products_have_angles_and_distances():
    kp = 4.0 * np.eye(4)
    kp[0, 1] = kp[1, 0] = 0.1
    own = channel(Product([Vector("x"), Rotation()]), kp, 3.0)
    P = np.kron([[4.0, -1.0], [-1.0, 1.0]], np.eye(4))
    found = tube(Decay(own, P, 0.5, 1.0, 1.0), 0.05)
    assert len(tube_figure(found, disturbed_motions(found, 0.05, count=4)).axes) == 3


def bound(name, profile, limit, kind="torque", sign=1.0):
    quantity = SimpleNamespace(kind=kind, name=name, unit="N m", key=(kind, name), sign=sign)
    return SimpleNamespace(
        quantity=quantity, kind=kind, name=name, profile=np.array(profile), limit=limit,
        value=max(profile), times=np.arange(len(profile), dtype=float),
    )  # fmt: skip


@pytest.fixture
def proof():
    bounds = [bound("near", [1.0, 2.0], 2.5), bound("far", [1.0, 1.0], 50.0)]
    return SimpleNamespace(
        base="heading", bounds=bounds, x=np.array([[0.1, np.inf]]), ve=np.array([[0.2, 0.3]]),
        wall=np.array([0.3, 0.4]), shares=lambda b: b.profile / b.limit,
    )  # fmt: skip


def test_a_proof_is_drawn_in_steps_with_gaps_and_the_nearest_bound_first(proof):
    place, wall, shares = proof_figure(proof, ["hand"], 2.0).axes
    assert_allclose(line(place, "hand").get_ydata(), [100.0, np.nan, np.nan])
    assert_allclose(line(wall, "heading").get_ydata(), [300.0, 400.0, 400.0])
    assert labels(shares) == ["torque near", "torque far", "limit"]
    assert_allclose(line(shares, "torque near").get_ydata(), [0.4, 0.8, 0.8])


@pytest.mark.parametrize("worlds", [0, 3])
def test_each_bound_is_drawn_beside_its_limit_and_the_sampled_worlds(proof, worlds):
    sampled = None
    if worlds:
        runs = np.linspace(0.1, 0.9, worlds)[:, None, None] * np.ones((1, 2, 5))
        made = [one.quantity for one in proof.bounds]
        times = np.linspace(0.0, 2.0, 5)
        sampled = SimpleNamespace(quantities=made, times=times, runs=runs, envelope=runs.max(0))
    near, far = bounds_figure(proof, 2.0, sampled).axes[:2]
    (limit,) = (line for line in near.get_lines() if line.get_linestyle() == "--")
    assert_allclose(limit.get_ydata(), 2.5)
    assert far.get_legend().get_title().get_text() == "torque far\nlimit 50"
    assert labels(near) == [f"{worlds} worlds", "worst"] * bool(worlds) + ["bound"]
    assert_allclose(near.get_lines()[-2].get_ydata(), [1.0, 2.0, 2.0])
    samples = [line for line in far.get_lines() if line.get_alpha() is not None]
    assert len(samples) == worlds
