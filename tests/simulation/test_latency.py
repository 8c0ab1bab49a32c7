"""Delays of messages: their order, their draws, and what is refused."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from concur.codegen import uniform
from concur.errors import SimulationError
from concur.simulation import Latency


def test_messages_are_late_by_their_draws_and_keep_their_order():
    sent = np.cumsum(np.random.default_rng(2).uniform(0.0, 0.002, 200))
    found = Latency(0.003, 0.004).arrivals(sent, world=9, seed=4)
    before, held = -math.inf, 0
    for k, instant in enumerate(sent):
        due = instant + 0.003 + 0.004 * uniform(4, np.array([9]), k, 0)[0, 0]
        held += due < before
        before = max(before, due)
        assert found[k] == pytest.approx(before, abs=1e-15)
    assert 20 < held < 180
    late = found - sent
    assert 0.003 <= late.min() < 0.0035
    assert 0.0068 < late.max() < 0.007
    # One after the other, as a sender has them.
    number, last, one = 0, -math.inf, []
    for instant in sent:
        made = Latency(0.003, 0.004).arrivals([instant], world=9, seed=4, first=number, after=last)
        number, last = number + 1, made[0]
        one.append(last)
    assert_array_equal(one, found)
    for other in ({"world": 8, "seed": 4}, {"world": 9, "seed": 5}):
        assert (Latency(0.003, 0.004).arrivals(sent, **other) != found).mean() > 0.9


def test_draws_are_kept_in_order_only_where_they_overtake():
    # Messages a period apart with a jitter of at most a period never wait for each other.
    sent = np.arange(500.0)
    drawn = uniform(0, np.zeros(500, dtype=int), np.arange(500), 0)[0]
    assert_array_equal(Latency(0.25, 1.0).arrivals(sent), sent + (0.25 + drawn))
    assert (Latency(0.25, 1.5).arrivals(sent) > sent + (0.25 + 1.5 * drawn)).any()
    assert_array_equal(Latency(0.3).arrivals([1.0, 1.0, 2.5]), [1.3, 1.3, 2.8])
    assert_allclose(Latency(0.0, 1e-300).arrivals(sent), sent, atol=1e-12)


@pytest.mark.parametrize("field", ["delay", "jitter"])
def test_numbers_out_of_range_are_refused(field):
    for bad in (-1e-9, math.nan, math.inf, "long", True, None):
        with pytest.raises(SimulationError, match=f"latency, `{field}`: expected a time of zero"):
            Latency(**{field: bad})
    assert Latency(**{field: 0}).arrivals([]).shape == (0,)
