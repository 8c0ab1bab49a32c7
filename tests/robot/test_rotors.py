"""Rotors of motors, against robots in Pinocchio whose rotors are bodies of their own.

The oracle's rotor is a body of revolution on the stator with a joint about the shaft. Its speed
follows from the joints by the gear: v = G w, so that M = G^T M' G and the forces are G^T f'.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur import interop
from concur.errors import ConcurError, InertiaError, UnknownNameError
from concur.robot import base_wrench, forward_dynamics, mass_times
from concur.simulation import Plant
from tests.oracles import Pinocchio, assert_close

ACROSS = 0.7
"""Moment of the oracle's rotors across the shaft, in moments about it."""


def bodies(base: cc.joints.Joint) -> list[cc.Body]:
    """A base with two arms, one on a ball joint, and a link that slides."""
    heavy = cc.Inertia(30.0, (0.1, 0.2, -0.1), (3.0, 4.0, 5.0))
    link = cc.Inertia(2.0, (0.05, 0.1, 0.2), (0.05, 0.06, 0.04))
    tilted = cc.Pose((0.2, 0.1, 0.3), (0.1, 0.3, -0.2, 0.927361849549570))
    return [
        cc.Body("base", base, inertia=heavy),
        cc.Body("mast", cc.joints.Fixed(), "base", tilted, cc.Inertia(1.0, moments=(0.1,) * 3)),
        cc.Body("turn", cc.joints.Revolute((0, 0, 1)), "mast", tilted, link),
        cc.Body("lift", cc.joints.Revolute((0, 0.6, 0.8)), "turn", tilted, link),
        cc.Body("slide", cc.joints.Prismatic((1, 0, 0)), "lift", tilted, link),
        cc.Body("ball", cc.joints.Spherical(), "base", tilted, link),
        cc.Body("tip", cc.joints.Revolute((1, 0, 0)), "ball", tilted, link),
    ]


ALONE = [
    cc.Motor("turn drive", "turn", gear=-30.0, rotor=2e-4),
    cc.Motor("lift drive", "lift", gear=50.0, rotor=1e-4),
    cc.Motor("tip drive", "tip", gear=1.0, rotor=4e-3),
]
SHARED = [
    cc.Motor("sum", {"turn": 1.0, "lift": 0.5}, gear=20.0, rotor=3e-4, shaft=(0, 1, 2)),
    cc.Motor("difference", {"turn": 1.0, "lift": -0.5}, gear=20.0, rotor=3e-4, shaft=(1, 0, 0)),
    cc.Motor("screw", "slide", gear=200.0, rotor=2e-4, shaft=(1, 0, 0)),
    cc.Motor("ball x", "ball[wx]", gear=3.0, rotor=1e-3, stator="turn", shaft=(0, 0, -1)),
]
ROBOTS = {
    f"{name} on {type(base).__name__}": cc.Mechanism(
        "r", bodies(base), motors=motors, gravity=gravity
    )
    for name, motors in (("alone", ALONE), ("shared", SHARED))
    for base, gravity in (
        (cc.joints.Free(), (0, 0, 0)),
        (cc.joints.Fixed(), (1.0, 2.0, -9.81)),
    )
}
each_robot = pytest.mark.parametrize("robot", ROBOTS.values(), ids=list(ROBOTS))


class Separate:
    """The robot in Pinocchio with a body for each rotor, and the gears G to its velocities."""

    def __init__(self, robot: cc.Mechanism) -> None:
        parts, inertias = {body.joint_label: body for body in robot.bodies}, {}
        gears, added = [np.eye(robot.nv)], []
        for motor in robot.motors:
            name, ratio = next(iter(motor.ratios.items()))
            joint = parts[name.split("[")[0]]
            stator = motor.stator or joint.parent
            shaft = np.array(motor.shaft or joint.placement.rotation_matrix @ joint.joint.axis)
            at = np.array([0.1, -0.2, 0.05])
            across = np.eye(3) - np.outer(shaft, shaft)
            tensor = motor.rotor * (np.outer(shaft, shaft) + ACROSS * across)
            mass = 10.0 * motor.rotor
            inertias.setdefault(stator, []).append((mass, at, tensor))
            rotor = cc.Inertia(mass, (0, 0, 0), tensor)
            revolute = cc.joints.Revolute(shaft)
            added.append(cc.Body(f"{motor.name} rotor", revolute, stator, cc.Pose(at), rotor))
            row = np.zeros(robot.nv)
            for freedom, ratio in motor.ratios.items():
                row[robot.freedom_names.index(freedom)] = ratio
            gears.append(row[None])
        lighter = [without(body, inertias.get(body.name, ())) for body in robot.bodies]
        self.robot, self.tree = robot, replace(robot, bodies=[*lighter, *added], motors=())
        self.oracle = Pinocchio(self.tree)
        # The oracle's bodies are sorted: parents before children.
        mine = [*robot.freedom_names, *(body.name for body in added)]
        order = [mine.index(name) for name in self.tree.freedom_names]
        self.gears = np.concatenate(gears)[order]

    def q(self, q: np.ndarray) -> np.ndarray:
        """The configuration with the rotors at some angle, which has no influence."""
        found = np.full(self.tree.nq, 0.3)
        for body in self.robot.bodies:
            found[self.tree.q_slice(body.name)] = q[self.robot.q_slice(body.name)]
        return found


def without(body: cc.Body, rotors: list[tuple[float, np.ndarray, np.ndarray]]) -> cc.Body:
    """A body less the rotors at rest in it."""
    mass, com, tensor = body.inertia.mass, np.array(body.inertia.com), body.inertia.tensor

    def about_origin(mass: float, at: np.ndarray, tensor: np.ndarray) -> np.ndarray:
        return tensor + mass * (at @ at * np.eye(3) - np.outer(at, at))

    whole, first = about_origin(mass, com, np.array(tensor)), mass * com
    for own, at, turned in rotors:
        whole = whole - about_origin(own, at, turned)
        mass, first = mass - own, first - own * at
    com = first / mass
    left = whole - about_origin(mass, com, np.zeros((3, 3)))
    return replace(body, inertia=cc.Inertia(mass, com, (left + left.T) / 2))


@pytest.mark.by_default(1)
@each_robot
def test_dynamics_are_those_of_rotors_as_bodies(robot: cc.Mechanism) -> None:
    other, rng = Separate(robot), np.random.default_rng(3)
    gears = other.gears
    for _ in range(3):
        q, v = robot.random(rng), rng.normal(size=robot.nv)
        vdot, there = rng.normal(size=robot.nv), other.q(q)
        matrix = gears.T @ other.oracle.mass_matrix(there) @ gears
        bias = gears.T @ other.oracle.bias(there, gears @ v)
        assert_close(robot.mass_matrix(q), matrix, 1e-12)
        assert_close(robot.bias(q, v), bias, 1e-12)
        assert_close(robot.inverse_dynamics(q, v, vdot), matrix @ vdot + bias, 1e-12)
        assert_close(robot.momentum(q, v), other.oracle.momentum(there, gears @ v), 1e-12)
        assert_close(robot.momentum_matrix(q) @ v, robot.momentum(q, v), 1e-12)
        assert_close(robot.kinetic_energy(q, v), v @ matrix @ v / 2, 1e-12)
        force = rng.normal(size=robot.nv)
        x = [ca.SX(a) for a in (q, v, force)]
        got = np.array(ca.evalf(forward_dynamics(robot, *x))).ravel()
        assert_close(got, np.linalg.solve(matrix, force - bias), 1e-9)
        assert_close(np.array(ca.evalf(mass_times(robot, x[0], x[1]))).ravel(), matrix @ v, 1e-12)
        # The Coriolis factor: C v is the bias without gravity, and Mdot = C + C^T.
        factor, step = robot.coriolis(q, v), 1e-6
        still = replace(robot, gravity=(0, 0, 0))
        assert_close(factor @ v, still.bias(q, v), 1e-12)
        ends = [robot.mass_matrix(robot.integrate(q, sign * step * v)) for sign in (1, -1)]
        assert_close(factor + factor.T, (ends[0] - ends[1]) / (2 * step), 1e-6)


def test_reduced_model_keeps_momentum_with_spinning_rotors() -> None:
    robot = ROBOTS["alone on Free"]
    rng = np.random.default_rng(5)
    mu = np.array([0.3, -0.2, 0.1, 0.4, 0.5, -0.6])
    model = cc.reduce(robot, momentum=mu)
    q, s, u = robot.random(rng), rng.normal(size=model.ns), rng.normal(size=robot.nu)
    v = model.velocity(q, s)
    assert_close(robot.momentum(q, v), mu, 1e-12)
    vdot = accelerated(robot, q, v, u)
    assert_close(model.acceleration(q, s, u), vdot[list(model.shape)], 1e-10)


HOST = """
name = "host"
[[bodies]]
name = "hull"
joint = { type = "Free" }
inertia = { mass = 50.0, box = [1.0, 2.0, 3.0] }
[[mount]]
file = "arm.FORMAT"
prefix = "a_"
at = { translation = [0.1, 0.2, 0.3], rpy_deg = [30.0, -40.0, 110.0] }
[[motors]]
name = "turn drive"
joints = "a_turn"
gear = 50.0
rotor = 2e-4
torque = 0.04
[[motors]]
name = "both"
joints = { a_lift = 1.0, a_slide = -0.3 }
gear = 30.0
rotor = 1e-4
stator = "a_turn"
shaft = [0.0, 0.6, 0.8]
[[motors]]
name = "jet"
body = "a_slide"
wrench = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
"""


def hosted(folder: Path, text: str, form: str) -> cc.Mechanism:
    """A hull with an arm of a file without motors, whose motors the file of the hull has."""
    base, _, turn, lift, slide, *_ = bodies(cc.joints.Fixed())
    turn, lift = (replace(body, torque_limit=3.0) for body in (turn, lift))
    cc.Mechanism("arm", [base, replace(turn, parent="base"), lift, slide]).save(
        folder / f"arm.{form}"
    )
    (folder / "host.toml").write_text(text.replace("FORMAT", form))
    return cc.load(folder / "host.toml")


@pytest.mark.parametrize("form", ["toml", "urdf", "xml"])
def test_motors_of_joints_of_a_mounted_robot(form: str, tmp_path: Path) -> None:
    robot = hosted(tmp_path, HOST, form)
    assert robot.control_names == ("turn drive", "both", "jet")
    assert robot.control_limits.tolist() == pytest.approx([0.04, 0.1, np.inf])
    other, rng = Separate(replace(robot, motors=robot.motors[:2])), np.random.default_rng(1)
    gears = other.gears
    for _ in range(3):
        q, v = robot.random(rng), rng.normal(size=robot.nv)
        there = other.q(q)
        assert_close(robot.mass_matrix(q), gears.T @ other.oracle.mass_matrix(there) @ gears, 1e-9)
        bias = gears.T @ other.oracle.bias(there, gears @ v)
        assert_close(robot.bias(q, v), bias, 1e-9)
        column = robot.actuation(q)[list(robot.freedom_names).index("a_slide"), 1]
        assert column == -9.0
    assert cc.load(robot.save(tmp_path / "whole.toml")[0]) == robot


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"a_turn"\ngear', '"a_trun"\ngear', r"`joints`: .*Did you mean 'a_turn'\?"),
        ("a_slide = -0.3", "a_silde = -0.3", r"`joints`: .*Did you mean 'a_slide'\?"),
        ('stator = "a_turn"', 'stator = "a_trun"', r"`stator`: .*Did you mean 'a_turn'\?"),
        ('body = "a_slide"', 'body = "slide"', r"`body`: .*Did you mean 'a_slide'\?"),
        ('name = "both"', 'name = "a_turn"', "a name that no joint and no other motor has"),
    ],
)
def test_wrong_names_of_mounted_joints_are_refused(
    old: str, new: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConcurError, match=words) as caught:
        hosted(tmp_path, HOST.replace(old, new), "toml")
    assert caught.value.table.startswith("[[motors]]")
    assert caught.value.file.endswith("host.toml")


@pytest.mark.parametrize("ratio", [1.0, 60.0])
def test_reflected_inertia_alone_is_armature(ratio: float) -> None:
    """As `armature` in MuJoCo and `rotorInertia` in Pinocchio: the diagonal alone changes."""
    motor = cc.Motor("m", "turn", gear=ratio, rotor=2e-3, shaft=(0, 0, 0))
    robot = cc.Mechanism("r", bodies(cc.joints.Free()), motors=[motor])
    q = robot.random(np.random.default_rng(0))
    added = robot.mass_matrix(q) - replace(robot, motors=()).mass_matrix(q)
    at = robot.freedom_names.index("turn")
    expected = np.zeros_like(added)
    expected[at, at] = 2e-3 * ratio**2
    assert_close(added, expected, 1e-12)


def test_rotor_is_part_of_the_body_that_carries_it() -> None:
    def with_rotor(inertia: float, base: cc.joints.Joint, **options: object) -> cc.Mechanism:
        motor = cc.Motor("m", "tip", gear=2.0, rotor=inertia, **options)  # type: ignore[arg-type]
        return cc.Mechanism("r", bodies(base), motors=[motor])

    axis = cc.Pose(rotation=bodies(cc.joints.Free())[-1].placement.rotation).rotation_matrix[:, 0]
    most = float(axis @ np.diag([0.05, 0.06, 0.04]) @ axis)
    with_rotor(most * (1 - 1e-9), cc.joints.Free())
    with pytest.raises(InertiaError, match="`ball`"):
        with_rotor(most * (1 + 1e-9), cc.joints.Free())
    with_rotor(2 * most, cc.joints.Free(), shaft=(0, 0, 0))
    rover = cc.robots.rover_arm()  # moves in a plane: the axles never turn about themselves
    motors = [cc.Motor("left", "left_wheel", gear=20.0, rotor=100.0)]
    assert replace(rover, actuated=None, motors=motors).terms.rotors[0].carried is False
    tilted = [
        replace(b, placement=cc.Pose(b.placement.translation, (0.1, 0, 0, 0.99498743710662)))
        if b.name == "left_wheel"
        else b
        for b in rover.bodies
    ]
    bare = replace(rover, bodies=tilted, wheels=())
    with pytest.raises(InertiaError, match="`chassis`"):
        replace(bare, actuated=None, motors=motors)
    with pytest.raises(UnknownNameError, match="`stator`"):
        with_rotor(1e-3, cc.joints.Free(), stator="nobody")


def accelerated(robot: cc.Mechanism, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
    push = robot.actuation(q) @ u - robot.bias(q, v)
    return np.linalg.solve(robot.mass_matrix(q), push)


def test_rotors_and_gears_are_numbers_of_worlds() -> None:
    robot = ROBOTS["alone on Free"]
    name = "lift drive"
    plant = Plant(robot, uncertain=[f"{name}.rotor", f"{name}.ratio"])
    world = {f"{name}.rotor": 3e-5, f"{name}.ratio": np.array([4.0])}
    changed = robot.with_numbers({f"{name}.rotor": 1.3e-4, f"{name}.ratio": [54.0]})
    lifted = changed.motors[1]
    assert (lifted.gear, lifted.ratios, lifted.rotor) == (50.0, {"lift": 54.0}, 1.3e-4)
    rng = np.random.default_rng(1)
    q, v, u = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=robot.nu)
    for one in (plant.of_world(world), Plant(changed)):
        assert_close(one.acceleration(q, v, u)[0], accelerated(changed, q, v, u), 1e-10)
    free = ca.SX.sym("p", plant.n_numbers)
    found = plant.symbolic(free).mass_matrix(ca.SX(q))
    values = ca.Function("M", [free], [found])(plant.numbers(world).ravel())
    assert_close(np.array(values), changed.mass_matrix(q), 1e-12)


def test_mujoco_has_the_same_reflected_inertia(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    still = {"shaft": (0, 0, 0)}
    motors = [replace(m, **still) for m in (ALONE[0], *SHARED[:3])]
    parts = [b for b in bodies(cc.joints.Free()) if b.name not in ("ball", "tip")]
    robot = cc.Mechanism("r", parts, motors=motors)
    model = mujoco.MjModel.from_xml_path(str(robot.save(tmp_path / "r.xml")[0]))
    data, order = mujoco.MjData(model), interop.mujoco(robot)
    q = robot.random(np.random.default_rng(2))
    data.qpos[:] = order.to_q(q)
    mujoco.mj_forward(model, data)
    found = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, found)
    columns = np.array([order.from_force(q, row) for row in found])
    found = np.array([order.from_force(q, row) for row in columns.T])
    assert_close(found, robot.mass_matrix(q), 1e-12)
    assert np.abs(found - replace(robot, motors=()).mass_matrix(q)).max() > 0.1
    with pytest.raises(ConcurError, match="`rotor`"):
        ROBOTS["alone on Free"].save(tmp_path / "no.xml")


def test_wheel_loads_know_the_reaction_of_rotors() -> None:
    """A rotor beside the axle of a car on a plane: its reaction pitches the chassis."""
    rover = cc.robots.rover_arm()
    sides = ("left_wheel", "right_wheel")
    motors = [cc.Motor(f"{side} drive", side, gear=-40.0, rotor=3e-4) for side in sides]
    driven = replace(rover, actuated=["turret", "upper_arm", "forearm"], motors=motors)
    other, rng = Separate(driven), np.random.default_rng(4)
    q, v, vdot = driven.random(rng), rng.normal(size=rover.nv), rng.normal(size=rover.nv)
    forces = [
        np.concatenate([np.array(ca.evalf(part)).ravel() for part in base_wrench(tree, *x)])
        for tree, x in (
            (driven, [ca.SX(a) for a in (q, v, vdot)]),
            (other.tree, [ca.SX(a) for a in (other.q(q), other.gears @ v, other.gears @ vdot)]),
        )
    ]
    assert_close(forces[0], forces[1], 1e-12)
