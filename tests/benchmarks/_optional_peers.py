"""Drake, adam and urdf2casadi, where they are installed: the same functions, for some robots.

They read a robot from a URDF text, which is written here. Drake computes in C++ called from
Python; adam and urdf2casadi make CasADi graphs, of which adam's are called here in CasADi's plain
way. urdf2casadi knows arms on a fixed base only.
"""

from __future__ import annotations

import importlib.util
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

import concur as cc
from tests.benchmarks._contender import Comparison, Contender, Run
from tests.benchmarks._quantities import (
    COUNT,
    QUANTITIES,
    Calls,
    Case,
    case,
    ours,
    through,
)
from tests.benchmarks._report import beside, duration
from tests.benchmarks._timing import measure

ROBOTS = "free-flyer, 6 joints", "the same without structural zeros", "24 joints"
"""Robots that are compared: on a free base, with one arm."""

PEERS = {
    "drake": ("pydrake",),
    "adam-robotics": ("adam", "liecasadi"),  # the latter by its extra `casadi`
    "urdf2casadi": ("urdf2casadi",),
}
"""Modules of each distribution."""

TIMED = "drake", "adam-robotics"
"""Those that take robots on a free base."""


def installed() -> list[str]:
    """Which of them are there."""
    return [name for name, modules in PEERS.items() if all(map(importlib.util.find_spec, modules))]


def urdf(robot: cc.Mechanism) -> str:
    """Write a robot of free, revolute and fixed joints as URDF; links without mass get none."""
    parts = [f'<robot name="{robot.name}">']
    for body in robot.bodies:
        inertia = body.inertia
        inside = ""
        if inertia.mass:
            names = ("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2)
            moments = " ".join(
                f'{name}="{float(inertia.tensor[i, j])!r}"'
                for name, i, j in (*names, ("izz", 2, 2))
            )
            inside = (
                f'<inertial><origin xyz="{_text(inertia.com)}" rpy="0 0 0"/>'
                f'<mass value="{inertia.mass!r}"/><inertia {moments}/></inertial>'
            )
        parts.append(f'<link name="{body.name}">{inside}</link>')
        if body.parent is None:
            continue
        angles = Rotation.from_quat(body.placement.rotation).as_euler("xyz")
        moving = isinstance(body.joint, cc.joints.Revolute)
        axis = f'<axis xyz="{_text(body.joint.axis)}"/>' if moving else ""
        parts.append(
            f'<joint name="{body.name}_joint" type="{"continuous" if moving else "fixed"}">'
            f'<origin xyz="{_text(body.placement.translation)}" rpy="{_text(angles)}"/>'
            f'<parent link="{body.parent}"/><child link="{body.name}"/>{axis}</joint>'
        )
    return "\n".join([*parts, "</robot>"])


def _text(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in numbers)


class DrakeFunctions:
    """The functions over Drake's Python interface; a free base is turned in inertial axes there."""

    quantities = "mass_matrix", "bias", "motion"

    def __init__(self, made: Case) -> None:
        from pydrake.multibody.parsing import Parser
        from pydrake.multibody.plant import MultibodyPlant
        from pydrake.multibody.tree import JacobianWrtVariable

        robot = made.robot
        self.robot, self.plant = robot, MultibodyPlant(0.0)
        Parser(self.plant).AddModelsFromString(urdf(robot), "urdf")
        self.plant.mutable_gravity_field().set_gravity_vector(np.array(robot.gravity))
        self.plant.Finalize()
        self.context = self.plant.CreateDefaultContext()
        self.world, self.hand = self.plant.world_frame(), self.plant.GetFrameByName(made.hand)
        self.wrt, self.nq = JacobianWrtVariable.kV, robot.nq
        self.x = np.zeros(robot.nq + robot.nv)

    def place(self, q: np.ndarray, v: np.ndarray | None = None) -> None:
        """Set a state, given in the library's coordinates."""
        self.x[: self.nq] = q
        if v is not None:
            self.x[self.nq :] = v
        self.plant.SetPositionsAndVelocities(self.context, self.x)

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Our configuration: quaternion first, its scalar part first."""
        return np.concatenate([q[6:7], q[3:6], q[:3], q[7:]])

    def turned(self, q: np.ndarray) -> np.ndarray:
        """Map from our velocities to the library's: angular part first, inertial axes."""
        nv = self.robot.nv
        turn, rotation = np.eye(nv), Rotation.from_quat(q[3:7]).as_matrix()
        turn[:6, :6] = 0.0
        turn[:3, 3:6] = turn[3:6, :3] = rotation
        return turn

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        self.place(q)
        return self.plant.CalcMassMatrix(self.context)

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        self.place(q, v)
        forces = self.plant.CalcBiasTerm(self.context)
        return forces - self.plant.CalcGravityGeneralizedForces(self.context)

    def motion(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Angular part first, in the axes of the hand."""
        self.place(q, v)
        plant, context, hand, world = self.plant, self.context, self.hand, self.world
        origin = np.zeros(3)
        jacobian = plant.CalcJacobianSpatialVelocity(context, self.wrt, hand, origin, world, hand)
        bias = plant.CalcBiasSpatialAcceleration(context, self.wrt, hand, origin, world, hand)
        return jacobian, bias.get_coeffs()


class AdamFunctions:
    """The functions as adam's CasADi graphs, with the base's twist in its own axes, as ours."""

    quantities = tuple(QUANTITIES)

    def __init__(self, made: Case) -> None:
        import adam
        from adam.casadi import KinDynComputations

        robot = made.robot
        joints = [
            f"{b.name}_joint" for b in robot.bodies if isinstance(b.joint, cc.joints.Revolute)
        ]
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "robot.urdf"
            path.write_text(urdf(robot), encoding="utf-8")
            gravity = np.array([*robot.gravity, 0.0, 0.0, 0.0])
            kinematics = KinDynComputations(str(path), joints, gravity=gravity)
        kinematics.set_frame_velocity_representation(adam.Representations.BODY_FIXED_REPRESENTATION)
        jacobian = kinematics.jacobian_fun(made.hand)
        change = kinematics.jacobian_dot_fun(made.hand)
        state = change.sx_in()
        results = jacobian(*state[:2]), change(*state) @ ca.vertcat(*state[2:])
        self.functions: dict[str, ca.Function] = {
            "mass_matrix": kinematics.mass_matrix_fun(),
            "bias": kinematics.bias_force_fun(),
            "forward_dynamics": kinematics.aba_fun(),
            "momentum_matrix": kinematics.centroidal_momentum_matrix_fun(),
            "motion": ca.Function("motion", state, results, {"cse": True}),
        }


@cache
def drake(name: str) -> DrakeFunctions:
    """Build a robot in Drake, once."""
    return DrakeFunctions(case(name))


@cache
def adam(name: str) -> AdamFunctions:
    """Build a robot in adam, once."""
    return AdamFunctions(case(name))


def drake_run(name: str, quantity: str) -> Run:
    """Call a function over Drake in all states."""
    library = drake(name)
    calls: Calls = []
    for q, *rest in case(name).calls(quantity):
        turned = [library.turned(q) @ v for v in rest]
        calls.append((library.configuration(q), *turned))
    return through(getattr(library, quantity), calls)


def adam_arguments(
    q: np.ndarray, v: np.ndarray | None = None, *torques: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Our state as adam takes it."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.from_quat(q[3:7]).as_matrix(), q[:3]
    return (pose, q[7:]) if v is None else (pose, q[7:], v[:6], v[6:], *torques)


def adam_run(name: str, quantity: str) -> Run:
    """Call a function of adam in all states."""
    function = adam(name).functions[quantity]
    calls = [adam_arguments(*numbers) for numbers in case(name).calls(quantity)]

    def run() -> np.ndarray:
        for numbers in calls:
            result = function(*numbers)
        return np.array(result[0] if isinstance(result, tuple) else result)

    return run


def in_our_coordinates(name: str, quantity: str, library: str) -> list[np.ndarray]:
    """What a peer gives in the first state, turned into our coordinates."""
    robot = case(name).robot
    q, *rest = case(name).calls(quantity)[0]
    if library == "adam":
        results = adam(name).functions[quantity].call(list(adam_arguments(q, *rest)))
        found = [np.array(result) for result in results]
        if quantity == "momentum_matrix":  # in the base's axes there
            found = [np.kron(np.eye(2), adam_arguments(q)[0][:3, :3]) @ found[0]]
        return [part[:, 0] if part.shape[1] == 1 else part for part in found]
    functions = drake(name)
    turn, own = functions.turned(q), functions.configuration(q)
    v = rest[0] if rest else np.zeros(robot.nv)
    result = getattr(functions, quantity)(own, *(turn @ v for v in rest))
    # Rate of the base's velocity in inertial axes that is zero in its own.
    turning = np.zeros(robot.nv)
    turning[3:6] = turn[3:6, :3] @ np.cross(v[3:6], v[:3])
    if quantity == "mass_matrix":
        return [turn.T @ result @ turn]
    if quantity == "bias":
        return [turn.T @ (result + functions.mass_matrix(own) @ turning)]
    jacobian, change = result
    ours_first = np.r_[3:6, 0:3]
    moved = (jacobian @ turn @ v)[ours_first]
    rate = (change + jacobian @ turning)[ours_first]
    rate[:3] -= np.cross(moved[3:], moved[:3])
    return [(jacobian @ turn)[ours_first], rate]


def check(name: str, quantity: str, library: str) -> None:
    """Refuse to time what gives other numbers.

    Raises
    ------
    ValueError
        If a peer's result differs from ours.
    """
    arguments = case(name).calls(quantity)[0]
    mine = ours(case(name), quantity)(*arguments)
    own = list(mine) if isinstance(mine, tuple) else [mine]
    theirs = in_our_coordinates(name, quantity, library)
    if quantity == "momentum_matrix":  # theirs is about the centre of mass: linear rows only
        own, theirs = [own[0][:3]], [theirs[0][:3]]
    for one, other in zip(own, theirs, strict=True):
        if not np.allclose(one, other, rtol=1e-9, atol=1e-9 * float(np.abs(one).max())):
            raise ValueError(f"{library} gives another {quantity} of {name}")


def other_comparison(name: str, quantity: str) -> Comparison:
    """One function by ours and by those of the peers that are installed and have it."""
    known = installed()
    contenders = [
        Contender("ours", lambda: through(ours(case(name), quantity), case(name).calls(quantity)))
    ]
    if "drake" in known and quantity in DrakeFunctions.quantities:
        contenders.append(Contender("over Drake", lambda: drake_run(name, quantity), "Drake"))
    if "adam-robotics" in known and quantity in AdamFunctions.quantities:
        contenders.append(Contender("by adam", lambda: adam_run(name, quantity), "adam"))
    title = f"{name}: {QUANTITIES[quantity]}"
    return Comparison(title, tuple(contenders), COUNT, 60, alike=False)


def fixed_arm() -> cc.Mechanism:
    """Build the arm of the free-flyer on a base that stands still: all that urdf2casadi takes."""
    base, *arm = cc.robots.free_flyer().bodies
    return cc.Mechanism("fixed_arm", [cc.Body(base.name, cc.joints.Fixed()), *arm])


def other_peers_table(rounds: int | None) -> str:
    """Times beside those of the peers that are installed."""
    known = [name for name in TIMED if name in installed()]
    if not known:
        return f"Not installed here: {', '.join(TIMED)}."
    told = ", ".join(f"{name} {version(name)}" for name in known)
    lines = [
        f"With {told}.",
        "",
        "| robot | function | ours | over Drake | adam |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for name in ROBOTS:
        for quantity, title in QUANTITIES.items():
            result = measure(other_comparison(name, quantity), rounds)
            mine, *peers = result.comparison.contenders
            by = {peer.library: peer for peer in peers}
            if not peers:
                continue
            for library in by:
                check(name, quantity, library)
            cells = [
                name,
                title,
                duration(result.median(mine)),
                *(beside(result, mine, by[p]) if p in by else "" for p in ("Drake", "adam")),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
