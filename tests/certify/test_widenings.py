"""Widenings and thresholds of proofs, each tested on both sides."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import concur as cc
from concur.certify import Disturbance
from concur.certify._affine_form import BAND, CornerMap, _widened
from concur.certify._intervals import PRECISION, flint
from concur.certify._operating_box import Demand, bound_box
from concur.certify._operating_graph import Graph
from concur.certify._operating_statement import demand_of, usual_margin
from concur.certify._prove import _Search
from concur.certify._recheck_boxes import _outside, _polygon
from concur.certify._robust import _push, _settled
from concur.control import Servo
from concur.outputs.groups import Vector
from tests.certify._channel import channel


@cache
def floater(**options: Any) -> Servo:
    model = cc.reduce(cc.robots.planar_floater())
    return Servo(model, [cc.Output("hand", "forearm", "R2", point=(0.4, 0, 0))], 4, 4, **options)


def test_bounds_of_a_box_are_wider_than_rounding_by_a_billionth() -> None:
    """Rounding may change them by less; a change of 1e-3 would be a loss."""
    graph = Graph(floater(), (), np.full(2, 0.5), "test")
    demand = Demand(np.full(2, 1.0), np.zeros((2, 2)))
    point = np.array([0.7, 1.1])
    found = bound_box(graph, demand, point, point)
    both = np.concatenate([-found.lower, found.upper])
    sizes = np.tile(np.maximum(np.abs(found.lower), np.abs(found.upper)), 2)
    wider = (both - found.there) / sizes
    assert (wider > 0.5e-9).all()
    assert (wider < 2e-9).all()
    assert found.margin is not None
    narrower = 1.0 - found.margin / (np.sqrt(0.98) * found.found)
    assert 0.5e-9 < narrower < 2e-9


@pytest.mark.parametrize("axis", range(3))
def test_boxes_count_as_outside_beyond_the_radius_only(axis: int) -> None:
    radius = 1.25
    search: Any = SimpleNamespace(reduction=SimpleNamespace(radius=radius))

    def box(near: float) -> Any:
        sides = [(-0.1, 0.1)] * 3
        sides[axis] = (near, near + 0.5)
        return tuple(sides)

    with flint().ctx.workprec(PRECISION):
        for sign in (1, -1):
            for near, beyond in ((radius, False), (np.nextafter(radius, 2), True)):
                a, b = box(near)[axis]
                sides = list(box(near))
                sides[axis] = (a, b) if sign > 0 else (-b, -a)
                assert _Search._outside(search, tuple(sides)) is beyond
                low, high = (np.array(ends) for ends in zip(*sides, strict=True))
                assert _outside(low, high, radius) is beyond
        # A corner that is farther than its sides: the length counts, not one coordinate.
        corner = ((0.8, 1.0), (0.8, 1.0), (0.5600001, 1.0))
        assert _Search._outside(search, corner) is True
        assert _Search._outside(search, ((0.8, 1.0), (0.8, 1.0), (0.5, 1.0))) is False
        whole: Any = SimpleNamespace(reduction=SimpleNamespace(radius=np.inf))
        assert _Search._outside(whole, corner) is False


@pytest.mark.parametrize(
    ("point", "radius", "refutes"),
    [
        ([3.0, 4.0], 5.0, True),  # on the radius, which belongs to the domain
        ([3.0, 4.0], 4.999, False),
        ([0.3, 0.4], 0.501, True),
        ([0.3, 0.4], 0.499, False),
        ([30.0, 40.0], np.inf, True),
    ],
)
def test_only_a_point_within_the_radius_refutes(
    point: list[float], radius: float, refutes: bool
) -> None:
    reduction = SimpleNamespace(radius=radius, witnesses=[np.zeros(2)], matrix=np.eye(2))
    form = SimpleNamespace(counterexample=lambda x: "found")
    search: Any = SimpleNamespace(reduction=reduction, form=form)
    assert _Search._refuted(search, np.array(point)) is refutes


def test_the_error_map_is_widened_by_its_band_where_it_varies() -> None:
    arb = flint().arb
    B = np.array([[arb(1), arb(2)]], dtype=object)
    wide = _widened(B, np.array([[False, True]]), np.array([0.3, -4.0]))
    assert wide[0, 0].is_exact()
    assert 0.99 * BAND * 5.0 < float(wide[0, 1].rad()) < 1.01 * BAND * 5.0
    assert BAND == 1e-12


def test_disturbances_that_act_together_add_their_feedback() -> None:
    one = np.array([[[0.1, 0.0], [0.0, 0.2]], [[0.0, 0.3], [0.3, 0.0]]])
    other = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 2.0], [0.0, 0.0]], [[0.0] * 2] * 2])
    a = Disturbance(np.array([0.1, 0.2]), feedback=one)
    b = Disturbance(np.array([0.2, 0.1]), feedback=other)
    plain = Disturbance(np.array([0.7, 0.1]))
    total = a + b
    assert total.feedback is not None
    assert total.feedback.shape == (6, 2, 2)
    for x in one:
        for y in other:
            assert any(np.array_equal(x + y, z) for z in total.feedback)
    for left, right in ((a, plain), (plain, a)):
        joined = (left + right).feedback
        assert joined is not None
        np.testing.assert_array_equal(joined, one)
    assert (plain + plain).feedback is None
    # Rounded up: never below the exact sum, and by a step of the floats only.
    for i in range(2):
        exact = Fraction(float(a.components[i])) + Fraction(float(b.components[i]))
        assert exact <= Fraction(float(total.components[i])) <= exact * (1 + Fraction(1, 10**15))


def test_tubes_that_feed_back_are_given_up_at_one() -> None:
    offset, zero = np.array([1.0]), np.zeros(1)
    assert _settled(np.array([[1.0 - 1e-10]]), offset, zero)[0] == np.inf
    assert _settled(np.array([[1.0 - 1e-8]]), offset, zero)[0] == pytest.approx(1e8, rel=1e-6)


def test_the_largest_push_is_taken_among_corners_that_rounding_cannot_tell_apart() -> None:
    part = channel(Vector("xy"))
    n = part.size
    skewed = np.eye(2 * n)
    skewed[n, n + 1] = skewed[n + 1, n] = 0.5
    decay: Any = SimpleNamespace(channel=part, P=skewed)
    found = _push(decay, np.arange(n), Disturbance(np.array([0.3, 0.7])))
    exact = Fraction(0.3) ** 2 + Fraction(0.7) ** 2 + Fraction(0.3) * Fraction(0.7)
    assert exact <= Fraction(found) ** 2 <= exact * (1 + Fraction(1, 10**14))


def test_the_polygon_holds_its_disc() -> None:
    for corners in (8, 64):
        points = _polygon(corners, 2.0)
        nearest = np.linalg.norm(points + np.roll(points, -1, axis=0), axis=1).min() / 2
        edges = np.sort(np.arctan2(points[:, 1], points[:, 0]))
        middles = np.cos(np.diff(edges) / 2).min() * np.linalg.norm(points, axis=1).min()
        assert 2.0 * (1 + 0.5e-9) < middles < 2.0 * (1 + 2e-9)
        assert nearest > 0.0


def test_commands_are_bounded_and_hardly_more() -> None:
    servo = floater()
    zero = np.zeros(2)
    sizes = np.array([0.3, 0.1])
    found = demand_of(servo, sizes, zero, zero, "test")
    assert (found.command >= sizes).all()
    assert (found.command <= sizes * (1 + 1e-8)).all()
    both = demand_of(servo, zero, sizes, sizes, "test")
    np.testing.assert_allclose(both.command, 8 * sizes, rtol=1e-8)


def test_margins_of_damped_servos_have_room_for_what_is_compared() -> None:
    assert usual_margin(floater()) == floater().singular_margin
    damped = floater(damping_threshold=0.1)
    least = damped.margins.damped_below  # the threshold is a share of the usual margin
    assert least != 0.1
    assert least * 2**0.25 < usual_margin(damped) < least * 2**0.25 * (1 + 1e-11)


def test_remainder_of_the_first_order_is_half_of_the_bends():
    # Of (2 x^2 + 2 x y + 4 y^2) / 2 with |x| <= 1/2 and |y| <= 1/4, in numbers without rounding.
    corner = object.__new__(CornerMap)
    corner.n, corner.k = 1, 2
    bends = np.array([flint().arb(bend) for bend in (2, 1, 1, 4)], dtype=object)
    reach = [flint().arb(0.5), flint().arb(0.25)]
    (size,) = corner._remainder(bends, reach).ravel()
    assert float(size.mid()) == 0.5
    assert float(size.rad()) < 1e-9
