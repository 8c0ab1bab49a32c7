"""Figures of the linearised loop, drawn from responses in closed form."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import show
from tests.show.fake import line

NAMES = ("base[x]", "base[y]", "hand[x]", "hand[y]", "hand[z]")


def critical(*rates, names=NAMES):
    """Response of loops (2 a s + a^2) / s^2, one for each rate a: a double pole at -a."""
    a = np.array(rates)
    t = np.linspace(0.0, 8.0 / a.min(), 401)
    tau = t[:, None] * a
    frequency = np.logspace(-3, 3, 601) * np.sqrt(a.min() * a.max())
    s = 1j * frequency[:, None]
    crossover = a * np.sqrt(2 + np.sqrt(5.0))
    phase = np.arctan(2 * crossover / a)
    margins = SimpleNamespace(
        crossover=crossover, phase_margin=np.degrees(phase), delay_margin=phase / crossover,
        disk_margin=np.sqrt(2.0),
    )  # fmt: skip
    return SimpleNamespace(
        names=names, t=t, step=1.0 - (1.0 + tau) * np.exp(-tau), settling_time=5.8339217 / a,
        band=0.02, frequency=frequency, loop=(2 * a * s + a**2) / s**2, margins=margins,
    )  # fmt: skip


ROVER = critical(2.0, 2.0, 3.0, 3.0, 3.0)


def dots(axes, color):
    marks = [this for this in axes.get_lines() if this.get_marker() == "o"]
    return [(*this.get_xdata(), *this.get_ydata()) for this in marks if this.get_color() == color]


def test_step_shows_each_response_once_and_where_it_settles():
    (axes,) = show.step_figure(ROVER).axes
    for label, column in (("base[x, y]", 0), ("hand[x, y, z]", 2)):
        settled = ROVER.settling_time[column]
        curve = line(axes, f"{label}: settles in {settled:.3g} s")
        assert_allclose(curve.get_ydata(), ROVER.step[:, column])
        assert_allclose(dots(axes, curve.get_color()), [(settled, 0.98)], atol=1e-3)
    assert sum(len(this.get_xdata()) == len(ROVER.t) for this in axes.get_lines()) == 2
    assert_allclose(line(axes, "within 2 %").get_ydata(), 0.98)
    (shared,) = show.step_figure(critical(*[2.0] * 5)).axes
    assert line(shared, "base[x, y], hand[x, y, z]: settles in")


def test_step_omits_what_settles_later_and_shows_what_goes_down_first():
    loop = critical(2.0, 3.0, names=("slow", "fast"))
    loop.step[:, 1] -= np.sin(loop.t) * np.exp(-loop.t)
    shown = loop.t <= 2.5
    loop.t, loop.step = loop.t[shown], loop.step[shown]
    (axes,) = show.step_figure(loop).axes
    assert not dots(axes, line(axes, "slow").get_color())
    assert dots(axes, line(axes, "fast").get_color())
    assert axes.get_ylim()[0] < loop.step.min() < 0.0


def test_margins_are_marked_on_gain_and_phase():
    gain, phase, _ = show.margin_figure(ROVER).axes
    margins = ROVER.margins
    for label, column in (("base[x, y]", 0), ("hand[x, y, z]", 2)):
        crossover, lost = margins.crossover[column], margins.phase_margin[column]
        curve = line(gain, f"{label}: crossover {crossover:.3g} rad/s")
        at = np.interp(np.log(crossover), np.log(curve.get_xdata()), curve.get_ydata())
        assert at == pytest.approx(0.0, abs=0.01)
        assert_allclose(dots(gain, curve.get_color()), [(crossover, 0.0)])
        delay = margins.delay_margin[column]
        curve = line(phase, f"{label}: margin {lost:.1f}°, delay {delay:.3g} s")
        assert_allclose(dots(phase, curve.get_color()), [(crossover, lost - 180.0)], atol=0.01)
        # The phase begins at that of the double integrator.
        assert -180.0 <= curve.get_ydata().min() < -170.0
        assert -91.5 < curve.get_ydata().max() <= -90.0
    assert gain.get_xscale() == "log"
    assert phase.get_ylim()[0] < -180.0


def test_curves_of_the_plane_stay_out_of_the_disk_and_touch_it():
    *_, plane = show.margin_figure(ROVER).axes
    (disk,) = plane.patches
    corners = disk.get_xy()
    center = (corners.max(axis=0) + corners.min(axis=0)) / 2
    radius = np.ptp(corners[:, 0]) / 2
    # A disk margin of sqrt(2) is a factor of gain, up or down, of 3 + 2 sqrt(2).
    ends = [-(3 + 2 * np.sqrt(2)), -(3 - 2 * np.sqrt(2))]
    assert_allclose([center[0] - radius, center[0] + radius], ends, rtol=1e-6)
    curves = [one for one in plane.get_lines() if len(one.get_xdata()) == ROVER.frequency.size]
    for curve in curves:
        distance = np.hypot(curve.get_xdata() - center[0], curve.get_ydata() - center[1])
        assert distance.min() >= radius * (1 - 1e-9)
        assert distance.min() == pytest.approx(radius, rel=1e-3)
    assert plane.get_aspect() == 1.0
    # Curves that coincide both show.
    first, second = (curve.get_linewidth() for curve in curves)
    assert first > second
    ROVER.margins.disk_margin, kept = 2.0, ROVER.margins.disk_margin  # every gain is tolerated
    *_, plane = show.margin_figure(ROVER).axes
    ROVER.margins.disk_margin = kept
    assert not plane.patches
