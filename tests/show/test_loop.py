"""Figures of the linearised loop, drawn from responses in closed form."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import show

NAMES = ("base[x]", "base[y]", "hand[x]", "hand[y]", "hand[z]")


def critical(rates: tuple[float, ...], names: tuple[str, ...] = NAMES) -> SimpleNamespace:
    """Response of loops (2 a s + a^2) / s^2, one for each rate a: a double pole at -a."""
    a = np.array(rates)
    t = np.linspace(0.0, 8.0 / a.min(), 401)
    tau = t[:, None] * a
    frequency = np.logspace(-3, 3, 601) * np.sqrt(a.min() * a.max())
    s = 1j * frequency[:, None]
    crossover = a * np.sqrt(2 + np.sqrt(5.0))
    phase = np.arctan(2 * crossover / a)
    return SimpleNamespace(
        names=names,
        t=t,
        step=1.0 - (1.0 + tau) * np.exp(-tau),
        settling_time=5.8339217 / a,
        band=0.02,
        frequency=frequency,
        loop=(2 * a * s + a**2) / s**2,
        margins=SimpleNamespace(
            crossover=crossover,
            phase_margin=np.degrees(phase),
            delay_margin=phase / crossover,
            disk_margin=np.sqrt(2.0),
        ),
    )


ROVER = critical((2.0, 2.0, 3.0, 3.0, 3.0))
FIGURES = {"step": show.step_figure, "margins": show.margin_figure}
LOOPS = {
    "rover": ROVER,
    "all apart": critical((1.0, 1.3, 2.0, 4.0, 9.0)),
    "one channel": critical((2.0,), ("hand[x]",)),
    "slow and fast": critical((1e-3, 50.0), ("slow[x]", "fast[x]")),
    "one name": critical((2.0, 2.0), ("turn", "0: x")),
}


def lines(axes, color=None):
    return [this for this in axes.get_lines() if color in (None, this.get_color())]


def line(axes, label):
    found = [this for this in axes.get_lines() if str(this.get_label()).startswith(label)]
    assert len(found) == 1, [this.get_label() for this in axes.get_lines()]
    return found[0]


def dots(axes, color):
    return [this for this in lines(axes, color) if this.get_marker() == "o"]


@pytest.mark.extended
@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
@pytest.mark.parametrize("name", FIGURES)
def test_legends_are_inside_the_picture(name, loop):
    figure = FIGURES[name](loop)
    figure.canvas.draw()
    for axes in figure.axes:
        box = axes.get_legend().get_window_extent()
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        assert re.search(r"\[(1|dB|deg)\]$", axes.get_ylabel()), axes.get_ylabel()


def test_step_shows_each_response_once_and_where_it_settles():
    (axes,) = show.step_figure(ROVER).axes
    for label, column in (("base[x, y]", 0), ("hand[x, y, z]", 2)):
        curve = line(axes, label)
        assert curve.get_label() == f"{label}: settles in {ROVER.settling_time[column]:.3g} s"
        assert_allclose(curve.get_xdata(), ROVER.t)
        assert_allclose(curve.get_ydata(), ROVER.step[:, column])
        (dot,) = dots(axes, curve.get_color())
        assert_allclose(dot.get_xdata(), [ROVER.settling_time[column]])
        assert_allclose(dot.get_ydata(), [0.98], atol=1e-3)
    assert len([this for this in lines(axes) if len(this.get_xdata()) == ROVER.t.size]) == 2
    band = [this.get_ydata() for this in lines(axes) if len(this.get_ydata()) == 2]
    assert [0.98, 0.98] in np.array(band).round(9).tolist()
    assert [1.02, 1.02] in np.array(band).round(9).tolist()
    assert "within 2 %" in [text.get_text() for text in axes.get_legend().get_texts()]


def test_step_leaves_out_what_settles_later():
    loop = critical((2.0, 2.0, 3.0, 3.0, 3.0))
    shown = loop.t <= 2.5
    loop.t, loop.step = loop.t[shown], loop.step[shown]
    (axes,) = show.step_figure(loop).axes
    assert not dots(axes, line(axes, "base").get_color())
    assert dots(axes, line(axes, "hand").get_color())
    assert_allclose(axes.get_xlim(), (0.0, loop.t[-1]), atol=0.03)


def test_step_that_first_goes_down_stays_in_the_picture():
    loop = critical((2.0, 3.0), ("a", "b"))
    loop.step[:, 1] -= np.sin(loop.t) * np.exp(-loop.t)
    (axes,) = show.step_figure(loop).axes
    assert axes.get_ylim()[0] < loop.step.min() < 0.0


def test_margins_are_marked_on_gain_and_phase():
    gain, phase, _ = show.margin_figure(ROVER).axes
    margins = ROVER.margins
    for label, column in (("base[x, y]", 0), ("hand[x, y, z]", 2)):
        crossover = margins.crossover[column]
        curve = line(gain, label)
        assert f"crossover {crossover:.3g} rad/s" in curve.get_label()
        at = np.interp(np.log(crossover), np.log(curve.get_xdata()), curve.get_ydata())
        assert at == pytest.approx(0.0, abs=0.01)
        (dot,) = dots(gain, curve.get_color())
        assert_allclose([*dot.get_xdata(), *dot.get_ydata()], [crossover, 0.0])
        curve = line(phase, label)
        assert f"margin {margins.phase_margin[column]:.1f}°" in curve.get_label()
        assert f"delay {margins.delay_margin[column]:.3g} s" in curve.get_label()
        (dot,) = dots(phase, curve.get_color())
        assert dot.get_ydata()[0] == pytest.approx(margins.phase_margin[column] - 180, abs=0.01)
    assert gain.get_xscale() == "log"


def test_phase_begins_at_the_double_integrator():
    _, phase, _ = show.margin_figure(ROVER).axes
    angles = line(phase, "base").get_ydata()
    assert -180.0 <= angles.min() < -170.0
    assert -91.5 < angles.max() <= -90.0
    assert phase.get_ylim()[0] < -180.0


def test_curves_of_the_plane_stay_out_of_the_disk_and_touch_it():
    *_, plane = show.margin_figure(ROVER).axes
    (disk,) = plane.patches
    corners = disk.get_xy()
    center = (corners.max(axis=0) + corners.min(axis=0)) / 2
    radius = np.ptp(corners[:, 0]) / 2
    # A disk margin of sqrt(2) is a factor of gain, up or down, of 3 + 2 sqrt(2).
    assert_allclose(center[0] - radius, -(3 + 2 * np.sqrt(2)), rtol=1e-6)
    assert_allclose(center[0] + radius, -(3 - 2 * np.sqrt(2)), rtol=1e-6)
    curves = [this for this in lines(plane) if len(this.get_xdata()) == ROVER.frequency.size]
    assert len(curves) == 2
    for curve in curves:
        distance = np.hypot(curve.get_xdata() - center[0], curve.get_ydata() - center[1])
        assert distance.min() >= radius * (1 - 1e-9)
        assert distance.min() == pytest.approx(radius, rel=1e-3)
    assert plane.get_aspect() == 1.0


def test_no_disk_where_every_gain_is_borne():
    loop = critical((2.0,), ("a",))
    loop.margins.disk_margin = 2.0
    *_, plane = show.margin_figure(loop).axes
    assert not plane.patches


def test_curves_that_coincide_in_the_plane_both_show():
    *_, plane = show.margin_figure(ROVER).axes
    widths = [
        this.get_linewidth()
        for this in lines(plane)
        if len(this.get_xdata()) == ROVER.frequency.size
    ]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == len(widths)


def test_coordinates_of_different_outputs_may_share_a_curve():
    (axes,) = show.step_figure(critical((2.0,) * 5)).axes
    assert line(axes, "base[x, y], hand[x, y, z]: settles in")
