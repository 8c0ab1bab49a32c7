"""The full-order plant: reactions, stabilised constraints, rest and free rolling."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp

from concur import robots
from concur.errors import SimulationError
from concur.robot import Mechanism, forward_dynamics, solve_positive_definite
from concur.simulation import Plant
from tests.benchmarks._robots import chain
from tests.control._cases import caster, caster_rows
from tests.oracles import (
    BASES,
    CASE_STUDY,
    Constrained,
    CraneNumbers,
    Pinocchio,
    assert_close,
    crane,
    crane_rows,
    random_floater,
    random_rover,
    random_tree,
    random_velocity,
    rover,
    rover_rows,
)

ROVER = rover(CASE_STUDY)
N = CraneNumbers()


def motion(plant: Plant, q0: np.ndarray, v0: np.ndarray, times: np.ndarray):  # type: ignore[no-untyped-def]
    """Let the plant go without torque: states at the times."""
    nq = plant.nq

    def slope(_: float, z: np.ndarray) -> np.ndarray:
        q, v = z[:nq], z[nq:]
        vdot, _ = plant.acceleration(q, v, np.zeros(plant.nu))
        return np.concatenate([plant.robot.rate(q, v), vdot])

    found = solve_ivp(slope, (0, times[-1]), [*q0, *v0], "DOP853", times, rtol=1e-11, atol=1e-13)
    return found.y[:nq].T, found.y[nq:].T


def rolling(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a velocity that obeys the rows."""
    basis = np.linalg.svd(rows)[2][len(rows) :]
    return basis.T @ rng.uniform(-1.5, 1.5, len(basis))


WHEELED = {
    "rover": (ROVER, rover_rows(CASE_STUDY.b, CASE_STUDY.c)),
    "crane": (crane(), None),
    "caster": (caster(), caster_rows()),
    "random": (random_rover(3).robot, random_rover(3).rows),
}


@pytest.mark.parametrize("name", WHEELED)
def test_acceleration_is_that_of_the_multipliers(name: str) -> None:
    robot, rows = WHEELED[name]
    if name == "crane":
        order, rows = _crane(robot)
        assert order is not None
    plant, full = Plant(robot), Constrained(Pinocchio(robot), rows)
    rng = np.random.default_rng(1)
    for _ in range(10):
        q, u = robot.random(rng), rng.uniform(-3.0, 3.0, plant.nu)
        v = rolling(rows(q), rng)
        tau = np.zeros(robot.nv)
        tau[list(robot.actuated_freedoms)] = u
        vdot, lam = plant.acceleration(q, v, u)
        expected, reactions = full.acceleration(q, v, tau)
        assert_close(vdot, expected, 1e-9)
        # The rows may be chosen differently; the force that they make is the same.
        assert_close(robot.constraints(q).T @ lam, rows(q).T @ reactions, 1e-9)


def _crane(robot):  # type: ignore[no-untyped-def]
    """Rows of the crane, whose bodies stand in the tree's own order."""
    names = ["axle", "column", "left", "right", "boom"]
    assert [body.name for body in robot.bodies[1:]] == names
    return names, crane_rows(N.l, N.b, N.c)


SHIPPED = (
    "two_handed_spacecraft",
    "planar_floater",
    "free_flyer",
    "station_arm",
    "servicer",
    "wheel_satellite",
    "orbital_crawler",
)
CHAINS = {name: getattr(robots, name)() for name in SHIPPED}
CHAINS |= {base: random_floater(base, seed) for seed, base in enumerate(BASES)}
CHAINS |= {f"tree {seed}": random_tree(seed) for seed in range(4)}


@pytest.mark.by_default(6)
@pytest.mark.parametrize("name", CHAINS)
def test_acceleration_of_an_open_chain_is_that_of_pinocchio(name: str) -> None:
    """Thesis: (5.1.4), (5.1.6)."""
    robot = CHAINS[name]
    plant, oracle, rng = Plant(robot), Pinocchio(robot), np.random.default_rng(1)
    freed = list(robot.actuated_freedoms)
    for _ in range(5):
        q, v = robot.random(rng), random_velocity(robot, rng)
        size = 1.0 / np.diag(np.linalg.inv(oracle.mass_matrix(q)))[freed]
        u, tau = size * rng.uniform(-1.0, 1.0, plant.nu), np.zeros(robot.nv)
        tau[freed] = u
        vdot, reactions = plant.acceleration(q, v, u)
        assert_close(vdot, oracle.forward_dynamics(q, v, tau), 1e-9)
        assert reactions.shape == (0,)


@pytest.mark.parametrize("rate", [2.0, 10.0, 25.0])
@pytest.mark.parametrize("name", ["rover", "caster"])
def test_slip_dies_away_at_the_rate_of_stabilisation(name: str, rate: float) -> None:
    robot, rows = WHEELED[name]
    q0, v0 = _slipping(name)
    times = np.linspace(0.0, 0.4, 9)
    q, v = motion(Plant(robot, rate), q0, v0, times)
    slip = np.array([rows(a) @ b for a, b in zip(q, v, strict=True)])
    assert np.abs(slip[0]).max() > 0.1
    assert_allclose(slip, slip[0] * np.exp(-rate * times)[:, None], rtol=0, atol=1e-9)


def test_stabilisation_does_nothing_to_what_rolls() -> None:
    rng = np.random.default_rng(4)
    rows = rover_rows(CASE_STUDY.b, CASE_STUDY.c)
    q = ROVER.random(rng)
    v, u = rolling(rows(q), rng), rng.uniform(-1, 1, 5)
    one, two = (Plant(ROVER, rate).acceleration(q, v, u)[0] for rate in (0.0, 50.0))
    assert_close(two, one, 1e-12)


def _slipping(name: str) -> tuple[np.ndarray, np.ndarray]:
    robot, rows = WHEELED[name]
    rng = np.random.default_rng(5)
    q0 = robot.random(rng)
    v0 = rolling(rows(q0), rng) + np.linalg.pinv(rows(q0)) @ rng.uniform(-0.3, 0.3, len(rows(q0)))
    return q0, v0


@pytest.mark.parametrize("rate", [-1.0, float("nan")])
def test_negative_rate_is_refused(rate: float) -> None:
    with pytest.raises(SimulationError) as caught:
        Plant(ROVER, rate)
    error = caught.value
    assert "plant of `rover`, `stabilisation`" in error.where
    assert "zero or more" in error.expected
    assert error.came == str(rate)
    assert error.cure


def test_articulated_bodies_are_taken_where_they_are_shorter() -> None:
    base, *links = chain(6).bodies
    for joints, chosen in ((3, 0), (4, 0), (5, 1), (6, 1)):  # six velocities more with the base
        robot = Mechanism("chain", [base, *links[:joints]])
        symbols = [ca.SX.sym("x", size) for size in (robot.nq, robot.nv, robot.nv - 6)]
        forces = ca.vertcat(ca.SX(6, 1), symbols[2])
        q, v, _ = symbols
        solved = solve_positive_definite(robot.mass_matrix(q), forces - robot.bias(q, v))
        results = [solved, forward_dynamics(robot, q, v, forces)]
        results.append(Plant(robot).acceleration(*symbols)[0])
        lengths = [
            ca.Function("f", symbols, [result], {"cse": True}).n_instructions()
            for result in results
        ]
        assert lengths[2] == lengths[chosen] < lengths[1 - chosen], (joints, lengths)
