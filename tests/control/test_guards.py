"""What must not happen quietly: stale torques, hidden singularities, shared or copied state."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from concur.control import Servo, decoupling_margins
from concur.errors import NonFiniteError, OutputError, SingularConfigurationError
from concur.outputs import Output, ReferenceSample
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from concur.simulation import Plant, simulate
from concur.simulation._record import Recorder
from tests.control._cases import Q0, S0, case_study, case_study_reference, case_study_sample
from tests.oracles import rover

LINK = Inertia(1.0, (0.2, 0, 0), (0.01, 0.02, 0.02))


def two_link_arm(base_mass: float) -> Servo:
    robot = Mechanism(
        "2R",
        [
            Body("floor", joints.Fixed(), inertia=Inertia(base_mass)),
            Body("upper", joints.Revolute((0, 0, 1)), "floor", inertia=LINK),
            Body("fore", joints.Revolute((0, 0, 1)), "upper", Pose((0.4, 0, 0)), LINK),
        ],
    )
    return Servo(reduce(robot), [Output("tip", "fore", "R2", (0.4, 0, 0))], 1.0, 2.0)


def bicycle() -> Servo:
    wheel = Inertia(0.5, moments=(0.001, 0.002, 0.001))
    robot = Mechanism(
        "bicycle",
        [
            Body("frame", joints.Planar(), inertia=Inertia(10.0, (0.5, 0, 0), (1, 1, 1))),
            Body("rear", joints.Revolute((0, 1, 0)), "frame", inertia=wheel),
            Body("fork", joints.Revolute((0, 0, 1)), "frame", Pose((1, 0, 0)), LINK),
            Body("front", joints.Revolute((0, 1, 0)), "fork", inertia=wheel),
        ],
        [Wheel("rear", 0.3), Wheel("front", 0.3)],
        actuated=["rear", "fork"],
    )
    return Servo(reduce(robot), [Output("nose", "fork", "R2", (0.2, 0, 0))], 1.0, 2.0)


def test_margin_does_not_know_the_mass_of_what_cannot_move() -> None:
    q = [0.3, 1e-4]
    margins = [two_link_arm(mass).margin(q) for mass in (0.0, 10.0, 1e8)]
    assert margins == pytest.approx([margins[0]] * 3, rel=1e-12)
    assert margins[0] < 1e-3


@pytest.mark.parametrize("elbow", [1e-5, 1e-7])
def test_tick_refuses_what_torque_refuses(elbow: float) -> None:
    law = two_link_arm(5.0)
    sample = case_sample(law, [0.3, 0.5])
    for call in (law.torque, law.compile()):
        with pytest.raises(SingularConfigurationError) as caught:
            call([0.3, elbow], [0.0, 0.0], sample)
        assert caught.value.margin < law.singular_margin


@pytest.mark.parametrize("options", [{}, {"torque_limits": 5.0}, {"damping_threshold": 0.05}])
def test_impossible_demand_is_not_called_singular(options: dict[str, float]) -> None:
    law = replace(two_link_arm(5.0), **options)  # type: ignore[arg-type]
    q, still = np.array([0.3, 0.5]), np.zeros(2)
    sample = ReferenceSample(law.output(q), still, np.full(2, 1e308))
    for call in (law.torque, law.compile()):
        with pytest.raises(NonFiniteError, match="`acceleration`: expected numbers up to"):
            call(q, still, sample)
    if not options:
        # Coriolis forces beyond the bound of the numbers that come in.
        for call in (law.torque, law.compile()):
            with pytest.raises(NonFiniteError, match="commanded acceleration is too large"):
                call(q, np.full(2, 1e12), case_sample(law, q))


def case_sample(law: Servo, q: object) -> ReferenceSample:
    return ReferenceSample(law.output(q), np.zeros(law.size), np.zeros(law.size))


def test_wheels_that_stop_determining_the_base_stop_the_law() -> None:
    law = bicycle()
    straight = law.model.robot.neutral()
    across = straight.copy()
    across[4] = np.pi / 2 - 1e-5
    sample = case_sample(law, straight)
    assert np.isfinite(law.torque(straight, [1.0, 0.0], sample)).all()
    assert law.margin(across) < 1e-4
    for call in (law.torque, law.compile()):
        with pytest.raises(SingularConfigurationError, match="rolling constraints no longer"):
            call(across, [1.0, 0.0], sample)


def towed(trail: float = 0.05) -> Servo:
    """A base that a steered wheel drives; with 0.05 m of trail it runs below the axle's middle."""
    platform = rover().bodies[:3]
    fork = Inertia(0.8, (-0.03, 0, 0), (0.01, 0.008, 0.006))
    wheel = Inertia(0.6, moments=(0.001, 0.0018, 0.001))
    steered = [
        Body("fork", joints.Revolute((0, 0, 1)), "chassis", Pose((0.05, 0, 0)), fork),
        Body("wheel", joints.Revolute((0, 1, 0)), "fork", Pose((-trail, 0, -0.04)), wheel),
    ]
    wheels = [Wheel("left", 0.1), Wheel("right", 0.1), Wheel("wheel", 0.06)]
    robot = Mechanism("towed", [*platform, *steered], wheels, actuated=["fork", "wheel"])
    return Servo(reduce(robot), [Output("nose", "chassis", "R2", (0.3, 0, 0))], 4.0, 4.0)


@pytest.mark.by_default(5)
@pytest.mark.parametrize("options", [{}, {"torque_limits": 5.0}, {"damping_threshold": 1e-3}])
@pytest.mark.parametrize("angle", [0.0, 1e-6, 1e-3])
def test_controls_without_leverage_stop_the_law(angle: float, options: dict[str, float]) -> None:
    # Straight ahead the fork turns over its own contact: it moves nothing, and nothing moves it.
    law = replace(towed(), **options)  # type: ignore[arg-type]
    q = law.model.robot.neutral()
    q[5] = angle
    sample = ReferenceSample(law.output(q) + 0.1, np.zeros(2), np.zeros(2))
    assert law.margin(q) < law.singular_margin  # of the whole map, not of J H alone
    for call in (law.torque, law.compile()):
        with pytest.raises(SingularConfigurationError, match="fork, wheel do not push along"):
            call(q, np.zeros(2), sample)


def test_gains_are_copies_that_cannot_change() -> None:
    gain = 4.0 * np.eye(5)
    law = case_study(stiffness=gain)
    before = law.error_dynamics.feedback(np.ones(5), np.zeros(5))
    gain[0, 0] = -100.0
    assert np.array_equal(law.error_dynamics.feedback(np.ones(5), np.zeros(5)), before)
    with pytest.raises(ValueError, match="read-only"):
        law.stiffness[0, 0] = 1.0


def test_servo_and_run_survive_pickling() -> None:
    law = case_study()
    law.torque(Q0, S0, case_study_sample(0.0))
    again = pickle.loads(pickle.dumps(law))
    assert np.array_equal(
        again.torque(Q0, S0, case_study_sample(0.0)), law.torque(Q0, S0, case_study_sample(0.0))
    )
    run = simulate(law.model.robot, law, case_study_reference(), 0.05, Q0, S0)
    back = pickle.loads(pickle.dumps(run))
    assert np.array_equal(back.q, run.q)
    assert back.servo.model.shape_names == run.servo.model.shape_names


def test_plant_with_larger_wheels_starts_without_slip() -> None:
    law = case_study()
    robot = law.model.robot
    plant = replace(robot, wheels=[replace(wheel, radius=0.11) for wheel in robot.wheels])
    run = simulate(robot, law, case_study_reference(), 0.2, Q0, [5.0, 5.0, 0, 0, 0], plant=plant)
    assert run.constraint_residual.max() < 1e-12
    assert run.v[0, 0] == pytest.approx(0.55)
    assert np.abs(run.error[-1] - run.ideal[-1]).max() > 1e-3  # the law believes in 0.10 m


def test_error_dynamics_start_at_the_first_time() -> None:
    for law in (case_study(), replace_output_by_rotation()):
        dynamics = law.error_dynamics
        x = np.full(dynamics.size, 0.1)
        late = dynamics.solve(x, 0 * x, np.array([1.0, 1.5, 2.0]))
        early = dynamics.solve(x, 0 * x, np.array([0.0, 0.5, 1.0]))
        assert late == pytest.approx(early, abs=1e-9)
        assert late[0] == pytest.approx(x)


def replace_output_by_rotation() -> Servo:
    robot = Mechanism(
        "gimbal",
        [
            Body("floor", joints.Fixed()),
            Body("ball", joints.Spherical(), "floor", inertia=Inertia(1.0, moments=(1, 2, 2.5))),
        ],
    )
    return Servo(reduce(robot), [Output("look", "ball", "SO3")], 4.0, 3.0)


def test_body_without_heading_is_refused() -> None:
    up = Pose(rotation=(0.5, -0.5, 0.5, 0.5))
    robot = Mechanism(
        "mast",
        [
            Body("floor", joints.Fixed()),
            Body("mast", joints.Revolute((1, 0, 0)), "floor", up, Inertia(1.0, moments=(1, 1, 1))),
        ],
    )
    model = reduce(robot)
    assert abs(robot.pose([0.7], "mast")[2, 0]) == pytest.approx(1.0)  # its x axis is vertical
    with pytest.raises(OutputError, match="no heading"):
        Servo(model, [Output("turn", "mast", "SO2")], 1.0, 1.0)


def hinged_point_mass() -> Servo:
    """An arm of two massless links with a point mass: stretched, its mass matrix is singular."""
    robot = Mechanism(
        "point mass",
        [
            Body("floor", joints.Fixed()),
            Body("upper", joints.Revolute((0, 0, 1)), "floor"),
            Body(
                "fore",
                joints.Revolute((0, 0, 1)),
                "upper",
                Pose((0.4, 0, 0), (0, 0, np.sqrt(0.5), np.sqrt(0.5))),
                Inertia(2.0, (0.4, 0, 0)),
            ),
        ],
    )
    return Servo(reduce(robot), [Output("tip", "fore", "R2", (0.4, 0, 0))], 1.0, 2.0)


def test_margin_vanishes_where_the_mass_matrix_is_singular() -> None:
    # Elsewhere it is one: sqrt(m) J is a root of the mass matrix of a point mass.
    law = hinged_point_mass()
    straight = np.array([0.3, -np.pi / 2])
    assert np.linalg.det(law.model.mass_matrix(straight)) < 1e-16
    assert law.margin([0.3, 0.2]) == pytest.approx(1.0, rel=1e-12)
    assert law.margin(straight) < 1e-6
    with pytest.raises(SingularConfigurationError):
        law.torque(straight, np.zeros(2), case_sample(law, [0.3, 0.2]))


def test_margins_of_many_configurations_survive_the_bad_ones() -> None:
    law = two_link_arm(5.0)
    weight = law.margins.scales[0][0]
    rows = np.tile(np.diag([3.0, 8.0]) / weight, (7, 1, 1))
    mass = np.tile(np.diag([4.0, 16.0]), (7, 1, 1))  # margin 3/2 by hand
    regularity = np.ones(7)
    mass[1] = [[1.0, 2.0], [2.0, 1.0]]  # no metric
    mass[2, 0, 1] = np.nan
    rows[3, 0, 0] = np.inf
    regularity[4] = 0.25
    rows[5], regularity[5] = np.nan, 1e-12
    rows[6], regularity[6] = np.nan, np.nan
    margins = decoupling_margins(law.margins.scales[0], rows, mass, regularity)
    np.testing.assert_allclose(margins, [1.5, 0, 0, 0, 0.25, 1e-12, 0], rtol=1e-14)


def test_recorded_margins_near_and_in_a_singular_configuration() -> None:
    # The wheels stop determining the base where 0.1 cos(angle) = 0.05.
    law = towed(trail=0.1)
    recorder = Recorder(law, Plant(law.model.robot))
    across = np.arccos(0.5)
    angles = across - np.array([0.5, 1e-3, 1e-13, 0.0, -1e-13, -1e-3, -0.5, np.nan])
    q = np.tile(law.model.robot.neutral(), (len(angles), 1))
    q[:, 5] = angles
    margins, orientations = recorder.margins(q)
    single = [law.margin(x) for x in q[:-1]]
    size = 0.5  # m, by which columns of angular velocities are divided
    assert margins[[1, 5]] == pytest.approx([4.33e-5 / size] * 2, rel=1e-2)
    assert (margins[2:5] < 1e-14).all()
    np.testing.assert_allclose(margins[:-1], single, rtol=1e-12, atol=1e-300)
    assert margins[-1] == 0.0
    assert orientations[-1] == 0.0
    assert orientations[0] * orientations[-2] < 0.0
