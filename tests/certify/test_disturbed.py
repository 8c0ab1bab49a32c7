"""Disturbed motions stay in their tubes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.certify import disturbed_motions
from concur.certify._decay import Decay
from concur.certify._robust import tube
from concur.errors import OutputError, ShapeError
from concur.outputs.groups import Rotation, Vector
from tests.certify._channel import channel
from tests.certify.test_robust import form, reference


@pytest.fixture(scope="module")
def found():
    return tube(reference(), 0.3, 0.3)


@pytest.fixture(scope="module")
def motions(found):
    return disturbed_motions(found, 0.3)


def test_motions_fill_a_good_part_of_the_tube_and_stay_in_it(found, motions):
    bounds = np.array([found.envelope(t) for t in motions.t])
    assert motions.norms.shape == (16, motions.t.size)
    assert_allclose(motions.norms[:, 0], 0.3)
    assert (motions.norms <= bounds + 1e-7).all()
    # A bound two thirds as large would be broken after a long time.
    assert motions.norms[:, -200:].max() > 0.65 * found.ultimate
    assert motions.angles.max() < found.angle
    assert motions.distances.max() < found.distance


def test_a_constant_push_comes_to_rest_where_the_springs_hold_it():
    """x'' = -4 x - 4 x' + d, pushed along the growth of |z|_P: at last d = 4 x all the time."""
    own = channel(Vector("x"), 4.0, 4.0)
    decay = Decay(own, form([2.0], [0.6], [0.4])[::3, ::3], 0.5)
    (norms, x) = (
        getattr(disturbed_motions(tube(decay, 0.2), 0.2, duration=12.0, count=1), name)[0]
        for name in ("norms", "distances")
    )
    assert x[-1] == pytest.approx(0.05, rel=1e-6)
    assert norms[-1] == pytest.approx(np.sqrt(2.0) * 0.05, rel=1e-6)


def test_components_are_bounded_one_by_one():
    own = channel(Vector("xy"), 4.0, 4.0)
    decay = Decay(own, np.kron([[2.0, -0.4], [-0.4, 0.6]], np.eye(2)), 0.5)
    found = tube(decay, [0.0, 0.2])
    moved = disturbed_motions(found, [0.0, 0.2], duration=10.0)
    assert moved.angles is None
    # Only y is disturbed, at most to twice its static deflection.
    assert 0.045 < moved.distances.max() < 0.1
    assert (moved.norms <= found.radius).all()


def test_what_has_no_position_has_no_distance():
    own = channel(Rotation(), 4.0, 2.8)
    decay = Decay(own, form([4.0], [1.0], [1.4]), 1.0, 1.0)
    moved = disturbed_motions(tube(decay, 0.1), 0.1, duration=2.0, count=3)
    assert moved.distances is None
    assert moved.angles.shape == (3, moved.t.size)


def test_what_makes_no_sense_is_refused(found):
    with pytest.raises(OutputError, match="duration"):
        disturbed_motions(found, 0.3, duration=0.0)
    with pytest.raises(ShapeError):
        disturbed_motions(found, [0.1, 0.2])
