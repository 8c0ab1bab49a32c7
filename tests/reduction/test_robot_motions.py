"""Ten seconds of robots on wheels of every kind, reduced stage by stage and at full order.

The motions with multipliers are those of `Plant`, and of a system of rows written by hand with
Pinocchio's dynamics. The same rows give the rate of each momentum: that is what the printed
momentum equations are held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from concur import robots
from concur.reduction import Conservation, ReducedModel, StagedReduction, conservation, reduce
from concur.robot import Mechanism, joints
from concur.simulation import Plant
from tests.oracles import (
    Constrained,
    Pinocchio,
    assert_close,
    crane_rows,
    difference_quotient,
    rover_rows,
)
from tests.oracles._kkt import (
    Rows,
    car_rows,
    mecanum_rows,
    sleigh_rows,
    snakeboard_rows,
    trailer_rows,
)
from tests.reduction._reduced import Law, Reference, simulate_acceleration_form, torques
from tests.reduction._rolling_robots import (
    KIWI_RADIUS,
    KIWI_REACH,
    Z,
    caster_rover,
    caster_rows,
    kiwi,
    kiwi_rows,
    rolling_ball,
    rolling_ball_rows,
    rover_on_a_ball,
    rover_on_a_ball_rows,
    skidding,
    skidding_rows,
    turned,
)

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
    stages : dict of str to float or sequence of float
        Momenta of the joints that keep theirs.
    pose : dict of str to float or sequence of float
        Joint coordinates at the start.
    twin : Mechanism, optional
        The robot in joints of the library, with the same coordinates.
    """

    robot: Mechanism
    rows: Rows
    speeds: dict[str, float]
    stages: dict[str, float | Sequence[float]] = field(default_factory=dict)
    pose: dict[str, float | Sequence[float]] = field(default_factory=dict)
    twin: Mechanism | None = None

    @property
    def oracle(self) -> Pinocchio:
        return Pinocchio(self.twin or self.robot)


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
    "caster and an arm on a ball joint": Case(
        caster_rover(shoulder=joints.Spherical()),
        caster_rows(11),
        {"left": 1.0, "right": 1.3},
        pose={"fork_1": 0.4, "shoulder": (0.36, 0.0, 0.48, 0.8), "elbow": 0.3},
    ),
    "two casters": Case(
        caster_rover(casters=2),
        caster_rows(9, 2),
        {"left": 1.0, "right": 1.3},
        pose={"fork_1": 0.4, "fork_2": -0.6},
    ),
    "steered by its caster": Case(
        caster_rover(shoulder=joints.Revolute(Z), driven=("fork_1", "caster_1")),
        caster_rows(9),
        {"caster_1": 2.0},
        pose={"fork_1": 0.4, "elbow": 0.3},
    ),
    "caster and a free flywheel": Case(
        caster_rover(flywheel=True),
        caster_rows(8),
        {"left": 1.0, "right": 1.3},
        {"flywheel": 0.05},
        pose={"fork_1": 0.4},
    ),
    "kiwi": Case(
        kiwi(),
        kiwi_rows(8),
        {"wheel_0": 1.0, "wheel_1": -1.5, "wheel_2": 0.8},
        pose={"shoulder": 0.3, "elbow": 0.4},
    ),
    "kiwi, free flywheel": Case(
        kiwi(flywheel=True),
        kiwi_rows(9),
        {"wheel_0": 1.0, "wheel_1": -1.5, "wheel_2": 0.8},
        {"flywheel": -0.04},
        pose={"shoulder": 0.3, "elbow": 0.4},
    ),
    "skidding": Case(
        skidding(),
        skidding_rows(9),
        {"fl": 1.0, "fr": 1.4, "base[vy]": 0.1},
        pose={"shoulder": 0.3, "elbow": 0.4},
    ),
    "rover on a rubber ball": Case(
        rover_on_a_ball(),
        rover_on_a_ball_rows(10),
        {"left": 1.0, "right": 1.3},
        pose={"shoulder": 0.3, "elbow": 0.4},
    ),
    "ball with a rotor": Case(
        rolling_ball("ball", pendulum=False),
        rolling_ball_rows("ball"),
        {"inside": 2.0},
        {"ball": (0.1, -0.05, 0.04)},
        twin=rolling_ball("ball", pendulum=False, twin=True),
    ),
    "ball with a pendulum": Case(
        rolling_ball("ball", pendulum=True),
        rolling_ball_rows("ball"),
        {"ball[wx]": 0.5, "ball[wy]": -0.8, "ball[wz]": 0.4},
        twin=rolling_ball("ball", pendulum=True, twin=True),
    ),
    "rubber ball with a pendulum": Case(
        rolling_ball("rubber_ball", pendulum=True),
        rolling_ball_rows("rubber_ball"),
        {"place[vx]": 0.1, "place[vy]": 0.2},
        twin=rolling_ball("rubber_ball", pendulum=True, twin=True),
    ),
}


LONG = {
    "crane_car",
    "car_arm",
    "mecanum_arm",
    "snakeboard",
    "two casters",
    "steered by its caster",
    "kiwi, free flywheel",
    "rover on a rubber ball",
    "ball with a pendulum",
}
names = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in CASES]
)


@cache
def first_stage(name: str) -> ReducedModel:
    return reduce(CASES[name].robot)


def joint_rows(model: ReducedModel, joint: str) -> list[int]:
    """Places of a joint's velocities in those of the shape."""
    freedoms = range(*model.robot.v_slice(joint).indices(model.nv))
    return [model.shape.index(i) for i in freedoms]


def axes_of_parent(robot: Mechanism, joint: str, q: np.ndarray) -> np.ndarray:
    """From the joint's own axes to those of the frame it attaches to."""
    kind = robot.bodies[robot.index(joint)].joint
    if isinstance(kind, joints.Spherical):
        return turned(q[robot.q_slice(joint)])
    return np.eye(kind.nv)


def gentle(case: Case, model: ReducedModel, q0: np.ndarray) -> Law:
    """Sines, in the size of each drive's inertia, that hold the robot up; wheels slow down."""
    robot, oracle = model.robot, case.oracle
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
        push -= np.where(held, 1.5 * robot.difference(q0, q)[drives], 0.0)
        tau = np.zeros(robot.nv)
        tau[drives] = oracle.bias(q, still)[drives] + size * push
        return tau

    return law


def case_reference(case: Case, model: ReducedModel) -> Reference:
    full = Constrained(case.oracle, case.rows)
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


@pytest.mark.extended
@names
def test_reduced_motion_is_that_at_full_order(name: str) -> None:
    case = CASES[name]
    first = first_stage(name)
    last = reduce(case.robot, stages=case.stages)
    assert reduce(case.robot, stages="auto").shape == last.shape
    assert (last.stages if isinstance(last, StagedReduction) else ()) == tuple(case.stages)

    q0 = case.robot.neutral()
    place = case.robot.base.joint.nq
    q0[:place] = (1.0, -2.0, 0.4)[:place]
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
            rows = joint_rows(first, joint)
            kept = [
                axes_of_parent(case.robot, joint, at)
                @ reference.lift(at)[:, rows].T
                @ reference.full.oracle.mass_matrix(at)
                @ moving
                for at, moving in zip(q, v, strict=True)
            ]
            size = np.abs(theta).max()
            np.testing.assert_allclose(
                kept, np.tile(theta, (len(TIMES), 1)), rtol=0, atol=1e-10 * size
            )
    # Something has happened.
    assert np.abs(q_full[-1][:place] - q0[:place]).max() > 0.05
    if name.startswith("kiwi"):
        # The spins give the angle of the base.
        turns = KIWI_RADIUS / (3 * KIWI_REACH) * q_full[:, 3:6].sum(axis=1) + q_full[:, 2]
        np.testing.assert_allclose(turns, q0[2], rtol=1e-10)


def by_equation(
    model: ReducedModel, reference: Reference, found: Conservation, q: np.ndarray, s, u
) -> np.ndarray:
    """Evaluate a momentum equation as it is printed, in the joint's own axes."""
    robot, rows = model.robot, joint_rows(model, found.joint)
    lift, equation = reference.lift(q), found.equation
    p = reference.mass_matrix(q) @ s
    total = np.zeros(len(rows))
    if equation.endswith(" = 0"):
        return total

    def slope(function) -> np.ndarray:
        return np.array(
            [
                difference_quotient(lambda h, k=k: function(robot.integrate(q, h * lift[:, k])))
                for k in rows
            ]
        )

    if " dT/d" in equation:
        total += slope(lambda x: s @ reference.mass_matrix(x) @ s / 2)
    if "ad*_v" in equation:
        total += np.cross(p[rows], s[rows])
    if "- dV/d" in equation:
        total -= slope(reference.full.oracle.potential_energy)
    for leg in found.legs:
        assert f"+ Xi[{found.joint}, {leg}] s[{leg}]" in equation.replace("= ", "= + ")
        other = model.shape_names.index(leg)
        total += model.two_form(q, p)[rows, other] * s[other]
    for control in found.controls:
        assert f"u[{control}]" in equation
        k = model.control_names.index(control)
        total += lift[robot.actuated_freedoms[k], rows] * u[k]
    return total


@pytest.mark.by_default(4)
@names
def test_momenta_obey_their_equations(name: str) -> None:
    case, model = CASES[name], first_stage(name)
    reference, robot = case_reference(case, model), case.robot
    whole = [
        body.name
        for body in robot.bodies
        if body.joint.nv
        and set(range(*robot.v_slice(body.name).indices(robot.nv))) <= set(model.shape)
    ]
    answers = [conservation(model, joint) for joint in whole]
    assert {found.joint for found in answers if found.conserved} == set(case.stages)
    rng, states = np.random.default_rng(7), 0
    while states < 3:
        q = robot.random(rng)
        if model.regularity(q) < 0.02:
            continue
        states += 1
        s, u = rng.uniform(-1, 1, model.ns), rng.uniform(-3, 3, model.nu)
        rate = reference.momentum_rate(q, s, torques(model, u))
        p = reference.mass_matrix(q) @ s
        assert_close(model.vector_field(q, p, u)[1], rate, 1e-7)
        for found in answers:
            rows = joint_rows(model, found.joint)
            own = rate[rows]
            if found.seen_from == "parent" and len(rows) == 3:
                own = own + np.cross(s[rows], p[rows])
            expected = by_equation(model, reference, found, q, s, u)
            assert_close(expected, own, 1e-7, name=found.equation)
