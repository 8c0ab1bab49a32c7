"""Search: the limits of the reference table, and Lyapunov functions that decay as claimed."""

import numpy as np
import pytest

from concur.certify import _problem
from concur.certify._search import search
from concur.errors import ConcurError, OutputError
from concur.outputs.groups import Angle, PlanarPose, Pose, Product, Rotation, Vector
from tests.certify._channel import channel

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


@pytest.mark.parametrize("name", EASY)
def test_linear_and_isotropic_rotational_channels_get_nearly_their_true_rate(name):
    found = search(CHANNELS[name], 3.1)
    assert found.alpha == pytest.approx(0.995 * CHANNELS[name].true_rate)


def test_nothing_is_found_where_there_is_nothing_to_find():
    assert search(channel(Pose(), 4.0, -2.8), 1.0, 1.0) is None
    assert search(channel(Rotation(), -4.0, 2.8), 1.0) is None


def test_problems_that_would_take_hours_are_left_alone():
    coupled = np.eye(6) * 4.0 + 0.1
    assert search(channel(Pose(), coupled), 1.0, 1.0) is None
    assert search(channel(Product([PlanarPose(), PlanarPose()]), coupled), 1.0, 1.0) is None
    assert search(channel(Product([Rotation(), Rotation()]), coupled), 1.0) is None


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
