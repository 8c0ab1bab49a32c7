"""Sleigh and snakeboard: wheels that leave a freedom of the base, whose momentum changes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson

from concur import robots
from concur.errors import SimulationError
from concur.reduction import AuditStatus, ReducedModel, reduce
from concur.simulation import forced_motion
from tests.oracles import Constrained, Pinocchio, assert_close
from tests.oracles._kkt import sleigh_rows, snakeboard_rows
from tests.reduction._reduced import Reference, torques

MASS, LEVER, MOMENT = 2.0, 0.25, 0.07
ABOUT_SKATE = MOMENT + MASS * LEVER**2
Q_SLEIGH = np.array([0.4, -0.3, 0.9])


def exact(t: np.ndarray, speed: float, turning: float) -> tuple[np.ndarray, ...]:
    """Free motion of the sleigh in closed form: speed, turning rate and heading gained.

    With its energy E, v' = a w^2 and (I + m a^2) w' = -m a v w are solved by
    v = V tanh(k t + d), w = W sech(k t + d).
    """
    energy = MASS * speed**2 / 2 + ABOUT_SKATE * turning**2 / 2
    fastest, spin = np.sqrt(2 * energy / MASS), np.sqrt(2 * energy / ABOUT_SKATE)
    k = MASS * LEVER * fastest / ABOUT_SKATE
    begin = np.arctanh(speed / fastest)
    x = k * t + begin
    turned = 2 * np.arctan(np.tanh(x / 2)) - 2 * np.arctan(np.tanh(begin / 2))
    sign = np.sign(turning)
    return fastest * np.tanh(x), sign * spin / np.cosh(x), sign * spin / k * turned


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("speed", "turning"), [(-0.7, 0.4), (0.0, -2.0), (0.3, 1.2)])
def test_free_sleigh_moves_as_the_closed_form(speed: float, turning: float) -> None:
    model = reduce(robots.chaplygin_sleigh())
    assert model.shape_names == ("sleigh[vx]", "sleigh[omega]")
    motion = forced_motion(model, None, 10.0, Q_SLEIGH, [speed, turning], dt=0.005)
    v, w, turned = exact(motion.t, speed, turning)
    np.testing.assert_allclose(motion.s, np.stack([v, w], axis=1), rtol=0, atol=1e-10)
    heading = Q_SLEIGH[2] + turned
    np.testing.assert_allclose(motion.q[:, 2], heading, rtol=0, atol=1e-10)
    for i, direction in enumerate((np.cos(heading), np.sin(heading))):
        path = Q_SLEIGH[i] + cumulative_simpson(v * direction, x=motion.t, initial=0)
        np.testing.assert_allclose(motion.q[:, i], path, rtol=0, atol=1e-7)
    assert np.abs(motion.energy_balance).max() < 1e-11
    # It ends with its centre of mass in front of the skate, however it began.
    assert v[-1] > 0.0
    assert v[-1] > speed


def test_sleigh_moves_as_the_multipliers_say() -> None:
    robot = robots.chaplygin_sleigh()
    model, full = reduce(robot), Constrained(Pinocchio(robot), sleigh_rows(0.0))
    times = [2.5, 5.0, 10.0]
    still = np.zeros(3)
    q, v = full.simulate(Q_SLEIGH, [0.3, 0.0, 1.2], lambda t, q, v: still, times)
    motion = forced_motion(model, None, 10.0, Q_SLEIGH, [0.3, 1.2], dt=2.5)
    assert_close(motion.q[[1, 2, 4]], q, 1e-8)
    assert_close(motion.v[[1, 2, 4]], v, 1e-8)


HALF = 0.25


@pytest.fixture(scope="module")
def board() -> ReducedModel:
    return reduce(robots.snakeboard())


def test_snakeboard_keeps_its_speed_as_a_velocity_of_its_own(board: ReducedModel) -> None:
    assert board.shape_names == ("board[vx]", "rotor", "front_skate", "rear_skate")
    assert board.nu == 3
    # Straight skates: only this choice of dependent velocities is regular there.
    assert board.regularity(np.zeros(6)) > 0.1
    row = board.audit()["CON3"]
    assert row.status is AuditStatus.FAILS
    assert row.why == "no motor on board[vx]"


@pytest.mark.parametrize("distance", [1e-1, 1e-3, 0.0])
def test_skates_across_the_board_do_not_hold_it(board: ReducedModel, distance: float) -> None:
    # The dependent columns (cos, +-0.25 cos) all vanish there: their ratio stays what it is.
    q = np.array([0.3, -0.2, 0.4, 0.0, np.pi / 2 - distance, np.pi / 2 - distance])
    small = max(1e-15, 2 * distance)
    assert board.regularity(q) < small
    row = board.audit(configurations=[q])["NHR3"]
    assert row.values["ratio"] < small
    assert (row.status is AuditStatus.FAILS) == (distance == 0.0)


def test_motion_does_not_start_where_the_skates_do_not_hold(board: ReducedModel) -> None:
    q = np.array([0.0, 0.0, 0.0, 0.0, np.pi / 2, np.pi / 2])
    with pytest.raises(SimulationError, match=r"a singular one.*board\[vy\], board\[omega\]"):
        forced_motion(board, None, 1.0, q, [0.0, 0.1, 0.2, 0.0])


def test_snakeboard_accelerates_as_the_multipliers_say(board: ReducedModel) -> None:
    rows = snakeboard_rows(HALF)
    reference = Reference(Constrained(Pinocchio(board.robot), rows), board.shape, board.dependent)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, s = board.robot.random(rng), rng.uniform(-2, 2, 4)
        q[4:] = rng.uniform(-1.2, 1.2, 2)
        np.testing.assert_allclose(board.robot.constraints(q), rows(q), rtol=0, atol=1e-14)
        u = rng.uniform(-2, 2, 3)
        tau = torques(board, u)
        assert_close(board.mass_matrix(q), reference.mass_matrix(q), 1e-12)
        assert_close(board.acceleration(q, s, u), reference.acceleration(q, s, tau), 1e-9)
        _, pdot = board.vector_field(q, board.mass_matrix(q) @ s, u)
        assert_close(pdot, reference.momentum_rate(q, s, tau), 1e-7)
