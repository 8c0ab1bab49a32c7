"""Figures of certificates, drawn from numbers in closed form."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.show.certificate import decay_figure, rate_figure

T = np.linspace(0.0, 5.0, 51)


def certificate(degrees, rate, status="PROVED"):
    return SimpleNamespace(
        angle=np.radians(degrees),
        rate=rate,
        true_rate=2.0,
        status=SimpleNamespace(name=status),
    )


def decay(own=None):
    """Norms of very different size that fall at 1.5 and 1.9 per second."""
    norms = np.array([1e-3 * np.exp(-1.5 * T), 40.0 * np.exp(-1.9 * T)])
    return SimpleNamespace(t=T, norms=norms, own=own)


def curve(axes, label):
    (found,) = (this for this in axes.get_lines() if str(this.get_label()).startswith(label))
    return found


def assert_readable(figure):
    figure.canvas.draw()
    (axes,) = figure.axes
    assert axes.get_title()
    assert re.search(r"\[(s|deg)\]$", axes.get_xlabel())
    assert re.search(r"\[(1|1/s)\]$", axes.get_ylabel())
    box = axes.get_legend().get_window_extent()
    frame = figure.bbox
    assert frame.x0 <= box.x0
    assert box.x1 <= frame.x1
    assert frame.y0 <= box.y0
    assert box.y1 <= frame.y1
    return axes


def test_bound_lies_over_motions_of_any_size():
    axes = assert_readable(decay_figure(certificate(90, 1.2), decay()))
    bound = curve(axes, "certified: exp(-1.2 t)").get_ydata()
    assert_allclose(bound, np.exp(-1.2 * T))
    motions = [this.get_ydata() for this in axes.get_lines() if this.get_alpha() is not None]
    assert len(motions) == 2
    assert_allclose(motions, [np.exp(-1.5 * T), np.exp(-1.9 * T)])
    assert_allclose(curve(axes, "linearized rate").get_ydata(), np.exp(-2 * T))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "2 random starts in the region" in labels
    assert "the task's start" not in labels
    assert axes.get_yscale() == "log"


def test_motion_of_the_task_stands_out():
    own = 3.0 * np.exp(-1.7 * T)
    axes = assert_readable(decay_figure(certificate(90, 1.2), decay(own)))
    assert_allclose(curve(axes, "the task's start").get_ydata(), np.exp(-1.7 * T))


def test_a_start_without_error_is_not_drawn():
    axes = assert_readable(decay_figure(certificate(90, 1.2), decay(np.zeros_like(T))))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert "the task's start" not in labels


def test_rates_keep_proved_and_unproved_apart():
    tight = [certificate(30, 1.8), certificate(90, 1.2), certificate(179, 0.0, "UNDECIDED")]
    thesis = [certificate(30, 0.3, "UNDECIDED")]
    axes = assert_readable(rate_figure({"tight": tight, "thesis": thesis}, tight[1]))
    proved = curve(axes, "tight, proved")
    assert_allclose(proved.get_xdata(), [30, 90])
    assert_allclose(proved.get_ydata(), [1.8, 1.2])
    # A proof up to 90 degrees holds below: the line must not claim more in between.
    assert proved.get_drawstyle() == "steps-pre"
    for label, point in (("tight, not proved", (179, 0.0)), ("thesis, not proved", (30, 0.3))):
        hollow = curve(axes, label)
        assert_allclose(np.ravel(hollow.get_data()), point)
        assert hollow.get_linestyle() == "None"
        assert hollow.get_markerfacecolor() == "white"
    assert_allclose(np.ravel(curve(axes, "requested: 90 deg").get_data()), [90, 1.2])
    assert_allclose(curve(axes, "linearized rate, 2 1/s").get_ydata(), [2, 2])


@pytest.mark.parametrize("status", ["PROVED", "UNDECIDED"])
def test_rates_of_one_angle(status):
    axes = assert_readable(rate_figure({"tight": [certificate(180, 0.4, status)]}))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[1:] == ["tight, proved" if status == "PROVED" else "tight, not proved"]
