"""Margins of the linear loop where a formula gives them, and the sides of their thresholds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from concur.control import ErrorDynamics, loop_margins, loop_response
from concur.control._loop import LoopMargins, _gain_margin
from concur.outputs.groups import Product, Vector


def plane(stiffness: float, damping: float) -> ErrorDynamics:
    """Two coordinates without coupling."""
    return ErrorDynamics(
        Product([Vector("xy")]), stiffness * np.eye(2), damping * np.eye(2), np.eye(2)
    )


@pytest.mark.parametrize(("kp", "kd"), [(7.0, 1.3), (7.3, 2.9), (0.41, 0.3)])
def test_disk_margin_is_that_of_the_formula(kp: float, kd: float) -> None:
    # |2 S - 1|^2 = 1 + 4 kp / ((kp - w^2)^2 / w^2 + kd^2), largest at w^2 = kp.
    margins = loop_margins(plane(kp, kd))
    assert margins.disk_margin == pytest.approx(2.0 / math.sqrt(1.0 + 4.0 * kp / kd**2), rel=1e-8)


@pytest.mark.parametrize(("disk", "gain"), [(0.5, 2.5 / 1.5), (1.0, 3.0), (2.0, math.inf)])
def test_gain_and_phase_of_a_disk(disk: float, gain: float) -> None:
    one = np.ones(1)
    margins = LoopMargins(("x",), one, one, one, one, 1.0, disk, 1.0)
    assert margins.disk_gain_margin == pytest.approx(gain)
    assert margins.disk_phase_margin == pytest.approx(math.degrees(2.0 * math.atan(disk / 2.0)))


@pytest.mark.parametrize(
    ("crossing", "margin"),
    [(-0.5, 2.0), (-0.99, 1.0 / 0.99), (-1.01, math.inf), (-1.9, math.inf), (0.5, math.inf)],
)
def test_gain_may_grow_to_crossings_between_minus_one_and_zero(
    crossing: float, margin: float
) -> None:
    def channel(frequency: object) -> np.ndarray:
        height = np.log(np.atleast_1d(frequency) / 3.1)  # changes its sign once
        return (crossing + 1j * height)[:, None]

    assert _gain_margin(channel, np.logspace(-1.0, 2.0, 301)) == pytest.approx(margin)


@pytest.mark.parametrize(("kp", "kd"), [(4.0, 2.8), (9.0, 12.0)])
def test_response_begins_at_zero_and_settles_within_two_percent_at_its_time(
    kp: float, kd: float
) -> None:
    response = loop_response(plane(kp, kd))
    assert response.step[0] == pytest.approx(0.0, abs=1e-15)
    time = response.settling_time[0]
    poles = np.roots([1.0, kd, kp])
    a, b = poles
    error = (b * np.exp(a * time) - a * np.exp(b * time)) / (b - a)  # from rest
    assert abs(error) == pytest.approx(0.02, rel=1e-6)
