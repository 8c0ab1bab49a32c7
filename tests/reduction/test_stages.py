"""Reduction in stages: unactuated joints that conserve their momentum.

The crane on a car with a column that turns freely has reference numbers, from a simulation with
multipliers outside this package. Other robots are held against Pinocchio, with lifts that
follow from linear equations on the velocity.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from concur.errors import ConcurError, NonFiniteError, ReductionError, ShapeError, UnknownNameError
from concur.reduction import (
    ReducedModel,
    StagedReduction,
    WheelReduction,
    reduce,
)
from concur.robot import Body, Inertia, Mechanism
from tests.oracles import (
    Constrained,
    CraneNumbers,
    Pinocchio,
    RoverNumbers,
    assert_close,
    crane,
    crane_rows,
    rover,
    rover_rows,
    rover_without_arm,
)
from tests.reduction._reduced import (
    Reference,
    simulate_momentum_form,
)
from tests.reduction._staged import (
    Lifted,
    ball_rover,
    carried,
    carrier,
    check_against,
    satellite,
)
from tests.reduction.test_crane import Q0, law, numbers
from tests.reduction.test_crane import STATES as CRANE_STATES

N = CraneNumbers()
S0 = np.array([0.15, 4, 0.3])  # psi1, psi2, phi2
THETA = -11.57579243454301


# time: q, v, reduced momentum of psi1, psi2 and phi2, energy
STATES = {
    1.0: (
        *CRANE_STATES[1.0][:2],
        numbers("1646.822569246 713.1592456887 -1.567423333650"),
        2708.56203641874,
    ),
    5.0: (
        *CRANE_STATES[5.0][:2],
        numbers("1767.966110287701 773.362072932733 20.308169884863"),
        7321.08614884243,
    ),
}


@pytest.fixture(scope="module")
def staged() -> StagedReduction:
    model = reduce(crane(undriven="column"), stages={"column": THETA})
    assert isinstance(model, StagedReduction)
    return model


@pytest.fixture(scope="module")
def full() -> Constrained:
    return Constrained(Pinocchio(crane()), crane_rows(N.l, N.b, N.c))


@pytest.fixture(scope="module")
def first(full: Constrained) -> Reference:
    return Reference(full, shape=[3, 4, 5, 7], dependent=[0, 1, 2, 6])


def test_stages_of_the_crane(staged: StagedReduction) -> None:
    assert staged.kind == "staged"
    assert (staged.stages, staged.joint, staged.theta) == (("column",), "column", (THETA,))
    assert staged.shape_names == ("axle", "left", "boom")
    assert staged.dependent == (0, 1, 2, 4, 6)
    assert isinstance(staged.first, WheelReduction)
    assert staged.inner is staged.first
    assert "then by `column`" in staged.reason


def test_connection_of_the_crane_is_the_closed_form(staged: StagedReduction) -> None:
    """Thesis: (4.5.33)-(4.5.35)."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = staged.robot.random(rng)
        d, sin = N.l - N.c * np.sin(q[3]), np.sin(q[3])
        lift, drift = staged.lift(q)
        np.testing.assert_allclose(lift[4], [-N.c * sin / d, -N.b * sin / d, 0], rtol=0, atol=1e-14)
        expected = np.zeros(8)
        expected[4] = THETA / N.column(q[7])
        np.testing.assert_allclose(drift, expected, rtol=1e-13, atol=0)


def test_two_form_of_the_crane_is_the_closed_form(staged: StagedReduction) -> None:
    """Thesis: (4.5.38)."""
    # The column's spin drops out of it: its inertia acts as a point mass.
    rng = np.random.default_rng(1)
    for _ in range(50):
        q, s = staged.robot.random(rng), rng.uniform(-3, 3, 3)
        sin, cos, d = np.sin(q[3]), np.cos(q[3]), N.l - N.c * np.sin(q[3])
        sigma = (N.c * s[0] + N.b * s[1]) / d
        vx, w = N.l * cos * sigma, sin * sigma
        wheel = ((N.l + N.c * sin) * sigma + N.c * s[0]) / N.b
        turning = (N.turning(q[7]) - N.column(q[7])) * w + N.steering * s[0]
        sum_of_both = (
            N.b * (N.c - N.l * sin) * N.total * vx
            + N.b * cos * turning
            + 2 * N.c * cos * N.j[3][1] * wheel
        )
        expected = np.zeros((3, 3))
        expected[0, 1] = -N.l / d**2 * sum_of_both
        expected[1, 0] = -expected[0, 1]
        assert_close(staged.two_form(q, staged.mass_matrix(q) @ s), expected, 1e-11)

        inner = staged.inner
        before = inner.two_form(q, inner.mass_matrix(q) @ staged.velocity(q, s)[[3, 4, 5, 7]])
        added = THETA * N.b * N.l * cos / d**2
        assert before[0, 2] + added == pytest.approx(expected[0, 1], rel=1e-10, abs=1e-9)


def test_motion_of_the_crane_in_momentum_form(staged: StagedReduction, first: Reference) -> None:
    """Thesis: (4.2.18), (4.2.19), Lemma 4.5.1, Theorem 4.5.2, (5.1.9), Proposition 4.2.14.

    Also (4.5.36)-(4.5.38).
    """
    q, p = simulate_momentum_form(staged, Q0, S0, law, list(STATES))
    for i, (q_end, v_end, p_end, energy) in enumerate(STATES.values()):
        assert_close(q[i], q_end, 1e-9)
        assert_close(p[i], p_end, 1e-9)
        v = staged.velocity(q[i], np.linalg.solve(staged.mass_matrix(q[i]), p[i]))
        assert_close(v, v_end, 1e-9)
        assert staged.hamiltonian(q[i], p[i]) == pytest.approx(energy, rel=1e-9)
        kept = first.lift(q[i])[:, 1] @ first.full.oracle.mass_matrix(q[i]) @ v
        assert kept == pytest.approx(THETA, rel=1e-12)


def test_idle_wheels_keep_their_momenta_when_nothing_is_off_the_axle() -> None:
    # The curvature acts on what lies in front of the axle only; without it all is constant.
    balanced = RoverNumbers(l0=0.0)
    robot = replace(rover_without_arm(balanced), actuated=())
    model = reduce(robot, stages={"left": 0.3, "right": -0.1})
    assert model.ns == 0
    one = reduce(robot, stages="auto")
    assert one.shape_names == ("right",)
    full = Constrained(Pinocchio(robot), lambda q: rover_rows(0.1, 0.25)(np.append(q, 0))[:, :5])
    reference = Reference(full, shape=[3, 4], dependent=[0, 1, 2])
    q0 = np.array([0.3, -0.2, 0.7, 0.4, -0.9])
    v0 = model.velocity(q0, np.zeros(0))
    p0 = reference.mass_matrix(q0) @ v0[[3, 4]]
    np.testing.assert_allclose(p0, [0.3, -0.1], rtol=0, atol=1e-14)
    _, v = full.simulate(q0, v0, lambda t, q, v: np.zeros(5), [3.0])
    np.testing.assert_allclose(v[0], v0, rtol=0, atol=1e-12)
    with pytest.raises(ReductionError, match="reactions of the wheels"):
        reduce(replace(rover_without_arm(), actuated=()), stages=["left"])


def floating_equations(robot: Mechanism, momentum: np.ndarray, theta: dict[str, np.ndarray]):
    """Spatial momentum on the base's group, and the whole robot's momenta of some joints."""
    oracle, nb = Pinocchio(robot), robot.base.joint.nv

    def equations(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mass, unit = oracle.mass_matrix(q), np.eye(robot.nv)
        spatial = np.column_stack([oracle.momentum(q, unit[:, i]) for i in range(robot.nv)])
        rows, values = [spatial[:nb]], [momentum[:nb]]
        for name, value in theta.items():
            joint = robot.bodies[robot.index(name)].joint
            rows.append(mass[robot.v_slice(name)])
            values.append(carried(joint, q[robot.q_slice(name)], value))
        return np.vstack(rows), np.concatenate(values)

    return oracle, equations


MU = np.array([1.2, -0.7, 0.5, 0.8, -1.1, 0.9])


def test_a_turning_group_that_is_not_abelian() -> None:
    robot, theta = carrier(), {"carrier": np.array([0.9, -0.5, 0.4])}
    model = reduce(robot, momentum=MU, stages=theta)
    assert model.seen_from == "parent"
    assert model.shape_names == ("first", "second")
    oracle, equations = floating_equations(robot, MU, theta)
    check_against(model, Lifted(oracle, equations, [6, 7]), oracle.forward_dynamics, 8)


def test_a_ball_of_equal_moments_keeps_its_momentum_in_its_own_axes() -> None:
    robot, theta = ball_rover(), np.array([0.3, -0.2, 0.5])
    model = reduce(robot, stages={"ball": theta})
    assert model.seen_from == "body"
    assert model.shape_names == ("left", "right", "arm")
    rows = np.zeros((3, robot.nv))
    rows[0, 1] = 1.0
    rows[1, [0, 2, 3]] = 1.0, -0.25, -0.1
    rows[2, [0, 2, 4]] = 1.0, 0.25, -0.1
    full = Constrained(Pinocchio(robot), lambda q: rows.astype(q.dtype))
    first = Reference(full, shape=list(range(3, 9)), dependent=[0, 1, 2])

    def equations(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kept = first.lift(q)[:, 3:].T @ full.oracle.mass_matrix(q)
        return np.vstack([rows, kept]), np.array([0, 0, 0, *theta])

    lifted = Lifted(full.oracle, equations, [3, 4, 5])
    check_against(model, lifted, lambda q, v, tau: full.acceleration(q, v, tau)[0], 10)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("robot", [satellite(), carrier()], ids=lambda robot: robot.name)
def test_the_base_of_a_floating_robot_is_such_a_stage_itself(robot: Mechanism) -> None:
    from concur.reduction._stages import further_stages

    plain = ReducedModel(robot, "unreduced", tuple(range(robot.nv)), (), "taken as it is")
    nb = robot.base.joint.nv
    one = further_stages(plain, ((robot.base.name, MU[:nb]),))
    other = reduce(robot, momentum=MU)
    assert one.seen_from == "parent"
    assert one.shape == other.shape
    rng = np.random.default_rng(11)
    for _ in range(5):
        q, s = robot.random(rng), rng.uniform(-1, 1, one.ns)
        u = rng.uniform(-1, 1, one.nu)
        for ours, theirs in zip(one.lift(q), other.lift(q), strict=True):
            assert_close(ours, theirs, 1e-12)
        p = one.mass_matrix(q) @ s
        assert_close(p, other.mass_matrix(q) @ s, 1e-12)
        assert_close(one.acceleration(q, s, u), other.acceleration(q, s, u), 1e-11)
        assert_close(one.vector_field(q, p, u)[1], other.vector_field(q, p, u)[1], 1e-11)


def test_stages_hold_from_measured_velocities_too(staged: StagedReduction) -> None:
    # A velocity that the lift admits is taken as it is, one that it does not is not corrected.
    rng = np.random.default_rng(12)
    for _ in range(5):
        q, s = staged.robot.random(rng), rng.uniform(-2, 2, 3)
        v, sdot = staged.velocity(q, s), rng.uniform(-2, 2, 3)
        assert_close(staged.shape_forces(q, v, sdot), staged.inverse_dynamics(q, s, sdot), 1e-12)
        v = v + staged.inner.lift(q)[0] @ [0.0, 0.5, 0.0, 0.0]  # another momentum of the column
        changed = replace(staged, theta=(THETA + 0.5 * N.column(q[7]),))
        assert_close(changed.velocity(q, s), v, 1e-12)
        ours = staged.shape_forces(q, v, sdot)
        assert_close(ours, changed.inverse_dynamics(q, s, sdot), 1e-11)


def test_auto_takes_every_joint_that_can_be_reduced() -> None:
    assert reduce(crane(undriven="column"), stages="auto").stages == ("column",)
    found = reduce(satellite(), stages="auto")
    assert found.stages == ("rotor", "second")
    assert found.theta == (0.0,)
    for robot in (crane(), rover(), crane(undriven="right")):
        model = reduce(robot, stages="auto")
        assert model.kind == "chaplygin"
        assert model == reduce(robot)


def test_a_model_says_when_it_could_be_reduced_further() -> None:
    assert 'stages="auto"' in reduce(crane(undriven="column")).reason
    assert "`column`" in reduce(crane(undriven="column")).reason
    for robot in (crane(), crane(undriven="boom"), crane(undriven="right")):
        assert "stages" not in reduce(robot).reason
    assert "stages" not in reduce(crane(undriven="column"), stages="auto").reason


@pytest.mark.extended
def test_momenta_are_zero_unless_given() -> None:
    robot = crane(undriven="column")
    assert reduce(robot, stages=["column"]).theta == (0.0,)
    assert reduce(robot, stages=("column",)) == reduce(robot, stages="auto")
    assert reduce(robot, stages={"column": [2]}).theta == (2.0,)
    assert reduce(robot, stages={"column": np.float64(2)}).theta == (2.0,)
    assert reduce(robot, stages=[]).kind == "chaplygin"
    still = reduce(robot, stages=["column"])
    np.testing.assert_array_equal(still.lift(Q0)[1], np.zeros(8))


@pytest.mark.extended
def test_the_same_stages_at_another_momentum() -> None:
    model = reduce(satellite(), momentum=MU, stages={"rotor": 0.7, "second": -0.2})
    other = model.at_momentum(2 * MU)
    expected = reduce(satellite(), momentum=2 * MU, stages={"rotor": 0.7, "second": -0.2})
    assert other == expected
    assert other.first.momentum == tuple(2 * MU)
    q, s = satellite().random(np.random.default_rng(14)), np.array([0.1, 0.2])
    np.testing.assert_array_equal(other.velocity(q, s), expected.velocity(q, s))


def test_a_momentum_can_end_a_stage() -> None:
    # Angular momentum about a moving point is constant only while nothing drifts.
    model = reduce(carrier(com=(0.1, 0.0, 0.05)), stages=["carrier"])
    assert model.stages == ("carrier",)
    assert model.at_momentum([0, 0, 0, 1, 2, 3]).stages == ("carrier",)
    with pytest.raises(ReductionError, match="`carrier`"):
        model.at_momentum(MU)


ROBOT = crane(undriven="column")


@pytest.mark.parametrize(
    ("stages", "error", "words"),
    [
        (np.array("column"), ReductionError, ["`stages`", '"auto", names of joints']),
        (np.ones((2, 2)), ReductionError, ["`stages`", '"auto", names of joints']),
        (np.ones(2), UnknownNameError, ["`stages`", "joint"]),
        ("column", ReductionError, ["`stages`", '"auto", names of joints', "'column'"]),
        (3, ReductionError, ["`stages`", "got 3"]),
        ({"column"}, ReductionError, ["`stages`", "a list of unactuated joints"]),
        ([["column"]], UnknownNameError, ["`stages`", "a joint", "['column']"]),
        (["boom"], ReductionError, ["`boom`", "its drive changes it", "u[boom]"]),
        (["left"], ReductionError, ["`left`", "two-form", "Xi[left, axle] s[axle]"]),
        (["colum"], UnknownNameError, ["column", "colum"]),
        (["right"], UnknownNameError, ["right", "shape joint"]),
        (["column", "column"], UnknownNameError, ["column"]),
        ({"column": [1.0, 2.0]}, ShapeError, ["`column`", "(1,)"]),
        ({"column": "fast"}, ShapeError, ["`column`"]),
        ({"column": np.nan}, NonFiniteError, ["`column`"]),
    ],
)
def test_bad_stages_are_refused(stages: object, error: type[Exception], words: list[str]) -> None:
    with pytest.raises(error) as caught:
        reduce(ROBOT, stages=stages)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("stages", [3, True, "rotor", {"rotor"}, ["roto"], [None]])
def test_bad_stages_of_robots_that_float_are_refused(stages: object) -> None:
    for robot in (satellite(), replace(satellite(), gravity=(0, 0, -9.81))):
        with pytest.raises(ConcurError, match="`stages`"):
            reduce(robot, stages=stages)


def test_an_undriven_joint_that_is_not_balanced_is_refused() -> None:
    boom = crane().bodies[-1]
    hung = replace(boom, inertia=Inertia(90.0, (0.001, 0, 0), (1.0, 45.0, 45.0)))
    bodies: list[Body] = [*crane().bodies[:-1], hung]
    robot = Mechanism("hung", bodies, crane().wheels, actuated=["axle", "left", "right", "boom"])
    with pytest.raises(ReductionError, match="the inertia depends on it"):
        reduce(robot, stages=["column"])
    assert reduce(robot, stages="auto").kind == "chaplygin"


def test_audit_of_an_undriven_joint_names_the_stage() -> None:
    robot = satellite()
    rows = {row.id: row for row in reduce(robot).audit()}
    for name in ("CON2", "CON3"):
        assert "`concur check --stages auto`" in rows[name].why
    assert reduce(robot, stages="auto").audit().holds
    lone = replace(robot, actuated=("turret", "rotor", "second"))
    assert "stages" not in reduce(lone).audit()["CON3"].why  # no joint to take
