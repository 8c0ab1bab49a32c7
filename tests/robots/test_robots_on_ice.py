"""Sleigh and snakeboard: wheels that leave a freedom of the base, whose momentum changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson

from concur import robots
from concur.control import Servo
from concur.errors import OutputError, SimulationError
from concur.outputs import Output
from concur.reduction import AuditStatus, ReducedModel, reduce
from concur.robot import Body, Inertia, Mechanism, Wheel, joints
from concur.simulation import forced_motion
from tests.oracles import Constrained, Pinocchio, Units, assert_close
from tests.oracles._kkt import sleigh_rows, snakeboard_rows
from tests.reduction._reduced import Reference, torques

MASS, LEVER, MOMENT = 2.0, 0.25, 0.07
ABOUT_SKATE = MOMENT + MASS * LEVER**2
Q_SLEIGH = np.array([0.4, -0.3, 0.9])


def moved_sleigh(forward: float) -> Mechanism:
    """Build the same sleigh with its frame further forward by that many metres."""
    shifted = Inertia(MASS, (LEVER - forward, 0, 0), (0.02, 0.06, MOMENT))
    skate = Wheel("sleigh", 0.0, kind="slider", axis=(0, 1, 0), center=(-forward, 0, 0))
    return Mechanism("sleigh", [Body("sleigh", joints.Planar(), inertia=shifted)], [skate])


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


@pytest.mark.parametrize(("speed", "turning"), [(0.3, 1.2), (-0.7, 0.4), (0.0, -2.0)])
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


@pytest.mark.parametrize(
    ("forward", "free"),
    [(-0.4, "vx omega"), (0.19, "vx omega"), (0.2, "vx vy"), (3.0, "vx vy")],
)
def test_sleigh_does_not_depend_on_where_its_frame_is(forward: float, free: str) -> None:
    # Further from the skate than the radius of gyration sqrt(0.035 + (0.25 - forward)^2) m its row
    # determines the turning rate better than the velocity across, in any unit of length.
    model = reduce(moved_sleigh(forward))
    assert model.shape_names == tuple(f"sleigh[{name}]" for name in free.split())
    assert reduce(Units(length=1e3).robot(model.robot)).shape_names == model.shape_names
    rows = Constrained(Pinocchio(model.robot), sleigh_rows(-forward))
    np.testing.assert_allclose(
        model.robot.constraints(Q_SLEIGH), rows.rows(Q_SLEIGH), rtol=0, atol=1e-15
    )
    start = Q_SLEIGH.copy()
    start[:2] += forward * np.array([np.cos(start[2]), np.sin(start[2])])
    v0 = np.array([0.3, forward * 1.2, 1.2])
    motion = forced_motion(model, None, 10.0, start, v0[list(model.shape)], dt=0.5)
    v, w, turned = exact(motion.t, 0.3, 1.2)
    expected = np.stack([v, forward * w, w], axis=1)
    np.testing.assert_allclose(motion.v, expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(motion.q[:, 2], Q_SLEIGH[2] + turned, rtol=0, atol=1e-9)


def test_momentum_along_the_skate_changes() -> None:
    # pdot = m a w^2 along x, without any external push: by the reaction under the skate.
    model = reduce(robots.chaplygin_sleigh())
    s = np.array([0.3, 1.2])
    _, pdot = model.vector_field(Q_SLEIGH, model.mass_matrix(Q_SLEIGH) @ s, [])
    expected = [MASS * LEVER * 1.2**2, -MASS * LEVER * 0.3 * 1.2]
    np.testing.assert_allclose(pdot, expected, rtol=0, atol=1e-14)


HALF = 0.25
Q_BOARD = np.array([0.2, -0.1, 0.5, 0.3, 0.2, -0.35])
S_BOARD = np.array([0.4, 0.5, -0.3, 0.2])


@pytest.fixture(scope="module")
def board() -> ReducedModel:
    return reduce(robots.snakeboard())


def drives(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Swing the rotor and the skates in time: torques on v."""
    tau = np.zeros(6)
    tau[3] = 0.6 * np.sin(2.0 * t)
    tau[4] = 0.5 * np.sin(2.0 * t + 0.3) - 1.0 * q[4] - 0.2 * v[4]
    tau[5] = -0.5 * np.sin(2.0 * t + 0.3) - 1.0 * q[5] - 0.2 * v[5]
    return tau


def test_snakeboard_keeps_its_speed_as_a_velocity_of_its_own(board: ReducedModel) -> None:
    assert board.shape_names == ("board[vx]", "rotor", "front_skate", "rear_skate")
    assert board.nu == 3
    # Straight skates: only this choice of dependent velocities is regular there.
    assert board.regularity(np.zeros(6)) > 0.1
    row = board.audit()["CON3"]
    assert row.status is AuditStatus.FAILS
    assert row.why == "no drive on board[vx]"


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


@pytest.mark.extended
def test_driven_snakeboard_moves_as_the_multipliers_say(board: ReducedModel) -> None:
    full = Constrained(Pinocchio(board.robot), snakeboard_rows(HALF))
    times = [1.0, 5.0, 10.0]
    v0 = np.asarray(board.velocity(Q_BOARD, S_BOARD))
    q, v = full.simulate(Q_BOARD, v0, drives, times)

    def torque(t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        return drives(t, q, board.velocity(q, s))[3:]

    motion = forced_motion(board, torque, 10.0, Q_BOARD, S_BOARD, dt=0.5)
    at = [2, 10, 20]
    assert_close(motion.q[at], q, 1e-8)
    assert_close(motion.v[at], v, 1e-8)
    assert np.abs(motion.energy_balance).max() < 1e-9
    assert np.ptp(motion.s[:, 0]) > 0.5  # swinging and steering brake it and send it back
    assert np.abs(motion.q[:, 4:]).max() < 1.4


def test_snakeboard_with_straight_skates_glides_on(board: ReducedModel) -> None:
    s0 = np.array([0.7, 0.0, 0.0, 0.0])
    motion = forced_motion(board, None, 4.0, np.zeros(6), s0, dt=1.0)
    np.testing.assert_allclose(motion.s, np.tile(s0, (5, 1)), rtol=0, atol=1e-13)
    np.testing.assert_allclose(motion.q[-1], [2.8, 0, 0, 0, 0, 0], rtol=0, atol=1e-12)


def test_servo_says_which_velocities_have_no_drive(board: ReducedModel) -> None:
    outputs = [Output("front", "front_skate", "R2", point=(0.2, 0, 0))]
    with pytest.raises(
        OutputError, match=r"4 controls for the shape velocities board\[vx\]"
    ) as why:
        Servo(board, outputs, stiffness=1.0, damping=2.0)
    assert "board[vx] free and unactuated" in str(why.value)


def test_reason_names_what_is_free(board: ReducedModel) -> None:
    sleigh = reduce(robots.chaplygin_sleigh())
    for model, free in (
        (board, "vx of the base free: its momentum changes"),
        (sleigh, "vx and omega of the base free: their momenta change"),
    ):
        assert model.kind == "constrained"
        assert model.reason.endswith(f"the wheels leave {free}")


def test_undriven_wheel_under_a_base_is_given_by_it() -> None:
    # One disk: it forbids going sideways and spins as the base goes; turning stays free.
    spin = Inertia(1.0, moments=(0.003, 0.005, 0.003))
    bodies = [
        Body("base", joints.Planar(), inertia=Inertia(5.0, (0.1, 0, 0), (0.1, 0.1, 0.2))),
        Body("wheel", joints.Revolute((0, 1, 0)), "base", inertia=spin),
    ]
    wheel = [Wheel("wheel", 0.1)]
    undriven = reduce(Mechanism("unicycle", bodies, wheel, actuated=[]))
    driven = reduce(replace(undriven.robot, actuated=["wheel"]))
    for model in (undriven, driven):
        assert model.dependent == (0, 1)
        assert model.shape_names == ("base[omega]", "wheel")
    # m_e v' = m a w^2 with m_e = m + M + j / b^2, (I + ...) w' = -m a v w.
    s = np.array([1.5, 4.0])
    acceleration = undriven.acceleration(np.zeros(4), s, [])
    inertia = 0.2 + 5.0 * 0.1**2 + 0.003
    expected = [
        -5.0 * 0.1 * 0.4 * 1.5 / inertia,
        5.0 * 0.1 * 1.5**2 / (6.0 + 0.005 / 0.1**2) / 0.1,
    ]
    np.testing.assert_allclose(acceleration, expected, rtol=1e-12)
