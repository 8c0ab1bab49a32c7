"""Tolerances of the torque limits, each from both sides: rounding, and solvers that are inexact."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

from concur.control import _allocation
from concur.control._allocation import allocation, largest_scale
from concur.errors import ShapeError

LARGE = np.inf


@pytest.mark.parametrize(("beyond", "possible"), [(0.5e-12, 1), (2e-12, 0)])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("width", [1.0, 1e6, 1e-6])
def test_a_limit_may_be_missed_by_rounding_alone(
    beyond: float, possible: int, side: float, width: float
) -> None:
    base = ca.DM([side * width * (1.0 + beyond), 0.0])
    limits = ca.DM([-width, -width]), ca.DM([width, width])
    scale, answer = largest_scale(base, ca.DM([side, 0.0]), *limits)
    assert (float(scale), float(answer)) == (0.0, possible)


@pytest.mark.parametrize(("beyond", "possible"), [(0.5e-12, 1), (2e-12, 0)])
def test_rounding_is_counted_in_half_the_room_between_limits(beyond: float, possible: int) -> None:
    # Far from zero and narrow; and with one limit only, where its own size counts.
    for lower, upper, size in ((-4.0, 2.0, 3.0), (-LARGE, 2.0, 2.0), (-LARGE, 0.0, 5.0)):
        base = ca.DM([upper + beyond * size])
        slope = ca.DM([5.0 if upper == 0.0 else 0.0])
        _, answer = largest_scale(base, slope, ca.DM([lower]), ca.DM([upper]))
        assert float(answer) == possible


def allocated(monkeypatch: pytest.MonkeyPatch, drift: float, error: float) -> dict[str, Any]:
    """Two drives of one output with limits of 1, where the solver's scale is too large by a part.

    The first drive is loaded already, so that the second has to make most of the demand.
    """
    exact = _allocation._programme

    def inexact(name: str, hessian: ca.Sparsity, rows: int, plugin: str) -> ca.Function:
        solver = exact(name, hessian, rows, plugin)
        if not rows:
            return solver
        names = ["h", "g", "a", "lba", "uba", "lbx", "ubx"]
        given = [ca.MX.sym(key, solver.sparsity_in(key)) for key in names]
        found = solver(**dict(zip(names, given, strict=True)))
        wrong = found["x"] * ca.DM([1.0, 1.0 + error])
        results = [wrong, found["lam_a"], found["lam_x"]]
        return ca.Function(name, given, results, names, ["x", "lam_a", "lam_x"])

    monkeypatch.setattr(_allocation, "_programme", inexact)
    one = np.ones(2)
    answer = allocation(1, 2)(
        np.ones((1, 2)), 20.0, 10 * one, np.eye(2), [drift, 0.0], np.eye(2), 1.0, -one, one
    )
    names = ("sdot", "u", "scale", "lost", "active", "status")
    found = {k: v.full().ravel() for k, v in zip(names, answer, strict=True)}
    assert (np.abs(found["u"]) <= 1.0).all()
    return found


def largest(drift: float) -> float:
    """Feasible set by hand: sdot = (1 - drift, 1), and their sum is 20 alpha."""
    return (2.0 - drift) / 20.0


def plain(drift: float) -> float:
    """Scale of the nominal (10, 10) alone."""
    return (1.0 - drift) / 10.0


def mixed(drift: float, error: float) -> tuple[float, float]:
    """Share of an inexact solution within limits, and the scale of its mixture, by hand.

    The first torque is 1 + e with e = error (2 - drift) / 2; half the nominal leaves
    (1 - drift) / 2 of room.
    """
    room = (1.0 - drift) / 2
    share = room / (room + error * (2.0 - drift) / 2)
    return share, share * largest(drift) * (1 + error) + (1 - share) * plain(drift) / 2


@pytest.mark.parametrize(("error", "share"), [(0.0010, 0.908), (0.0012, 0.892)])
def test_an_inexact_solution_is_mended_if_nine_tenths_of_it_are_left(
    error: float, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    drift = 0.99
    found = allocated(monkeypatch, drift, error)
    left, scale = mixed(drift, error)
    assert left == pytest.approx(share, abs=1e-3)
    assert found["status"][0] == (left > 0.9)
    assert found["scale"][0] == pytest.approx(scale if left > 0.9 else plain(drift), rel=1e-6)


@pytest.mark.parametrize(("error", "mended"), [(0.012, True), (0.015, False)])
def test_a_solution_far_from_its_conditions_is_not_mended(
    error: float, mended: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is beyond a limit by 0.75 of the error, in widths of the limits; 0.95 of it would be left.
    found = allocated(monkeypatch, 0.5, error)
    share, scale = mixed(0.5, error)
    assert share > 0.95
    assert found["status"][0] == mended
    assert found["scale"][0] == pytest.approx(scale if mended else plain(0.5), rel=1e-5)


@pytest.mark.parametrize(("error", "accepted"), [(1.0e-6, True), (3.0e-6, False)])
def test_a_solution_that_fulfils_its_conditions_is_taken_as_it_is(
    error: float, accepted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beyond a limit by half the error; mixing would take a part of 1e-4 from it.
    drift = 0.99
    found = allocated(monkeypatch, drift, error)
    assert found["status"][0] == 1
    wanted = largest(drift) * (1 + error) if accepted else mixed(drift, error)[1]
    assert found["scale"][0] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(
    ("low", "high", "sane"),
    [
        (-np.inf, 5.0, 1),
        (-5.0, np.inf, 1),
        (2.0, 2.0, 1),
        (2.0, 1.999, 0),
        (-np.inf, -np.inf, 0),
        (np.inf, np.inf, 0),
        (np.nan, 1.0, 0),
    ],
)
def test_bounds_of_a_programme_leave_room_for_a_number(low: float, high: float, sane: int) -> None:
    data = [ca.SX.sym("low"), ca.SX.sym("high")]
    posed = _allocation._posed(data, [ca.SX(3.0), *data], (1, 2))
    matrix, *bounds, found = (float(part) for part in posed(low, high))
    assert found == sane
    assert [matrix, *bounds] == ([3.0, low, high] if sane else [1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("multiplier", "residual"), [(0.0, 0.0), (0.2, 0.2), (0.7, 0.3), (-0.05, 0.05), (-0.7, 0.1)]
)
def test_a_multiplier_away_from_its_bound_is_wrong(multiplier: float, residual: float) -> None:
    # Rows 0.3 below the upper and 0.1 above the lower bound.
    found = _allocation._optimality(ca.DM(0), ca.DM(0.7), ca.DM(0.6), ca.DM(1.0), ca.DM(multiplier))
    assert float(found) == pytest.approx(residual)


@pytest.mark.parametrize(
    ("rows", "residual"), [(0.5, 0.0), (1.25, 0.25), (-0.5, 0.5), (np.nan, np.inf)]
)
def test_rows_outside_their_bounds_are_wrong(rows: float, residual: float) -> None:
    found = _allocation._optimality(ca.DM(0), ca.DM(rows), ca.DM(0), ca.DM(1), ca.DM(0))
    assert float(found) == pytest.approx(residual)


@pytest.mark.parametrize(("n", "ns", "fits"), [(0, 2, 0), (1, 1, 1), (2, 3, 1), (3, 2, 0)])
def test_an_allocation_needs_as_many_velocities_as_outputs(n: int, ns: int, fits: int) -> None:
    if fits:
        assert allocation(n, ns).size1_out("sdot") == ns
    else:
        with pytest.raises(ShapeError, match=f"{n} and {ns}"):
            allocation(n, ns)
