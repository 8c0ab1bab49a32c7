"""Bounds over cells contain the law's own torques, margins and speeds, and are near the worst."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from concur._polynomials import Space
from concur.proofs._imperfections import disturbances
from concur.proofs._prove import Prover, stack_of_lattices
from concur.proofs._statement import Statement
from concur.simulation import Plant
from tests.proofs._rover import NEAR, prover, rover, states, swept

T = 0.05
RATES = ("torque_rate", "held")
ROWS = (slice(0, 2), slice(2, 5))


@pytest.mark.extended
def test_states_in_the_tube_stay_within_all_bounds() -> None:
    case, servo = prover(T), rover().servo
    (x, ve, wall), found, _ = swept(case, np.array([0.02, 0.15]), 0.0125)
    rng = np.random.default_rng(1)
    worst = np.zeros((len(case.first), 5))
    for _ in range(200):
        step = int(rng.integers(case.count))
        t = case.step * (step + rng.uniform())
        q, s = states(case, rng, t, x[:, step], ve[:, step], wall[step])
        k = int(np.searchsorted(case.first, step, side="right")) - 1
        sample = rover().reference(t)
        u, pivot, *_ = servo.law(q, s, sample.flat_pose, sample.twist, sample.acceleration)
        largest = found[k]
        assert (np.abs(u) <= largest["torque"]).all()
        assert (np.abs(s) <= largest["speed"]).all()
        assert (q[5:] <= largest["high"]).all()
        assert (q[5:] >= -largest["low"]).all()
        assert servo.margin(q) >= -largest["margin"]
        assert pivot >= -largest["pivot"]
        worst[k] = np.maximum(worst[k], np.abs(u))
    torque = np.max([largest["torque"] for largest in found], axis=0)
    assert (torque < [1.2, 1.3, 1.2, 1.2, 1.3] * worst.max(axis=0)).all()


def test_rates_of_torques_are_those_of_differences_of_the_law() -> None:
    """In a thin tube about a motion that turns, the bounds have no room for a wrong term."""
    task, servo, still = rover(), rover().servo, np.zeros(2)
    case = Prover(servo, task.reference, 0.01, task.q0, [-1.0, 3.0, 0.3, -0.2, 0.4])
    thin = Statement((1e-6, 1e-6), (1e-6, 1e-6), 1e-6)
    _, found, _ = swept(case, np.full(2, 1e-6), 0.001, statement=thin)
    rng, step = np.random.default_rng(0), 1e-4

    def torques(t: float) -> np.ndarray:
        sample = rover().reference(t)
        q, s = states(case, rng, t, still, still, 0.0)
        return np.asarray(servo.law(q, s, sample.flat_pose, sample.twist, sample.acceleration)[0])

    largest = {name: np.max([part[name] for part in found], axis=0) for name in RATES}
    worst = {name: np.zeros_like(values) for name, values in largest.items()}
    for t in np.linspace(0.0005, 0.0095, 4):
        q = states(case, rng, t, still, still, 0.0)[0]
        rate = (torques(t + step) - torques(t - step)) / (2 * step)
        d = servo.decoupling(q) @ np.linalg.inv(servo.model.mass_matrix(q)) @ rate
        own = {
            "torque_rate": np.abs(rate),
            "held": np.array([np.linalg.norm(d[:2]), np.linalg.norm(d[2:])]),
        }
        worst = {name: np.maximum(worst[name], own[name]) for name in worst}
    for name, bound in largest.items():
        room = 0.05 * bound.max()
        assert (worst[name] <= bound * (1 + 1e-4)).all(), name
        assert (bound <= 1.06 * worst[name] + room).all(), name


@pytest.mark.extended
@pytest.mark.parametrize("sizes", [(1.0, 5.0), (3.0, 0.0)])
def test_disturbances_accelerate_the_states_of_rates_and_forces(sizes) -> None:
    """In a thin tube, where bounds without the disturbance would be far too small."""
    servo, thin = rover().servo, Statement((1e-6, 1e-6), (1e-6, 1e-6), 1e-6)
    model, robot, rng, h = servo.model, servo.model.robot, np.random.default_rng(9), 1e-5
    case = Prover(servo, rover().reference, 0.01, rover().q0, [-1.0, 3.0, 0.3, -0.2, 0.4])
    still = np.zeros(2)
    tube = case.tube(thin, np.zeros((2, case.count)))
    lattices = stack_of_lattices(case.robot, 0.001, thin)
    largest, _, fault = case.segment(thin, 0, tube, np.array(sizes), lattices)
    assert not fault
    t = 0.4 * case.step * float(case.last[0])
    q, s = states(case, rng, t, still, still, 0.0)
    v, outputs = servo.velocity(q, s), servo.decoupling(q)
    response = outputs @ np.linalg.inv(model.mass_matrix(q))
    heavy = []
    for body in robot.bodies:
        moments = 0.01 * body.inertia.tensor[np.triu_indices(3)][[0, 3, 5, 1, 2, 4]]
        more = {
            f"{body.name}.inertia.mass": 0.01 * body.inertia.mass,
            f"{body.name}.inertia.moments": moments,
        }
        plant = Plant(
            robot, uncertain=[f"{body.name}.inertia.mass", f"{body.name}.inertia.moments"]
        )
        heavy.append(cc.reduce(plant.rebuilt(more)))

    def law(e: float, true: np.ndarray) -> np.ndarray:
        sample = rover().reference(t + e)
        given = sample.flat_pose, sample.twist, sample.acceleration
        return np.asarray(servo.law(q + e * robot.rate(q, v), s + e * true, *given)[0])

    def motion(d: np.ndarray) -> np.ndarray:
        """Rates of the command, and forces of each body."""
        free = model.acceleration(q, s, law(0.0, 0 * s))
        true = free + np.linalg.solve(outputs, d)
        whole = model.shape_forces(q, v, true)
        forces = [100 * (one.shape_forces(q, v, true) - whole) for one in heavy]
        return np.vstack([(law(h, true) - law(-h, true)) / (2 * h), *forces])

    rest = motion(np.zeros(5))
    slopes = np.array([motion(d) - rest for d in np.eye(5)])
    ways = rng.normal(size=(20_000, 5))
    for rows, size in zip(ROWS, sizes, strict=True):
        ways[:, rows] *= size / np.linalg.norm(ways[:, rows], axis=1, keepdims=True)
    found = rest + np.einsum("kd,dij->kij", ways, slopes)
    pushed = np.einsum("oi,kji->kjo", response, found)
    norms = np.array([np.linalg.norm(pushed[..., rows], axis=2) for rows in ROWS])
    worst = {
        "torque_rate": np.abs(found[:, 0]).max(axis=0),
        "held": norms[..., 0].max(axis=1),
        "weights": norms[..., 1:].sum(axis=2).max(axis=1),
    }
    for name, value in worst.items():
        bound = largest[name]
        assert (value <= bound).all(), name
        assert (bound < 1.3 * value + 1e-3 * bound.max()).all(), (name, bound / value)


def test_forces_of_bodies_are_those_of_robots_with_other_masses() -> None:
    """They sum up to the law's, and one percent more of a body adds one percent of its own."""
    case, task = prover(T), rover()
    robot, servo = task.robot, task.servo
    rng = np.random.default_rng(3)
    q = np.array(task.q0, dtype=float)
    q[:5] = 0.0
    phi, s, a = q[5:], rng.normal(size=5), rng.normal(size=5)
    space = Space((1,))
    constants = [[space.constant(x) for x in part] for part in (phi, s, a)]
    graph = case.robot.graph
    walker = case.robot.walker([graph.phi, graph.s, graph.true], [graph.parts[1]])
    weights = np.array([[m.c[0] for m in row] for row in walker(*constants)[0]])
    model = servo.model
    v = servo.velocity(q, s)
    whole = model.shape_forces(q, v, a)
    assert weights.sum(axis=1) == pytest.approx(whole, abs=1e-9)
    body = robot.bodies[4]
    plant = Plant(robot, uncertain=[f"{body.name}.inertia.mass", f"{body.name}.inertia.moments"])
    moments = np.zeros(6)
    moments[:3] = 0.01 * np.diag(body.inertia.tensor)
    world = {
        f"{body.name}.inertia.mass": 0.01 * body.inertia.mass,
        f"{body.name}.inertia.moments": moments,
    }
    heavier = cc.reduce(plant.rebuilt(world))
    changed = heavier.shape_forces(q, v, a) - whole
    assert changed == pytest.approx(0.01 * weights[:, 4], abs=1e-9)


def test_held_torques_count_the_segment_before() -> None:
    rate = np.array([[1.0, 5.0, 2.0]])
    largest = {
        "weights": np.full((2, 3), 2.0),
        "response": np.ones((2, 1, 3)),
        "response_rate": np.full((2, 1, 3), 100.0),
        "torque_rate": rate,
        "held": np.vstack([rate, 2 * rate]),
    }
    found = disturbances(NEAR, largest)
    assert found["period and delay"][0] == pytest.approx([0.0011, 0.0055, 0.0055])
    assert found["period and delay"][1] == pytest.approx([0.0021, 0.0105, 0.0105])
    assert found["masses"][0] == pytest.approx([0.01] * 3)
    late = disturbances(replace(NEAR, delay=0.002), largest)["period and delay"]
    assert late[0] == pytest.approx([0.0039, 0.0195, 0.0195])
    assert found["push"].max() == 0.0
