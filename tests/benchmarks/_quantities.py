"""Single functions of many robots beside the peers: from Python, and within a loop in C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TypeAlias

import casadi as ca
import mujoco
import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

import concur as cc
from concur.codegen import Evaluator, instructions
from tests.benchmarks import _mujoco_model, _pinocchio_model
from tests.benchmarks._contender import Comparison, Contender, Run
from tests.benchmarks._floating_job import START
from tests.benchmarks._inner import OurInner, TheirInner, run_of, theirs_calls
from tests.benchmarks._robots import bent, chain, dual_arm, tilted_free_flyer

COUNT = 50
"""States through which one timed run goes."""

Calls: TypeAlias = list[tuple[np.ndarray, ...]]
Function: TypeAlias = Callable[..., np.ndarray | tuple[np.ndarray, ...]]

QUANTITIES = {
    "mass_matrix": "mass matrix",
    "bias": "bias forces",
    "forward_dynamics": "forward dynamics",
    "momentum_matrix": "momentum matrix",
    "motion": "Jacobian J of the hand and Jdot v",
}
"""What is computed, by the name of the function that does it."""

ARGUMENTS = {
    "mass_matrix": "q",
    "bias": "qv",
    "forward_dynamics": "qvu",
    "momentum_matrix": "q",
    "motion": "qv",
}


@dataclass(frozen=True, eq=False)
class Case:
    """A robot without wheels, its hand, and the middle of the configurations it is timed in."""

    name: str
    robot: cc.Mechanism
    hand: str
    posture: np.ndarray

    @cached_property
    def states(self) -> Calls:
        """Configurations, velocities and torques, alike for all contenders."""
        rng = np.random.default_rng(0)
        robot, drawn = self.robot, []
        for _ in range(COUNT):
            q = self.posture.copy()
            if isinstance(robot.base.joint, cc.joints.Free):
                q[:3] += rng.uniform(-1.0, 1.0, 3)
                q[3:7] = Rotation.random(random_state=rng).as_quat()
                q[7:] += rng.uniform(-0.5, 0.5, robot.nq - 7)
            else:
                q += rng.uniform(-0.5, 0.5, robot.nq)
            v = rng.uniform(-1.0, 1.0, robot.nv)
            drawn.append((q, v, rng.uniform(-5.0, 5.0, len(robot.actuated_freedoms))))
        return drawn

    def calls(self, quantity: str) -> Calls:
        """Arguments of a quantity."""
        kinds = ARGUMENTS[quantity]
        return [tuple(state["qvu".index(kind)] for kind in kinds) for state in self.states]


def _free(robot: cc.Mechanism) -> cc.Mechanism:
    """Leave the wheels out: peers have no rolling."""
    return cc.Mechanism(robot.name, robot.bodies, gravity=robot.gravity)


CASES: dict[str, Callable[[], Case]] = {
    "planar floater": lambda: Case(
        "planar floater",
        cc.robots.planar_floater(),
        "forearm",
        np.array([0.3, -0.2, 0.5, 0.6, -0.9]),
    ),
    "free-flyer, 6 joints": lambda: Case(
        "free-flyer, 6 joints", cc.robots.free_flyer(), "tool", START
    ),
    "the same without structural zeros": lambda: Case(
        "the same without structural zeros", tilted_free_flyer(), "tool", START
    ),
    "rover with an arm, wheels free": lambda: Case(
        "rover with an arm, wheels free",
        _free(cc.robots.rover_arm()),
        "forearm",
        np.array([0.1, 0.2, 0.3, 0.0, 0.0, 0.4, 0.5, -0.8]),
    ),
    "two arms of 7 joints": lambda: Case(
        "two arms of 7 joints", dual_arm(), "left_tool", bent(dual_arm())
    ),
    "24 joints": lambda: Case("24 joints", chain(24), "link_tool", bent(chain(24))),
    "48 joints": lambda: Case("48 joints", chain(48), "link_tool", bent(chain(48))),
}


@cache
def case(name: str) -> Case:
    """Build a robot and its states, once."""
    return CASES[name]()


@cache
def graph(made: Case, quantity: str) -> ca.Function:
    """Expression graph of one of our functions, as a user would write it over SX."""
    robot = made.robot
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    u = ca.SX.sym("u", len(robot.actuated_freedoms))
    inputs = [{"q": q, "v": v, "u": u}[kind] for kind in ARGUMENTS[quantity]]
    if quantity == "mass_matrix":
        results = [robot.mass_matrix(q)]
    elif quantity == "bias":
        results = [robot.bias(q, v)]
    elif quantity == "forward_dynamics":
        results = [cc.Plant(robot).acceleration(q, v, u)[0]]
    elif quantity == "momentum_matrix":
        results = [robot.momentum_matrix(q)]
    else:
        results = [robot.jacobian(q, made.hand), robot.velocity_product(q, v, made.hand)]
    dense = [ca.densify(result) for result in results]
    return ca.Function(quantity, inputs, dense, {"cse": True})


def ours(made: Case, quantity: str) -> Function:
    """Our function as a user calls it, compiled; results are new arrays."""
    robot, hand = made.robot, made.hand
    evaluators(made, quantity)
    if quantity == "forward_dynamics":
        acceleration = plant(made).acceleration
        return lambda q, v, u: acceleration(q, v, u)[0]
    if quantity == "motion":
        return lambda q, v: (robot.jacobian(q, hand), robot.velocity_product(q, v, hand))
    function: Function = getattr(robot, quantity)
    return function


def in_place(made: Case, quantity: str) -> Function:
    """Our function with results left where they are computed, as the peers leave theirs."""
    first, *more = (evaluator.view for evaluator in evaluators(made, quantity))
    if quantity == "forward_dynamics":
        return lambda q, v, u: first(q, v, u)[0]
    if quantity == "motion":
        second = more[0]
        return lambda q, v: (first(q), second(q, v))
    return first


@cache
def plant(made: Case) -> cc.Plant:
    """Give the plant of a robot, once."""
    return cc.Plant(made.robot)


@cache
def evaluators(made: Case, quantity: str) -> list[Evaluator]:
    """What is called behind a quantity, compiled."""
    robot, hand = made.robot, made.hand
    if quantity == "forward_dynamics":
        plant(made).compile_functions("acceleration")
        return [plant(made).buffered("acceleration")]
    if quantity == "motion":
        robot.compile_functions(("jacobian", hand), ("velocity_product", hand))
        return [robot.buffered("jacobian", hand), robot.buffered("velocity_product", hand)]
    robot.compile_functions(quantity)
    return [robot.buffered(quantity)]


class PinocchioFunctions:
    """The functions over Pinocchio's Python interface, in its coordinates."""

    def __init__(self, robot: cc.Mechanism, hand: str) -> None:
        self.model = _pinocchio_model.build(robot)
        self.data = self.model.createData()
        self.hand = self.model.getFrameId(hand)
        self.still, self.forces = np.zeros((2, robot.nv))
        self.rows = list(robot.actuated_freedoms)

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        """Fill the upper triangle only, as the library does."""
        return pin.crba(self.model, self.data, q)

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return pin.nonLinearEffects(self.model, self.data, q, v)

    def forward_dynamics(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        self.forces[self.rows] = u
        return pin.aba(self.model, self.data, q, v, self.forces)

    def momentum_matrix(self, q: np.ndarray) -> np.ndarray:
        """About the centre of mass, as the library gives it."""
        return pin.computeCentroidalMap(self.model, self.data, q)

    def motion(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        model, data = self.model, self.data
        pin.forwardKinematics(model, data, q, v, self.still)
        pin.computeJointJacobians(model, data)
        jacobian = pin.getFrameJacobian(model, data, self.hand, pin.LOCAL)
        return jacobian, pin.getFrameAcceleration(model, data, self.hand, pin.LOCAL).vector


class MujocoFunctions:
    """The functions over MuJoCo's Python interface, in its coordinates."""

    def __init__(self, robot: cc.Mechanism, hand: str) -> None:
        self.model = _mujoco_model.build(robot)
        self.data = mujoco.MjData(self.model)
        self.q, self.v = self.data.qpos, self.data.qvel
        self.applied = self.data.qfrc_applied
        site = self.model.site(hand).id
        self.body = int(self.model.site_bodyid[site])
        self.place = self.data.site_xpos[site]
        nv = robot.nv
        self.rows = list(robot.actuated_freedoms)
        self.mass, self.own_bias = np.zeros((nv, nv)), np.zeros(nv)
        self.matrix, self.angular = np.zeros((6, nv)), np.zeros((3, nv))
        self.jacobian, self.change = np.zeros((2, 6, nv))
        self.total = float(self.model.body_subtreemass[0])

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        model, data = self.model, self.data
        self.q[:] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)
        mujoco.mj_fullM(model, data, self.mass)
        return self.mass

    def bias(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        model, data = self.model, self.data
        self.q[:], self.v[:] = q, v
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 0, self.own_bias)
        return self.own_bias

    def forward_dynamics(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        self.q[:], self.v[:] = q, v
        self.applied[self.rows] = u
        mujoco.mj_forward(self.model, self.data)
        return self.data.qacc

    def momentum_matrix(self, q: np.ndarray) -> np.ndarray:
        """About the centre of mass."""
        model, data, matrix = self.model, self.data, self.matrix
        self.q[:] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_jacSubtreeCom(model, data, matrix[:3], 0)
        matrix[:3] *= self.total
        mujoco.mj_angmomMat(model, data, matrix[3:], 0)
        return matrix

    def motion(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In inertial axes, at the hand."""
        model, data, jacobian, change = self.model, self.data, self.jacobian, self.change
        self.q[:], self.v[:] = q, v
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_jac(model, data, jacobian[:3], jacobian[3:], self.place, self.body)
        mujoco.mj_jacDot(model, data, change[:3], change[3:], self.place, self.body)
        return jacobian, change.dot(v)


@cache
def pinocchio_functions(made: Case) -> PinocchioFunctions:
    """Build the robot in Pinocchio, once."""
    return PinocchioFunctions(made.robot, made.hand)


@cache
def mujoco_functions(made: Case) -> MujocoFunctions:
    """Build the robot in MuJoCo, once."""
    return MujocoFunctions(made.robot, made.hand)


def comparison(name: str, quantity: str) -> Comparison:
    """One quantity of one robot; nothing is built yet."""
    return Comparison(
        f"{name}: {QUANTITIES[quantity]}",
        (
            Contender(
                "ours", lambda: through(ours(case(name), quantity), case(name).calls(quantity))
            ),
            Contender(
                "ours, in place",
                lambda: through(in_place(case(name), quantity), case(name).calls(quantity)),
            ),
            Contender("ours, inner", lambda: run_of(our_inner(case(name), quantity)), inner=True),
            Contender("over Pinocchio", lambda: _pinocchio(case(name), quantity), "Pinocchio"),
            Contender(
                "over Pinocchio, inner",
                lambda: run_of(their_inner(case(name), quantity)),
                "C++",
                inner=True,
            ),
            Contender("over MuJoCo", lambda: _mujoco(case(name), quantity), "MuJoCo"),
        ),
        COUNT,
        60,
        alike=False,
    )


def through(function: Function, calls: Calls) -> Run:
    """Call a function in all states."""

    def run() -> np.ndarray:
        for numbers in calls:
            result = function(*numbers)
        return result if isinstance(result, np.ndarray) else result[0]

    return run


def our_inner(made: Case, quantity: str) -> OurInner:
    """Our function in the loop in C."""
    return OurInner(graph(made, quantity), made.calls(quantity))


def their_inner(made: Case, quantity: str) -> TheirInner:
    """The function over Pinocchio's headers in the loop in C++."""
    nv = made.robot.nv
    calls = theirs_calls(made.robot, made.calls(quantity))
    if quantity == "forward_dynamics":
        calls = [(q, v, _forces(made.robot, u)) for q, v, u in calls]
    sizes = {
        "mass_matrix": [(nv, nv)],
        "bias": [(nv,)],
        "forward_dynamics": [(nv,)],
        "momentum_matrix": [(6, nv)],
        "motion": [(6, nv), (6,)],
    }
    model = _pinocchio_model.build(made.robot)
    return TheirInner(quantity, model, made.hand, calls, sizes[quantity])


def length(made: Case, quantity: str) -> int:
    """Instructions of our graph."""
    return instructions(graph(made, quantity))


def _forces(robot: cc.Mechanism, u: np.ndarray) -> np.ndarray:
    forces = np.zeros(robot.nv)
    forces[list(robot.actuated_freedoms)] = u
    return forces


def _pinocchio(made: Case, quantity: str) -> Run:
    calls = theirs_calls(made.robot, made.calls(quantity))
    return through(getattr(pinocchio_functions(made), quantity), calls)


def _mujoco(made: Case, quantity: str) -> Run:
    robot = made.robot
    calls = []
    for q, *rest in made.calls(quantity):
        if rest:
            rest[0] = _mujoco_model.turned(robot, q) @ rest[0]
        calls.append((_mujoco_model.configuration(robot, q), *rest))
    return through(getattr(mujoco_functions(made), quantity), calls)
