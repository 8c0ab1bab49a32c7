"""Motors and joints that follow others, against Pinocchio with B and constraint rows by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from concur.errors import ConcurError, DescriptionError, OutputError, ReductionError
from concur.outputs import ReferenceSample
from concur.robot import Body, Inertia, Mechanism, Mimic, Motor, Pose, joints
from concur.simulation import Plant
from tests.oracles import Constrained, Pinocchio, assert_close

LINK = Inertia(1.5, (0.05, -0.02, 0.2), (0.03, 0.04, 0.01))
FINGER = Inertia(0.3, (0.0, 0.01, 0.05), (2e-3, 3e-3, 1e-3))


def _arm(base: joints.Joint) -> list[Body]:
    """Base, arm, a wrist of two joints and a gripper of two fingers."""
    return [
        Body("base", base, inertia=Inertia(12.0, (0.1, 0.0, 0.05), (0.4, 0.5, 0.6))),
        Body("arm", joints.Revolute((0, 1, 0)), "base", Pose((0.3, 0, 0.1)), LINK),
        Body("pitch", joints.Revolute((0, 1, 0)), "arm", Pose((0, 0, 0.4)), LINK),
        Body("roll", joints.Revolute((0, 0, 1)), "pitch", Pose((0, 0, 0.1)), LINK),
        Body("left", joints.Prismatic((0, 1, 0)), "roll", Pose((0, 0.1, 0.2)), FINGER),
        Body("right", joints.Revolute((1, 0, 0)), "roll", Pose((0, -0.1, 0.2)), FINGER),
    ]


WRIST = Motor("a", {"pitch": 2.0, "roll": 3.0}), Motor("b", {"pitch": 2.0, "roll": -3.0})


def _turn_and_slide(unit: float, *columns: tuple[float, float]) -> Mechanism:
    """Joints of both kinds, moved by motors with ratios on both, in another unit of length."""
    inertia = Inertia(1.0, (0.1 * unit, 0, 0), (0.1 * unit**2,) * 3)
    bodies = [
        Body("base", joints.Fixed()),
        Body("turn", joints.Revolute((0, 0, 1)), "base", inertia=inertia),
        Body("slide", joints.Prismatic((1, 0, 0)), "turn", Pose((unit, 0, 0)), inertia),
    ]
    motors = [
        Motor(f"m{k}", {n: r for n, r in (("turn", turn), ("slide", slide / unit)) if r})
        for k, (turn, slide) in enumerate(columns)
    ]
    return Mechanism("r", bodies, motors=motors)


@pytest.mark.extended
def test_verdicts_on_drives_do_not_depend_on_units_and_gear_ratios() -> None:
    for columns, holds in (
        (((1.0, 0.0), (0.0, 1.0)), True),
        (((1e-6, 0.0), (0.0, 1e5)), True),  # a ball screw beside a motor without gear
        (((1.0, 1.0), (2.0, -3e4)), True),
        (((1.0, 1.0), (1.0, 1.0), (1e4, -1e4)), True),
        (((1.0, 1.0), (1.0, 1.0)), False),
        (((1.0, 1.0), (-3.0, -3.0), (5.0, 5.0)), False),
        (((1.0, 1.0), (1.0, 1.001)), False),  # of full rank, with a margin below 1e-3
        (((1.0, 1.0), (1.0, 1.01)), True),
    ):
        conditions = []
        for unit in (1.0, 1e3, 1e-3):
            model = cc.reduce(_turn_and_slide(unit, *columns))
            row = model.audit()["CON2"]
            conditions.append(row.values["condition"])
            tip = cc.Output("tip", "slide", "R2", (0.1 * unit, 0, 0))
            if not holds:
                assert ("nothing pushes along" in row.why) == (conditions[-1] > 1e8)
                with pytest.raises(OutputError, match=r"push along \S+ turn \S+ slide"):
                    cc.Servo(model, [tip], stiffness=4.0, damping=4.0)
                continue
            assert row.status.value == "holds"
            q, s = np.array([0.3, 0.2 * unit]), np.array([0.1, 0.1 * unit])
            target = ReferenceSample(unit * np.array([1.0, 0.8]), np.zeros(2), np.zeros(2))
            for weights in (None, np.logspace(-6, 6, model.nu)):
                servo = cc.Servo(model, [tip], 4.0, 4.0, torque_weights=weights)
                u = servo.torque(q, s, target)
                assert_close(servo.compile(interpreted=True)(q, s, target), u, 1e-12 * abs(u).max())
                # Error dynamics of R2 with x = gamma - r and ve = -xdot.
                v, step = model.velocity(q, s), 1e-6
                ahead = [
                    servo.error(
                        model.robot.integrate(q, h * v), s + h * model.acceleration(q, s, u), target
                    )
                    for h in (-step, step)
                ]
                x, ve = servo.error(q, s, target)
                assert_close((ahead[1][1] - ahead[0][1]) / (2 * step), 4 * x - 4 * ve, 1e-7 * unit)
        assert conditions == pytest.approx([conditions[0]] * 3, rel=1e-6) or conditions[0] > 1e12


COUPLED = Mimic("right", "left", multiplier=-8.0, offset=0.3), Mimic("pitch", "arm", 0.5, -0.2)


def _coupling(q: np.ndarray, base: int) -> np.ndarray:
    rows = np.zeros((2, base + 5), dtype=q.dtype)
    rows[0, [base + 4, base + 3]] = 1.0, 8.0
    rows[1, [base + 1, base]] = 1.0, -0.5
    return rows


@pytest.mark.parametrize("base", [joints.Free(), joints.Planar(), joints.Fixed()])
def test_joints_that_follow_others(base: joints.Joint) -> None:
    gravity = (0.0, 0.0, 0.0 if base.nv == 6 else -9.81)
    robot = Mechanism("gripper", _arm(base), gravity=gravity, mimics=COUPLED)
    momentum = np.arange(6.0) * 0.3 if base.nv else None
    model, plant = cc.reduce(robot, momentum), Plant(robot)
    full = Constrained(Pinocchio(robot), lambda q: _coupling(q, base.nv))
    assert model.shape_names == ("arm", "roll", "left")
    assert model.control_names == ("arm", "roll", "left")
    rng, shape = np.random.default_rng(1), list(model.shape)
    for _ in range(5):
        q, s, u = robot.random(rng), rng.normal(size=3), rng.normal(size=3)
        right, left, pitch, arm = (q[robot.q_slice(n)] for n in ("right", "left", "pitch", "arm"))
        assert_close([right, pitch], [-8.0 * left + 0.3, 0.5 * arm - 0.2], 1e-15)
        v, tau = model.velocity(q, s), np.zeros(robot.nv)
        tau[shape] = u
        expected, reaction = full.acceleration(q, v, tau)
        assert_close(full.rows(q) @ v, 0.0, 1e-14)
        assert abs(reaction @ full.rows(q) @ v) < 1e-12  # it does no work
        assert_close(model.acceleration(q, s, u), expected[shape], 1e-10)
        assert_close(plant.acceleration(q, v, u)[0], expected, 1e-9)
        p = model.mass_matrix(q) @ s
        speed, pdot = model.vector_field(q, p, u)
        assert_close(speed, v, 1e-12)
        step = 1e-6
        ends = [robot.integrate(q, side * step * v) for side in (-1.0, 1.0)]
        turning = (model.mass_matrix(ends[1]) - model.mass_matrix(ends[0])) / (2 * step)
        assert_close(pdot, turning @ s + model.mass_matrix(q) @ expected[shape], 1e-7)
        if momentum is not None:
            measured = Pinocchio(robot).momentum(q, v)
            kept = slice(0, 6) if base.nv == 6 else [0, 1, 5]
            assert_close(measured[kept], momentum[kept], 1e-11)
            other = model.at_momentum(2 * momentum)
            assert_close(other.velocity(q, s), model.velocity(q, s, 2 * momentum), 1e-12)


def _rover(**options: object) -> Mechanism:
    """A base on two wheels, and a skid wheel behind the left one."""
    wheel = Inertia(0.5, moments=(1e-3, 1.5e-3, 1e-3))
    axle = joints.Revolute((0, 1, 0))
    bodies = [
        Body("base", joints.Planar(), inertia=Inertia(8.0, (0.1, 0, 0), (0.1, 0.1, 0.2))),
        Body("left", axle, "base", Pose((0, 0.2, 0)), wheel),
        Body("right", axle, "base", Pose((0, -0.2, 0)), wheel),
        Body("skid", axle, "base", Pose((-0.3, 0.2, 0)), wheel),
    ]
    wheels = [
        cc.Wheel("left", 0.1),
        cc.Wheel("right", 0.1),
        cc.Wheel("skid", 0.1, kind="omni"),
    ]
    return Mechanism("rover", bodies, wheels, **options)  # type: ignore[arg-type]


def _rover_rows(q: np.ndarray) -> np.ndarray:
    rows = np.zeros((4, 6), dtype=q.dtype)
    rows[0, 1] = 1.0
    rows[1, [0, 2, 3]] = rows[3, [0, 2, 5]] = 1.0, -0.2, -0.1
    rows[2, [0, 2, 4]] = 1.0, 0.2, -0.1
    return rows


def test_differential_pushes_both_wheels_by_its_ratios() -> None:
    robot = _rover(motors=[Motor("axle", {"left": 4.0, "right": 5.0})], actuated=["skid"])
    model, plant = cc.reduce(robot), Plant(robot)
    full = Constrained(Pinocchio(robot), _rover_rows)
    assert model.control_names == ("skid", "axle")
    rng = np.random.default_rng(2)
    for _ in range(5):
        q, s, u = robot.random(rng), rng.normal(size=2), rng.normal(size=2)
        v = model.velocity(q, s)
        tau = np.array([0, 0, 0, 4.0 * u[1], 5.0 * u[1], u[0]])
        expected, _ = full.acceleration(q, v, tau)
        assert_close(plant.acceleration(q, v, u)[0], expected, 1e-10)
        assert_close(model.acceleration(q, s, u), expected[list(model.shape)], 1e-10)
    motion = cc.simulation.forced_motion(
        model, [0.1, 0.2], 1.0, robot.neutral(), [1.0, 0.5], dt=0.1
    )
    speeds = [model.velocity(q, s) for q, s in zip(motion.q, motion.s, strict=True)]
    energy = [robot.kinetic_energy(q, v) for q, v in zip(motion.q, speeds, strict=True)]
    assert_close(np.array(energy) - energy[0], motion.work, 1e-10)


def test_coupled_wheels_drop_the_row_that_follows() -> None:
    # The skid wheel rolls as the left one does anyway: the coupling replaces its row.
    plain, chained = cc.reduce(_rover()), cc.reduce(_rover(mimics=[Mimic("skid", "left")]))
    assert chained.robot.nf == plain.robot.nf == 4
    q = plain.robot.neutral()
    assert chained.shape == plain.shape
    assert_close(chained.lift(q)[0], plain.lift(q)[0], 1e-14)
    assert chained.regularity(q) == 1.0
    # A wheel that must turn twice as fast holds the robot on a circle.
    tied = cc.reduce(_rover(mimics=[Mimic("right", "left", 2.0)]))
    lifted = tied.lift(q)[0][:, 0]
    assert tied.ns == 1
    assert lifted[4] / lifted[3] == pytest.approx(2.0, abs=1e-14)
    assert lifted[2] / lifted[0] == pytest.approx(1.0 / 0.6, abs=1e-14)


def test_follower_on_an_arm_is_no_rolling_constraint() -> None:
    rover = cc.robots.rover_arm()
    robot = replace(rover, mimics=[Mimic("forearm", "upper_arm", -0.5)], actuated=None)
    audit = cc.reduce(robot).audit()
    assert [row.id for row in audit.failures] == []
    assert audit["NHR1"].why == "largest arm column 0.0e+00"


def test_limits_of_motors() -> None:
    bodies = [replace(b, torque_limit=6.0) if b.joint.nv else b for b in _arm(joints.Fixed())]
    limits = {
        (): [6.0] * 5,
        (Motor("gear", {"pitch": -3.0, "roll": 2.0}),): [6.0, 6.0, 6.0, 2.0],
        (Motor("gear", {"pitch": 3.0}, torque=5.0),): [6.0, 6.0, 6.0, 6.0, 5.0],
        WRIST: [6.0, 6.0, 6.0, np.inf, np.inf],  # what one motor may do depends on the other
    }
    for motors, expected in limits.items():
        assert Mechanism("arm", bodies, motors=motors).control_limits.tolist() == expected


@pytest.mark.parametrize("moved", ["pitch", {"pitch": 0.5}, {"pitch": 1.0, "roll": 2.0}])
def test_numbers_of_a_motor_on_both_sides_of_its_gear(moved: object) -> None:
    given = {"viscous": 3.0, "coulomb": 2.0, "stribeck": 1.0}
    motor = Motor("m", moved, -50.0, speed=200.0, torque=5.0, **given)
    ratio = 25.0 if moved == {"pitch": 0.5} else 50.0
    assert motor.friction == (3.0, 2.0, 1.0)
    turned = replace(motor, friction_at="joint").friction
    assert turned == pytest.approx((3.0 / ratio**2, 2.0 / ratio, 1.0 / ratio), rel=1e-15)
    assert motor.stall == 5.0
    assert replace(motor, no_load_speed=9.0, stall_torque=7.0).stall == 7.0
    # One joint has the speed of its motor, and its own where that is less.
    bodies = [
        replace(b, speed_limit=6.0) if b.name == "pitch" else b for b in _arm(cc.joints.Fixed())
    ]
    robot = Mechanism("arm", bodies, motors=[motor])
    single = len(motor.ratios) == 1
    assert robot.speed_limits[1] == (min(200.0 / ratio, 6.0) if single else 6.0)
    assert robot.speed_limits[0] == np.inf
    shared = {name: (most, row.tolist()) for name, (most, row) in robot.motor_speeds.items()}
    assert shared == ({} if single else {"m": (200.0, [0.0, -50.0, -100.0, 0.0, 0.0])})


def test_coupled_configurations_are_checked() -> None:
    robot = Mechanism("gripper", _arm(joints.Fixed()), mimics=COUPLED[:1])
    q = robot.neutral()
    assert q[-1] == 0.3
    for error, fits in ((0.9e-6, True), (1.1e-6, False)):
        moved = q + error * np.eye(5)[4]
        if fits:
            assert robot.check_configuration(moved)[-1] == 0.3
        else:
            with pytest.raises(DescriptionError, match=r"joint of `right`: expected 0.3: -8 times"):
                robot.check_configuration(moved)
    with pytest.raises(ReductionError, match="no stages for a robot with joints that follow"):
        cc.reduce(robot, stages=["arm"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"motors": [Motor("x", {"wrist": 1.0})]}, "motor `x`, `joints`: expected a joint among"),
        ({"motors": [Motor("x", {"base[vx]": 1.0})]}, "describe a thruster"),
        ({"motors": [Motor("x", body="wrist", wrench=[1.0] * 6)]}, "expected a body among"),
        ({"motors": [WRIST[0], WRIST[0]]}, "a name that no joint and no other motor has"),
        ({"motors": [Motor("arm", {"roll": 1.0})]}, "a name that no joint"),
        ({"motors": WRIST, "actuated": ["pitch"]}, "`pitch`, which the motor `b` moves"),
        ({"mimics": [Mimic("left", "wrist")]}, "mimic `left`, `of`: expected a joint among"),
        ({"mimics": [Mimic("left", "base")]}, "one coordinate, not that of the base"),
        ({"mimics": [Mimic("left", "arm"), Mimic("left", "roll")]}, "follows one other"),
        ({"mimics": [Mimic("left", "arm"), Mimic("arm", "left")]}, "a cycle of `left`, `arm`"),
        ({"motors": WRIST[0]}, "a list of Motor"),
    ],
)
def test_invalid_motors(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConcurError, match=message):
        Mechanism("arm", _arm(joints.Free()), **options)  # type: ignore[arg-type]


def test_encoders_count_joints_of_one_coordinate() -> None:
    def bodies(joint: joints.Joint) -> list[Body]:
        return [Body("base", joints.Fixed()), Body("ball", joint, "base", inertia=LINK)]

    motor = Motor("x", "ball[wx]", encoder=8)
    with pytest.raises(DescriptionError, match="`encoder`: expected joints with one coordinate"):
        Mechanism("r", bodies(joints.Spherical()), motors=[motor])
    Mechanism("r", bodies(joints.Spherical()), motors=[replace(motor, encoder=None)])
    Mechanism("r", bodies(joints.Helical((0, 0, 1), 0.1)), motors=[replace(motor, joints="ball")])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "expected a name"),
        ({"name": "x"}, "either `joints`, or `body` and `wrench`, got neither"),
        ({"name": "x", "joints": {"a": 1.0}, "body": "b"}, "got `joints`, `body`"),
        ({"name": "x", "joints": {}}, "a factor for each joint"),
        ({"name": "x", "joints": {"a": 0.0}}, "factors other than zero"),
        ({"name": "x", "joints": {"a": float("nan")}}, "finite"),
        ({"name": "x", "joints": "a", "gear": 0.0}, "a ratio other than zero"),
        ({"name": "x", "joints": "a", "rotor": -1e-9}, "`rotor`: expected zero or more"),
        ({"name": "x", "joints": "a", "shaft": (0, 1)}, "`shaft`"),
        *(
            ({"name": "x", "body": "b", "wrench": [1.0] * 6, **given}, "a thruster, which has no")
            for given in ({"gear": 2.0}, {"speed": 3.0}, {"viscous": 1e-3}, {"encoder": 64})
        ),
        ({"name": "x", "body": "b", "wrench": [0.0] * 6}, "a wrench other than zero"),
        ({"name": "x", "body": 3, "wrench": [1.0] * 6}, "`body`: expected a name"),
        *(
            ({"name": "x", "joints": "a", name: value}, f"`{name}`: expected {wanted}")
            for name, value, wanted in (
                ("torque", 0.0, "a number above zero"),
                ("speed", -1.0, "a number above zero"),
                ("speed", -np.inf, "finite numbers"),
                ("no_load_speed", 0.0, "a number above zero"),
                ("stall_torque", 0.0, "a number above zero"),
                ("viscous", -1e-12, "zero or more"),
                ("coulomb", -1.0, "zero or more"),
                ("stribeck", np.inf, "finite numbers"),
                ("friction_at", "load", '"motor" or "joint"'),
                ("efficiency", 0.0, "a number above zero"),
                ("efficiency", 1.0 + 1e-12, "at most 1"),
                ("torque_constant", -0.1, "a number above zero"),
                ("encoder", 0, "a whole number above zero"),
                ("encoder", 64.0, "a whole number above zero"),
                ("encoder_at", True, '"motor" or "joint"'),
                ("continuous", 0.0, "a number above zero"),
                ("thermal_time", 0.0, "a number above zero"),
            )
        ),
        ({"name": "x", "joints": "a", "continuous": 1.0}, "got no `thermal_time`"),
        ({"name": "x", "joints": "a", "thermal_time": 1.0}, "got no `continuous`"),
        ({"name": "x", "joints": "a", "stall_torque": 1.0}, "got no `no_load_speed`"),
        ({"name": "x", "joints": "a", "no_load_speed": 1.0}, "`torque` or `stall_torque`"),
    ],
)
def test_invalid_arguments_of_a_motor(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConcurError, match=message):
        Motor(**arguments)  # type: ignore[arg-type]
