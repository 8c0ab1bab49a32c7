"""Ten seconds of every wheeled robot, reduced stage by stage and at full order.

The motions with multipliers are those of `Plant`, and of a system of rows written by hand with
Pinocchio's dynamics.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from concur import robots
from concur.multibody import Mechanism
from concur.reduction import ReducedModel, StagedReduction, reduce
from concur.simulation import Plant
from tests.oracles import Constrained, Pinocchio, assert_close, crane_rows, rover_rows
from tests.oracles._kkt import (
    Rows,
    car_rows,
    mecanum_rows,
    sleigh_rows,
    snakeboard_rows,
    trailer_rows,
)
from tests.reduction._reduced import Law, Reference, simulate_acceleration_form

TIMES = [5.0, 10.0]


@dataclass(frozen=True)
class Case:
    """A robot, its rows by hand, the speed of its wheels, and momenta of stages.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    rows : callable
        Rows by hand.
    speeds : dict of str to float
        Shape velocities at the start.
    stages : dict of str to float
        Momenta of the joints that keep theirs.
    pose : dict of str to float
        Joint angles at the start.
    """

    robot: Mechanism
    rows: Rows
    speeds: dict[str, float]
    stages: dict[str, float] = field(default_factory=dict)
    pose: dict[str, float] = field(default_factory=dict)


def without_drive(robot: Mechanism, name: str) -> Mechanism:
    return replace(robot, actuated=[n for n in robot.actuated or () if n != name])


ROLLING = {"left_wheel": 1.0, "right_wheel": 1.3}
BENT = {f"joint_{i}": angle for i, angle in enumerate((0.3, 0.6, -0.2, 1.1, 0.4, 0.5), 1)}

CASES = {
    "rover_arm": Case(
        robots.rover_arm(),
        rover_rows(0.1, 0.25),
        ROLLING,
        pose={"turret": 0.2, "upper_arm": 0.4, "forearm": -0.8},
    ),
    "crane_car": Case(
        without_drive(robots.crane_car(), "column"),
        crane_rows(2.5, 0.3, 0.7),
        {"left_wheel": 2.0},
        {"column": 30.0},
    ),
    "car_arm": Case(
        robots.car_arm(),
        car_rows(0.8, 0.15, 0.28, 10),
        {"left_wheel": 1.5},
        pose={"steering": 0.2, "turret": 0.4, "upper_arm": -0.5, "forearm": 1.0, "hand": 0.3},
    ),
    "mecanum_arm": Case(
        robots.mecanum_arm(),
        mecanum_rows(0.35, 0.3, 0.12, 14),
        {"front_left": 1.0, "front_right": 2.0, "rear_left": -0.5},
        pose=BENT,
    ),
    "tractor_trailers": Case(
        robots.tractor_trailers(),
        trailer_rows(0.3, 0.5, (0.6, 0.5), (1.6, 1.6)),
        ROLLING,
        pose={"first_trailer": 0.3, "second_trailer": -0.2},
    ),
    "chaplygin_sleigh": Case(
        robots.chaplygin_sleigh(), sleigh_rows(0.0), {"sleigh[vx]": 0.4, "sleigh[omega]": 0.8}
    ),
    "snakeboard": Case(
        robots.snakeboard(),
        snakeboard_rows(0.25),
        {"board[vx]": 0.3},
        pose={"front_skate": 0.5, "rear_skate": -0.4},
    ),
    "snakeboard, free rotor": Case(
        without_drive(robots.snakeboard(), "rotor"),
        snakeboard_rows(0.25),
        {"board[vx]": 0.3},
        {"rotor": 0.05},
        pose={"front_skate": 0.5, "rear_skate": -0.4},
    ),
}


def gentle(case: Case, model: ReducedModel, q0: np.ndarray) -> Law:
    """Sines, in the size of each drive's inertia, that hold the robot up; wheels slow down."""
    robot, oracle = model.robot, Pinocchio(case.robot)
    drives = list(robot.actuated_freedoms)
    rolling = {robot.v_slice(w.body).start for w in robot.wheels if w.kind != "slider"}
    held = np.array([i not in rolling for i in drives])
    size = np.diag(case_reference(case, model).mass_matrix(q0))[
        [model.shape.index(i) for i in drives]
    ]
    rng = np.random.default_rng(5)
    frequency, phase = rng.uniform(0.5, 1.5, len(drives)), rng.uniform(0, 6, len(drives))
    still = np.zeros(robot.nv)

    def law(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        push = 0.6 * np.sin(frequency * t + phase) - np.where(held, 2.0, 0.2) * v[drives]
        push -= np.where(held, 1.5 * (q - q0)[drives], 0.0)
        tau = np.zeros(robot.nv)
        tau[drives] = oracle.bias(q, still)[drives] + size * push
        return tau

    return law


def case_reference(case: Case, model: ReducedModel) -> Reference:
    full = Constrained(Pinocchio(case.robot), case.rows)
    return Reference(full, model.first.shape, model.first.dependent)


def with_plant(
    robot: Mechanism, q0: np.ndarray, v0: np.ndarray, law: Law
) -> tuple[np.ndarray, np.ndarray]:
    plant, nq, drives = Plant(robot), robot.nq, list(robot.actuated_freedoms)

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:nq], x[nq:]
        vdot, _ = plant.acceleration(q, v, law(t, q, v)[drives])
        return np.concatenate([robot.rate(q, v), vdot])

    found = solve_ivp(
        rate,
        (0.0, TIMES[-1]),
        np.concatenate([q0, v0]),
        method="DOP853",
        t_eval=TIMES,
        rtol=1e-12,
        atol=1e-13,
    )
    assert found.success, found.message
    return found.y[:nq].T, found.y[nq:].T


@pytest.mark.parametrize("name", CASES)
def test_reduced_motion_is_that_at_full_order(name: str) -> None:
    case = CASES[name]
    first = reduce(case.robot)
    last = reduce(case.robot, stages=case.stages)
    assert reduce(case.robot, stages="auto").shape == last.shape
    assert (last.stages if isinstance(last, StagedReduction) else ()) == tuple(case.stages)

    q0 = case.robot.neutral()
    q0[:3] = 1.0, -2.0, 0.4
    for joint, angle in case.pose.items():
        q0[case.robot.q_slice(joint)] = angle
    s0 = np.array([case.speeds.get(joint, 0.0) for joint in last.shape_names])
    assert set(case.speeds) <= set(last.shape_names)
    v0 = last.velocity(q0, s0)
    law, reference = gentle(case, first, q0), case_reference(case, first)

    q_full, v_full = reference.full.simulate(q0, v0, law, TIMES)
    motions = [(q_full, v_full), with_plant(case.robot, q0, v0, law)]
    for model in dict.fromkeys((first, last)):
        q, s = simulate_acceleration_form(model, q0, v0[list(model.shape)], law, TIMES)
        v = np.array([model.velocity(*state) for state in zip(q, s, strict=True)])
        motions.append((q, v))
    for q, v in motions:
        assert_close(q, q_full, 1e-8)
        assert_close(v, v_full, 1e-8)
        for joint, theta in case.stages.items():
            k = first.shape.index(case.robot.v_slice(joint).start)
            kept = [
                reference.lift(at)[:, k] @ reference.full.oracle.mass_matrix(at) @ moving
                for at, moving in zip(q, v, strict=True)
            ]
            np.testing.assert_allclose(kept, theta, rtol=1e-10)
    # Something has happened.
    assert np.abs(q_full[-1][:3] - q0[:3]).max() > 0.05
