"""Robots of the contract: each kind that the package covers once, and trees drawn by seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

import concur as cc
from concur.formulations import Factor
from tests.contract._twin import Twin

EXAMPLES = Path(__file__).parents[2] / "examples"
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
DOWN = (0.0, 0.0, -9.81)
KINDS = (
    "Fixed",
    "Revolute",
    "Prismatic",
    "Helical",
    "Cylindrical",
    "Sliding",
    "Planar",
    "Spherical",
    "Cartesian",
    "PlanarPrismatic",
    "Free",
)


@dataclass(frozen=True, eq=False)
class Case:
    """A robot with what the contract asks of it.

    Parameters
    ----------
    robot : Mechanism
        The tree, which the twin describes too.
    outputs : tuple
        Outputs of its servo.
    momentum : tuple of float, optional
        Of a floating robot.
    system : object
        What is reduced: the robot, or another system with the same q and v.
    """

    robot: Any
    outputs: tuple[Any, ...] = ()
    momentum: tuple[float, ...] | None = None
    system: Any = None

    @property
    def size(self) -> int:
        """Number of output coordinates."""
        sizes = {"R3xSO3": 6, "SE3": 6, "SO3": 3, "R3": 3, "SE2": 3, "R2": 2, "SO2": 1, "R": 1}
        return sum(sizes[output.group] for output in self.outputs)

    @cached_property
    def model(self) -> Any:
        """The reduced robot."""
        system = self.robot if self.system is None else self.system
        return cc.reduce(system, momentum=self.momentum)

    @cached_property
    def twin(self) -> Twin:
        """The same robot in Pinocchio."""
        return Twin(self.robot)

    @cached_property
    def servo(self) -> Any:
        """The tracking law, with gains that differ between the outputs."""
        return cc.Servo(self.model, list(self.outputs), *self.gains)

    @property
    def gains(self) -> tuple[list[float], list[float]]:
        """Stiffness and damping, one for each output."""
        count = len(self.outputs)
        return [4.0 + 1.5 * k for k in range(count)], [3.0 + 0.7 * k for k in range(count)]

    def state(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Configuration, which meets couplings, and shape velocities."""
        q = self.robot.random(rng)
        return q, rng.normal(size=self.model.ns)


def _inertia(rng: np.random.Generator, scale: float = 1.0) -> Any:
    root = 0.2 * rng.normal(size=(3, 3))
    second = root @ root.T + 1e-3 * np.eye(3)
    mass = scale * rng.uniform(0.5, 3.0)
    tensor = mass * (np.trace(second) * np.eye(3) - second)
    return cc.Inertia(mass, rng.uniform(-0.3, 0.3, 3), 0.5 * (tensor + tensor.T))


def _direction(rng: np.random.Generator) -> np.ndarray:
    direction = rng.normal(size=3)
    return direction / np.linalg.norm(direction)


def _joint(kind: str, rng: np.random.Generator) -> Any:
    make = getattr(cc.joints, kind)
    if kind in ("Fixed", "Spherical", "Cartesian", "Free"):
        return make()
    return make(_direction(rng), 0.1) if kind == "Helical" else make(_direction(rng))


def tree(seed: int, base: str | None = None) -> Any:
    """Draw a robot with a joint of each kind, branched anywhere; without gravity if it floats."""
    rng = np.random.default_rng(31_000 + seed)
    kinds = [str(kind) for kind in rng.permutation([k for k in KINDS if k != base])]
    kinds = [base, *kinds[:5]] if base else kinds
    bodies: list[Any] = []
    for i, kind in enumerate(kinds):
        parent = None if i == 0 else bodies[-1 if rng.random() < 0.6 else rng.integers(i)].name
        turn = Rotation.from_rotvec(rng.uniform(0, np.pi) * _direction(rng)).as_quat()
        placement = cc.Pose(rng.uniform(-0.5, 0.5, 3), turn)
        heavy = 8.0 if base and i == 0 else 1.0
        bodies.append(cc.Body(f"b{i}", _joint(kind, rng), parent, placement, _inertia(rng, heavy)))
    gravity = (0, 0, 0) if base else rng.uniform(-9, 9, 3)
    return cc.Mechanism(f"tree{seed}", bodies, gravity=gravity)


def _pendulum() -> Any:
    rod = cc.Inertia(2.0, (0, 0, -0.5), (0.1, 0.1, 0.01))
    bodies = [
        cc.Body("ceiling", cc.joints.Fixed()),
        cc.Body("rod", cc.joints.Revolute(Y), "ceiling", inertia=rod),
    ]
    return cc.Mechanism("pendulum", bodies, gravity=DOWN)


CART, POLE, REACH, SHARE = 3.0, 0.8, 0.45, 0.02  # kg, kg, m, kg m^2


def _cart() -> Any:
    thin = cc.Inertia(POLE, (0, 0, REACH), (SHARE, SHARE, 1e-4))
    bodies = [
        cc.Body("floor", cc.joints.Fixed()),
        cc.Body("cart", cc.joints.Prismatic(X), "floor", inertia=cc.Inertia(CART)),
        cc.Body("pole", cc.joints.Revolute(Y), "cart", inertia=thin),
    ]
    return cc.Mechanism("cart", bodies, gravity=DOWN)


def _cart_system() -> Any:
    """The cart and its pole from their energies."""
    x, turn = Factor("cart", "R"), Factor("pole", "SO2")
    speed = ca.vertcat(x.v + REACH * ca.cos(turn.q) * turn.v, -REACH * ca.sin(turn.q) * turn.v)
    kinetic = CART * x.v**2 / 2 + POLE * ca.sumsqr(speed) / 2 + SHARE * turn.v**2 / 2
    potential = POLE * 9.81 * REACH * ca.cos(turn.q)
    return cc.LagrangianSystem(kinetic, potential, [x, turn], inputs=["cart", "pole"], name="cart")


def _coordinate(name: str, index: int) -> Any:
    q = ca.SX.sym("q", 2)
    return cc.outputs.FunctionOutput(name, ca.Function(name, [q], [q[index]]), "R")


def _gripper() -> Any:
    """A floating arm whose second finger follows the first one, and a geared wrist."""
    rng = np.random.default_rng(5)
    body = cc.Body
    bodies = [
        body("satellite", cc.joints.Free(), inertia=_inertia(rng, 20.0)),
        body("boom", cc.joints.Revolute(Y), "satellite", cc.Pose((0.4, 0, 0.2)), _inertia(rng)),
        body("elbow", cc.joints.Revolute((0, 1, 0.2)), "boom", cc.Pose((0.5, 0, 0)), _inertia(rng)),
        body("wrist", cc.joints.Revolute(Z), "elbow", cc.Pose((0.4, 0, 0)), _inertia(rng, 0.5)),
        body("left", cc.joints.Prismatic(Y), "wrist", cc.Pose((0.1, 0, 0)), _inertia(rng, 0.1)),
        body("right", cc.joints.Prismatic(Y), "wrist", cc.Pose((0.1, 0, 0)), _inertia(rng, 0.1)),
    ]
    return cc.Mechanism(
        "gripper",
        bodies,
        actuated=["boom", "left"],
        motors=[
            cc.Motor("sum", {"elbow": 3.0, "wrist": 2.0}),
            cc.Motor("difference", {"elbow": 3.0, "wrist": -2.0}),
        ],
        mimics=[cc.robot.Mimic("right", of="left", multiplier=-0.8, offset=0.05)],
    )


def _mobile_manipulator() -> Any:
    """A base on two wheels with a lift and an arm of seven joints, as TIAGo is built."""
    rng = np.random.default_rng(8)
    spin = cc.Inertia(1.5, moments=(0.004, 0.0075, 0.004))
    wheel = cc.joints.Revolute(Y)
    bodies = [
        cc.Body("base", cc.joints.Planar(), inertia=cc.Inertia(30.0, (-0.05, 0, 0.1), (1, 1.2, 2))),
        cc.Body("left", wheel, "base", cc.Pose((0, 0.2, 0.1)), spin),
        cc.Body("right", wheel, "base", cc.Pose((0, -0.2, 0.1)), spin),
        cc.Body("lift", cc.joints.Prismatic(Z), "base", cc.Pose((-0.06, 0, 0.2)), _inertia(rng, 6)),
    ]
    axes = (Z, Y, X, Y, X, Y, X)
    places = ((0.15, 0, 0.3), (0.12, 0, 0), (0.1, 0, 0), (0.2, 0, 0.02), (0.1, 0, 0.02))
    places += ((0.22, 0, 0), (0, 0, 0))
    parent = "lift"
    for k, (axis, place) in enumerate(zip(axes, places, strict=True), 1):
        joint = cc.joints.Revolute(axis)
        bodies.append(cc.Body(f"arm{k}", joint, parent, cc.Pose(place), _inertia(rng, 1 / k)))
        parent = f"arm{k}"
    wheels = [cc.Wheel("left", 0.0985), cc.Wheel("right", 0.0985)]
    return cc.Mechanism("manipulator", bodies, wheels, DOWN)


MOVING = (1.0, -0.5, 0.4, 0.5, 0.2, -0.3)


def _rover() -> Case:
    base = cc.Output("base", "chassis", "R2", (0.25, 0, 0))
    hand = cc.Output("hand", "forearm", "R3", (0, 0.2, 0))
    return Case(cc.robots.rover_arm(), (base, hand))


def _floater() -> Case:
    tilted = (0, 0.6, 0, 0.8)
    hand = cc.Output("hand", "tool", "SE3", (0.05, 0.01, 0.02), orientation=tilted)
    return Case(cc.robots.free_flyer(), (hand,))


def _moving_floater() -> Case:
    hand = cc.Output("hand", "tool", "R3xSO3", (0.05, 0, 0))
    return Case(cc.robots.free_flyer(), (hand,), MOVING)


def _planar_floater() -> Case:
    tip = cc.Output("tip", "forearm", "R2", (0.4, 0, 0))
    return Case(cc.robots.planar_floater(), (tip,), (0.3, -0.2, 0, 0, 0, 0.1))


def _two_hands() -> Case:
    bus = cc.Output("bus", "spacecraft", "SO3")
    left = cc.Output("left", "left_hand", "R3", (0.1, 0, 0), relative_to="spacecraft")
    return Case(cc.robots.two_handed_spacecraft(), (bus, left), MOVING)


def _hull() -> Case:
    vehicle = cc.Output("vehicle", "vehicle", "R2", (0.2, 0, 0), relative_to="spacecraft")
    tip = cc.Output("tip", "left_tip", "R3", (0.2, 0, 0))
    return Case(cc.load(EXAMPLES / "hull_crawler.toml"), (vehicle, tip), MOVING)


def _driven(name: str, *outputs: tuple[Any, ...]) -> Case:
    robot = cc.load(EXAMPLES / "drives" / f"{name}.toml")
    return Case(robot, tuple(cc.Output(*output) for output in outputs))


def _gripping() -> Case:
    palm = cc.Output("palm", "wrist", "R3", (0.1, 0, 0))
    return Case(_gripper(), (palm,), MOVING)


def _mecanum() -> Case:
    base = cc.Output("base", "base", "SE2", (0.1, 0, 0))
    hand = cc.Output("hand", "hand", "R3xSO3", (0, 0, 0.1))
    return Case(cc.robots.mecanum_arm(), (base, hand))


def _manipulator() -> Case:
    base = cc.Output("base", "base", "R2", (0.2, 0, 0))
    hand = cc.Output("hand", "arm7", "R3xSO3", (0.1, 0, 0))
    return Case(_mobile_manipulator(), (base, hand))


def _trailers() -> Case:
    robot = cc.robots.tractor_trailers()
    nose = cc.Output("nose", robot.bodies[0].name, "R2", (0.5, 0, 0))
    return Case(robot, (nose,))


def _hanging() -> Case:
    return Case(_pendulum(), (cc.Output("rod", "rod", "SO2", normal=Y),))


def _energies() -> Case:
    outputs = (_coordinate("x", 0), _coordinate("angle", 1))
    return Case(_cart(), outputs, system=_cart_system())


def _floating_tree(seed: int, base: str) -> Case:
    return Case(tree(seed, base), (cc.Output("tip", "b5", "R3", (0.2, 0.1, 0.1)),))


_MAKE: dict[str, Callable[[], Case]] = {
    "rover": _rover,
    "floater": _floater,
    "moving floater": _moving_floater,
    "planar floater": _planar_floater,
    "two hands": _two_hands,
    "hull": _hull,
    "swerve": lambda: _driven(
        "swerve", ("nose", "steer_fl", "R2", (0.2, 0, 0)), ("heading", "steer_rr", "SO2")
    ),
    "car": lambda: _driven("ackermann_car", ("nose", "left_steering", "R2", (0.3, 0, 0))),
    "tricycle": lambda: _driven("tricycle", ("nose", "steering", "R2", (0.3, 0, 0))),
    "gripper": _gripping,
    "mecanum": _mecanum,
    "manipulator": _manipulator,
    "trailers": _trailers,
    "pendulum": _hanging,
    "energies": _energies,
    "free tree": lambda: _floating_tree(1, "Free"),
    "cartesian tree": lambda: _floating_tree(2, "Cartesian"),
    "spherical tree": lambda: _floating_tree(3, "Spherical"),
    "tree 0": lambda: Case(tree(0)),
    "tree 1": lambda: Case(tree(1)),
}
TREES = tuple(name for name in _MAKE if name.startswith("tree "))
LAWS = tuple(name for name in _MAKE if name not in TREES)
"""All but the trees on any base under gravity, which have no shape."""


@cache
def case(name: str) -> Case:
    """Return a robot of the contract: the same object each time."""
    return _MAKE[name]()
