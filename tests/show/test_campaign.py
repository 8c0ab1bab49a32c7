"""Figures of a campaign show each world once, on the right side of its limit."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from concur.campaign import CurveBound, SampledCurves
from concur.errors import ShapeError
from concur.show import (
    curves_figure,
    extremes_figure,
    influence_figure,
    robustness_figure,
    worst_figure,
)
from concur.show.campaigns import FAIL, MOST, PASS


def campaign(robustness, extremes=None, limits=None):
    robustness = np.array(robustness, dtype=float)
    extremes = np.zeros((len(robustness), 0)) if extremes is None else np.array(extremes)
    return SimpleNamespace(
        robustness=robustness,
        columns=[(f"r{k}", "m") for k in range(robustness.shape[1])],
        extremes=extremes,
        signals=[(f"torque {k}", "N m") for k in range(extremes.shape[1])],
        limits=limits or {},
        worlds=np.linspace(-1, 1, len(robustness))[:, None] * [1.0, 2.0],
        quantities=[("mass hand", "kg"), ("latency", "s")],
        numbers=np.arange(100, 100 + len(robustness)),
        requirement=lambda name: int(name[1:]),
    )


def counts(axes, color):
    """Number of worlds in the bars of a colour."""
    bars = [bar for bar in axes.patches if to_rgb(bar.get_facecolor()) == to_rgb(color)]
    return sum(bar.get_height() for bar in bars)


@pytest.mark.extended
def test_histograms_count_each_world_on_its_side_of_zero():
    rng = np.random.default_rng(0)
    values = np.stack([rng.uniform(0.1, 1, 200), rng.normal(0.3, 1, 200)], axis=1)
    values[3, 1] = -np.inf
    figure = robustness_figure(campaign(values))
    worse, better = figure.axes  # the one that fails more often comes first
    failed = int((values[:, 1] <= 0).sum())
    text = worse.get_title().replace("\n", " ")  # broken where the panel ends
    assert text == f"r1 {failed} of 200 worlds fail, 1 without a value"
    assert (counts(worse, FAIL), counts(worse, PASS)) == (failed - 1, 200 - failed)
    assert (counts(better, FAIL), counts(better, PASS)) == (0, 200)
    assert worse.get_xlabel() == "robustness [m]"
    for value in (0.0, 0.5, -2.0):  # all worlds alike
        (axes,) = robustness_figure(campaign(np.full((7, 1), value))).axes
        assert counts(axes, PASS if value > 0 else FAIL) == 7
    many = robustness_figure(campaign(rng.normal(size=(5, MOST + 2))))
    assert sum(axes.axison for axes in many.axes) == MOST
    assert f"({MOST} of {MOST + 2})" in many.get_suptitle()


def test_extremes_stand_beside_their_limit():
    extremes = np.column_stack([np.linspace(1, 2, 50), np.linspace(3, 5, 50)])
    figure = extremes_figure(campaign(np.ones((50, 1)), extremes, {"torque 1": (-np.inf, 4.5)}))
    limited, free = figure.axes
    above = int((extremes[:, 1] > 4.5).sum())
    assert limited.get_title() == f"torque 1\n{above} beyond the limit 4.5 N m"
    assert (counts(limited, FAIL), counts(limited, PASS)) == (above, 50 - above)
    assert counts(free, FAIL) == 0
    lower = extremes_figure(campaign(np.ones((50, 1)), extremes, {"torque 0": (1.5, np.inf)}))
    below = int((extremes[:, 0] < 1.5).sum())
    assert (counts(lower.axes[0], FAIL), counts(lower.axes[0], PASS)) == (below, 50 - below)
    bound = CurveBound("proved in a box", 1.5, "states in it", [True])
    torque = SampledCurves("torque 0", "N m", [0.0], [[1.0]], bounds=[bound])
    first = extremes_figure(campaign(np.ones((50, 1)), extremes), [torque]).axes[0]
    assert first.get_title() == f"torque 0\n{50 - below} above 1.5 N m,\nproved in a box"
    extremes[0, 1] = np.nan
    assert extremes_figure(campaign(np.ones((50, 1)), extremes)).axes[1].get_title() == "torque 1"


def test_curves_count_runs_above_their_bound():
    t = np.linspace(0, 1, 20)
    values = np.exp(-t) * np.array([[0.5], [1.0], [1.5]])
    values[0, 10:] = np.nan
    passed = [True, True, False]
    required = CurveBound("required", np.where(t < 0.5, np.nan, 1.0))
    tube = CurveBound("proved tube", np.exp(-t), "all is small", [True, True, False])
    error = SampledCurves("error", "m", t, values, passed, [required, tube])
    assert error.counts(tube) == (1, 1, 0)  # equal is not above
    assert error.counts(required) == (0, 0, 0)
    contrary = CurveBound("proved tube", 0.9, "all is small", [False, True, True])
    assert error.counts(contrary) == (2, 1, 2)
    figure = curves_figure([error, SampledCurves("V", "1", t, values, note="no tube", log=False)])
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels[:2] == ["runs that pass: 2", "runs that fail: 1"]
    assert labels[-2] == "required; runs above it: 0"
    assert labels[-1] == (
        "proved tube; runs above it: 1\n  if all is small;\n  runs outside this assumption: 1"
    )
    assert figure.axes[1].get_legend().get_title().get_text() == "V\nno tube"
    assert (figure.axes[0].get_yscale(), figure.axes[1].get_yscale()) == ("log", "linear")
    limit, proved = error.as_dict()["bounds"]
    assert (limit["largest"], limit["assumption"]) == (1, None)
    assert limit["runs_beyond_assumption"] is None
    assert (proved["last"], proved["runs_above"]) == (np.exp(-1.0), 1)
    assert (proved["runs_beyond_assumption"], proved["runs_above_within_assumption"]) == (1, 0)
    for wrong in (
        {"passed": [True]},
        {"bounds": [CurveBound("b", np.ones(3))]},
        {"bounds": [CurveBound("b", 1.0, "small", [True])]},
        {"values": values[:, 1:]},
    ):
        with pytest.raises(ShapeError, match="sampled curves of error"):
            SampledCurves(**{"name": "error", "unit": "m", "t": t, "values": values} | wrong)


def test_worst_worlds_are_marked():
    values = np.linspace(-0.5, 2, 40)[:, None]
    values[0] = -np.inf
    figure = worst_figure(campaign(values), "r0", ["latency"])
    (axes,) = figure.axes
    assert axes.get_xlabel() == "latency [s]"
    assert figure.get_suptitle().endswith("the worst is world 101")
    good, bad, _, rings, worst = axes.get_lines()
    assert worst.get_ydata() == values[1:2, 0]
    assert (len(bad.get_xdata()), len(good.get_xdata())) == (7, 32)
    assert len(rings.get_xdata()) == 5
    assert len(worst_figure(campaign(values), "r0").axes) == 2


def test_bars_of_noise_are_grey():
    rows = [
        ("mass", "value", -0.8, True),
        ("radius", "size", -0.1, False),
        ("lag", "value", 0.4, True),
    ]
    influences = [
        SimpleNamespace(
            requirement=requirement, quantity=name, form=form, shown=shown,
            correlation=value * size, low=value * size - 0.1, high=value * size + 0.1,
        )
        for requirement, size in (("settle", 0.5), ("torque", 1.0))
        for name, form, value, shown in rows
    ]  # fmt: skip
    first, second = influence_figure(influences).axes
    assert (first.get_title(), second.get_title()) == ("torque", "settle")
    assert [text.get_text() for text in first.get_yticklabels()] == ["mass", "|radius|", "lag"]
    colors = [to_rgb(bar.get_facecolor()) for bar in first.patches]
    assert colors == [to_rgb(FAIL), to_rgb("#C8CED4"), to_rgb(PASS)]
