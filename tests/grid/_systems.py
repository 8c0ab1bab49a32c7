"""Systems of the grid: sizes one and zero, each kind of joint and reduction, shipped robots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

import concur as cc
from concur.formulations import Factor
from concur.outputs import FunctionOutput
from concur.reduction import ReducedModel
from concur.robot import Mimic, Motor, Spring

Z = (0.0, 0.0, 1.0)
HEAVY = (0.0, 0.0, -9.81)
FIXED = cc.Body("base", cc.joints.Fixed())
LUMP = cc.Inertia(1.0, (0.1, 0.05, 0.0), moments=(0.2, 0.3, 0.4))

_DRIVE: dict[str, Any] = {
    **{"rotor": 1e-4, "torque": 40.0, "speed": 90.0, "no_load_speed": 120.0, "stall_torque": 50.0},
    **{"viscous": 1e-3, "coulomb": 0.01, "stribeck": 0.01, "friction_at": "joint"},
    **{"efficiency": 0.9, "torque_constant": 0.1, "encoder": 4096, "encoder_at": "joint"},
    **{"continuous": 30.0, "thermal_time": 20.0},
}
"""All numbers of a motor with a gear."""


@dataclass(frozen=True, eq=False)
class Case:
    """A system with outputs that it can follow near a configuration."""

    build: Callable[[], Any]
    outputs: Sequence[Any] = ()
    at: Mapping[str, Any] = field(default_factory=dict)
    reduced: Mapping[str, Any] = field(default_factory=dict)
    regular: bool = True
    """Whether a law of these outputs exists."""

    @cached_property
    def system(self) -> Any:
        """The robot or other system."""
        return self.build()

    @cached_property
    def model(self) -> ReducedModel:
        """Its reduced model."""
        return cc.reduce(self.system, **self.reduced)

    @cached_property
    def q0(self) -> np.ndarray:
        """A configuration in which the outputs are regular."""
        q = np.array(self.system.neutral(), dtype=float)
        for body, value in self.at.items():
            q[self.system.q_slice(body)] = value
        return q


def one(joint: Any, gravity: Any = HEAVY, **options: Any) -> Callable[[], Any]:
    """A body on a fixed base."""
    arm = cc.Body("arm", joint, "base", inertia=LUMP)
    return lambda: cc.Mechanism("one", [FIXED, arm], gravity=gravity, **options)


def two(first: Any, second: Any, base: Any = None, **options: Any) -> Callable[[], Any]:
    """Two bodies in a row, on a fixed base unless one is given."""
    root = FIXED if base is None else cc.Body("base", base, inertia=LUMP)
    arm = cc.Body("arm", first, "base", inertia=LUMP)
    tip = cc.Body("tip", second, "arm", cc.Pose((0.3, 0.1, 0.2)), inertia=LUMP)
    return lambda: cc.Mechanism("two", [root, arm, tip], **options)


def _pendulum() -> Any:
    angle = Factor("angle", "SO2")
    return cc.LagrangianSystem(
        ca.sumsqr(angle.v) / 2, -ca.cos(angle.q), [angle], inputs=["angle"], name="pendulum"
    )


def _carts() -> Any:
    a, b = Factor("a", "R"), Factor("b", "R")
    kinetic = ca.sumsqr(a.v) / 2 + ca.sumsqr(a.v + b.v)
    return cc.LagrangianSystem(kinetic, ca.sumsqr(b.q), [a, b], inputs=["a"], name="carts")


def _skate() -> Any:
    pose = Factor("pose", "SE2")
    return cc.LagrangianSystem(
        ca.sumsqr(pose.v) / 2,
        0.0,
        [pose],
        constraints={"side": pose.v[1]},
        inputs=["pose[vx]", "pose[omega]"],
        name="skate",
    )


def _floater() -> Any:
    hull, arm, rotor = Factor("hull", "SE2"), Factor("arm", "SO2"), Factor("rotor", "SO2")
    vx, vy, turn = ca.vertsplit(hull.v)
    tip = ca.vertcat(0.3 + ca.cos(arm.q), ca.sin(arm.q))
    moved = ca.vertcat(vx - turn * tip[1], vy + turn * tip[0]) + ca.jacobian(tip, arm.q) @ arm.v
    kinetic = 3.0 * ca.sumsqr(hull.v[:2]) + turn**2 + ca.sumsqr(moved) + 0.2 * (turn + rotor.v) ** 2
    return cc.LagrangianSystem(
        kinetic / 2, 0.0, [hull, arm, rotor], inputs=["arm"], name="floater", symmetry="hull"
    )


def _function(size: int, index: int, group: str) -> Any:
    q = ca.SX.sym("q", size)
    return FunctionOutput("y", ca.Function("y", [q], [q[index]]), group)


def _output(group: str, body: str = "arm", name: str = "y", **options: Any) -> Any:
    return cc.Output(name, body, group, **options)


_TURN, _SLIDE = cc.joints.Revolute(Z), cc.joints.Prismatic((1.0, 0.0, 0.0))
_LEAN = cc.joints.Revolute((0.0, 1.0, 0.0))
_FLOATING = {"arm": 0.4, "tip": -0.7}

CASES: dict[str, Case] = {
    "pendulum": Case(one(_LEAN), [_output("SO2", normal=(0, 1, 0))]),
    "slider": Case(one(_SLIDE), [_output("R")]),
    "helical": Case(one(cc.joints.Helical(Z, 0.1)), [_output("R", axes="z")]),
    "cylindrical": Case(
        one(cc.joints.Cylindrical(Z)), [_output("R", axes="z"), _output("SO2", name="turn")]
    ),
    "sliding": Case(one(cc.joints.Sliding(Z)), [_output("R2")]),
    "planar": Case(one(cc.joints.Planar()), [_output("SE2")]),
    "spherical": Case(one(cc.joints.Spherical()), [_output("SO3")]),
    "cartesian": Case(one(cc.joints.Cartesian()), [_output("R3")]),
    "planar_prismatic": Case(
        one(cc.joints.PlanarPrismatic(Z)), [_output("R3"), _output("SO2", name="turn")]
    ),
    "free_joint": Case(one(cc.joints.Free()), [_output("R3xSO3")]),
    "weightless": Case(one(_TURN, gravity=(0, 0, 0)), [_output("SO2")]),
    "nothing": Case(lambda: cc.Mechanism("nothing", [FIXED]), regular=False),
    "welded": Case(one(cc.joints.Fixed()), regular=False),
    "unactuated": Case(one(_LEAN, actuated=[]), [_output("SO2", normal=(0, 1, 0))], regular=False),
    "free_body": Case(
        lambda: cc.Mechanism("stone", [cc.Body("base", cc.joints.Free(), inertia=LUMP)]),
        regular=False,
    ),
    "driven_base": Case(
        lambda: cc.Mechanism(
            "table", [cc.Body("arm", cc.joints.Planar(), inertia=LUMP)], actuated=["arm"]
        ),
        [_output("SE2")],
    ),
    "double_pendulum": Case(
        two(_LEAN, _LEAN, gravity=HEAVY),
        [_output("R2", "tip", axes="xz", point=(0.4, 0, 0))],
        at=_FLOATING,
    ),
    "redundant": Case(two(_TURN, _SLIDE), [_output("R", "tip", axes="y")], at=_FLOATING),
    "acrobot": Case(
        two(_LEAN, _LEAN, gravity=HEAVY, actuated=["tip"]),
        [_output("R", "tip")],
        regular=False,
    ),
    "mimic": Case(two(_TURN, _TURN, mimics=[Mimic("tip", "arm", -0.5, 0.1)]), [_output("SO2")]),
    "motor": Case(
        two(
            _TURN,
            _TURN,
            actuated=[],
            motors=[Motor("a", {"arm": 2.0}, **_DRIVE), Motor("b", {"arm": 1.0, "tip": 3.0})],
        ),
        [_output("SO2"), _output("SO2", "tip", "turn")],
    ),
    "thruster": Case(
        one(_SLIDE, actuated=[], motors=[Motor("jet", body="arm", wrench=(1, 0, 0, 0, 0, 0))]),
        [_output("R")],
    ),
    "floater": Case(
        two(_TURN, _TURN, cc.joints.Planar()),
        [_output("R2", "tip", point=(0.4, 0, 0))],
        at=_FLOATING,
    ),
    "tumbling": Case(
        two(_TURN, _LEAN, cc.joints.Free()),
        [_output("R2", "tip", point=(0.4, 0, 0))],
        at=_FLOATING,
        reduced={"momentum": (0.1, 0.0, 0.1, 0.0, 0.1, 0.2)},
    ),
    "one_joint_floater": Case(
        lambda: cc.Mechanism(
            "reaction",
            [
                cc.Body("base", cc.joints.Planar(), inertia=LUMP),
                cc.Body("arm", _TURN, "base", inertia=LUMP),
            ],
        ),
        [_output("SO2")],
    ),
    "staged": Case(
        two(_TURN, _TURN, cc.joints.Planar(), actuated=["tip"]),
        [_output("SO2", "tip")],
        reduced={"stages": "auto"},
    ),
    "lagrange_pendulum": Case(_pendulum, [_function(1, 0, "SO2")]),
    "lagrange_carts": Case(_carts, [_function(2, 0, "R")], regular=False),
    "sprung": Case(
        two(
            _LEAN,
            _LEAN,
            gravity=HEAVY,
            springs=[
                Spring("arm", 20.0, 0.5, 0.1),
                Spring(None, 30.0, 1.0, 0.2, "tip", (0.3, 0, 0), "base", (0, 0, 0.5)),
            ],
        ),
        [_output("R2", "tip", axes="xz", point=(0.4, 0, 0))],
        at=_FLOATING,
    ),
    "lagrange_floater": Case(
        _floater, [_function(5, 3, "SO2")], reduced={"momentum": (0.1, 0.0, 0.2)}, regular=False
    ),
    "lagrange_staged": Case(
        _floater,
        [_function(5, 3, "SO2")],
        reduced={"momentum": (0.1, 0.0, 0.2), "stages": {"rotor": 0.05}},
    ),
    "lagrange_skate": Case(_skate, [_function(3, 2, "SO2")]),
}
"""Small systems, for all functions."""


_HANDS = {
    "car_arm": ("hand", "R2"),
    "free_flyer": ("tool", "SE3"),
    "mecanum_arm": ("base", "SE2"),
    "orbital_crawler": ("vehicle", "SE2"),
    "planar_floater": ("forearm", "SO2"),
    "rover_arm": ("forearm", "R3"),
    "servicer": ("left_hand", "R3"),
    "station_arm": ("hand", "SO3"),
    "two_handed_spacecraft": ("left_hand", "R3"),
    "wheel_satellite": ("satellite", "SO3"),
    "tractor_trailers": ("tractor", "SO2"),
    "chaplygin_sleigh": None,
    "crane_car": None,
    "snakeboard": None,
}

SHIPPED: dict[str, Case] = {
    name: Case(
        getattr(cc.robots, name),
        [] if hand is None else [_output(hand[1], hand[0])],
        regular=hand is not None,
    )
    for name, hand in _HANDS.items()
}
"""Robots of the package: every kind of wheels, steering, momentum and stages."""
