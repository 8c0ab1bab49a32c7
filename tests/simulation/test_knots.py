"""Steps end where the reference is not smooth: against SciPy restarted at these times."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.errors import SimulationError
from concur.outputs import references
from concur.outputs.references import Reference
from concur.simulation import Integrator
from concur.simulation._grid import CLOSE, Grid
from tests.simulation.test_one_joint import INERTIA, KD, KP, robot, servo

DT = 0.013


def rough() -> Reference:
    """A wave with three decimals at 30 Hz, whose knots no step meets."""
    t = np.arange(0.0, 2.0, 1.0 / 30.0)
    return references.table(t, np.round(np.sin(t), 3))


CORNERS: dict[str, Reference] = {
    "table": rough(),
    "waypoints": references.waypoints([0.0, 0.31, 0.62, 1.7], [[0.0], [0.4], [0.1], [1.0]]),
    "start and end": references.rest_to_rest([0.0], [1.0], 0.5, begin=0.2),
    "jumps of velocity": references.Loop([0.0], [[0.1]], [[0.3]], 0.7, rest=False),
    "sum": references.relative(
        references.rest_to_rest([0.0], [1.0], 0.5, begin=0.2), references.hold([0.2])
    ),
}


@pytest.mark.by_default(6)
@pytest.mark.parametrize("method", ["rk4", "rkmk4", "dop853"])
@pytest.mark.parametrize("name", CORNERS)
def test_runs_are_those_of_scipy_restarted_at_the_knots(name: str, method: str) -> None:
    reference, law, duration = CORNERS[name], servo("pendulum"), 69 * DT
    assert len(reference.knots) > 1
    x, inertia = np.zeros(2), law.model.mass_matrix([0.0])[0, 0]
    inside = reference.knots[(reference.knots > 0.0) & (reference.knots < duration)]
    for begin, end in pairwise([0.0, *inside, duration]):

        def slope(t: float, x: np.ndarray, begin: float = begin, end: float = end) -> list[float]:
            there = float(np.clip(t, np.nextafter(begin, np.inf), np.nextafter(end, -np.inf)))
            sample = reference(there)
            # The servo cancels gravity and inertia.
            away, late = sample.pose[0] - x[0], sample.twist[0] - x[1]
            return [x[1], sample.acceleration[0] + KP * away + KD * late]

        x = solve_ivp(slope, (begin, end), x, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    run = cc.simulate(
        robot("pendulum"), law, reference, duration, [0.0], [0.0], Integrator(method, dt=DT)
    )
    assert inertia > INERTIA
    assert np.abs(np.append(run.q[-1], run.v[-1]) - x).max() < (
        1e-10 if method == "dop853" else 2e-6
    )
    assert np.array_equal(run.t, np.arange(70) * DT)
    assert np.abs(run.deviation).max() < 3e-7 or name == "jumps of velocity"


def test_a_step_over_knots_is_a_hundred_times_worse() -> None:
    """The same samples as a custom function, whose knots are unknown."""
    law, reference = servo("pendulum"), rough()
    assert np.abs(reference.knots[:3] - [0.0, 1 / 30, 2 / 30]).max() < 1e-12
    off = []
    for one in (reference, references.from_function(reference, 1, 1)):
        run = cc.simulate(robot("pendulum"), law, one, 1.3, [0.0], [0.0], dt=DT)
        off.append(np.abs(run.deviation).max())
    assert off[0] < 0.01 * off[1]
    assert off[0] < 1e-7


def test_steps_are_divided_at_knots_that_are_apart_from_their_ends() -> None:
    apart, close = 0.3 + 1.5 * CLOSE * 0.1, 0.3 + 0.5 * CLOSE * 0.1
    for knot, count in ((apart, 11), (close, 10)):
        grid = Grid.of(10, 0.1, np.array([-1.0, 0.0, knot, 1.0, 2.0]))
        assert len(grid.lengths) == count
        assert np.array_equal(grid.ends[grid.places], np.arange(11) * 0.1)
        assert grid.lengths.sum() == pytest.approx(1.0, abs=1e-12)
        begin, middle, end = grid.nodes
        where = int(np.argmin(np.abs(grid.ends - knot)))
        assert end[where - 1] < knot < begin[where]
        assert (np.diff(np.ravel([begin, middle, end], order="F")) >= 0.0).all()
    double = Grid.of(10, 0.1, np.array([0.35, 0.35 + 0.5 * CLOSE * 0.1]))
    assert len(double.lengths) == 11
    begin, _, end = double.nodes
    assert end[3] < 0.35 < 0.35 + 0.5 * CLOSE * 0.1 < begin[4]
    plain = Grid.of(3, 0.1, np.zeros(0))
    assert np.array_equal(plain.lengths, [0.1] * 3)
    assert np.array_equal(plain.nodes[1], np.array([1, 3, 5]) * 0.05)


def test_extremes_of_divided_steps_are_in_the_record() -> None:
    """A push that begins and ends between two rows is in the ranges of the run alone."""
    law = servo("pendulum")
    push = references.waypoints([0.0, 0.51, 0.56, 0.59, 1.0], [[0.0], [0.0], [0.1], [0.0], [0.0]])
    run = cc.simulate(robot("pendulum"), law, push, 1.0, [0.0], [0.0], dt=0.1)
    fine = cc.simulate(robot("pendulum"), law, push, 1.0, [0.0], [0.0], dt=0.0025)
    assert run.u_range == pytest.approx(fine.u_range, rel=3e-2)
    assert np.abs(run.u).max() < 0.5 * np.abs(run.u_range).max()


def test_a_run_that_is_lost_between_rows_ends_at_the_row_before() -> None:
    law = servo("pendulum")
    away = references.waypoints([0.0, 0.55, 0.551, 1.0], [[0.0], [0.0], [1e5], [1e9]])
    with pytest.raises(SimulationError) as caught:
        cc.simulate(robot("pendulum"), law, away, 1.0, [0.0], [0.0], dt=0.1)
    run = caught.value.run
    assert run.t[-1] <= caught.value.data["time"] < 1.0
    assert len(run.t) == len(run.q) == len(run.margin)
