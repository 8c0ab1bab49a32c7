"""Stages by a part of a joint's group: joints that keep some components of their momentum.

Held against Pinocchio's dynamics, with generators and turns written by hand.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur.errors import ReductionError
from concur.reduction import StagedReduction, reduce, symmetry
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.oracles import Pinocchio, assert_close
from tests.reduction._parts import (
    DOWN,
    Component,
    equations_of,
    hull,
    with_ball,
)
from tests.reduction._staged import GENERIC, Lifted, X, Z, carrier, check_against

AXIS = np.array([[0.0], [0.0], [1.0]])
MU = np.array([1.2, -0.7, 0.0, 0.0, 0.0, 0.9])


def tilted_ball() -> Inertia:
    """A round body, its axis along (0.6, 0, 0.8), its centre of mass on it."""
    axis = np.array([0.6, 0.0, 0.8])
    tensor = 0.3 * np.eye(3) - 0.12 * np.outer(axis, axis)
    return Inertia(2.0, tuple(0.15 * axis), tuple(map(tuple, tensor)))


def turntable() -> Mechanism:
    """A driven disc on which a plate with a driven arm moves in the plane."""
    disc = Inertia(3.0, moments=(0.2, 0.2, 0.4))
    plate = Inertia(1.0, (0.02, -0.03, 0.0), (0.1, 0.1, 0.15))
    arm = Inertia(0.2, (0.05, 0.0, 0.0), (0.01, 0.03, 0.03))
    bodies = [
        Body("disc", joints.Revolute(Z), None, Pose((0.3, 0.2, 0.1)), disc),
        Body("plate", joints.Planar(), "disc", Pose(), plate),
        Body("arm", joints.Revolute(Z), "plate", Pose((0.02, 0.01, 0.0)), arm),
    ]
    return Mechanism("turntable", bodies, gravity=DOWN, actuated=("disc", "arm"))


def top() -> Mechanism:
    """A body that hangs from a point, its three moments different, with a driven rotor."""
    body = Inertia(2.0, (0.02, 0.01, -0.3), GENERIC)
    rotor = Inertia(0.4, (0.02, 0.0, 0.0), (0.02, 0.03, 0.03))
    bodies = [
        Body("top", joints.Spherical(), None, Pose((0.1, 0.2, 0.3)), body),
        Body("rotor", joints.Revolute((1, 1, 0)), "top", Pose((0, 0, -0.1)), rotor),
    ]
    return Mechanism("top", bodies, gravity=DOWN, actuated=("rotor",))


def falling() -> Mechanism:
    """A body that falls freely, with a driven arm."""
    arm = Inertia(1.0, (0.2, 0.0, 0.1), (0.02, 0.03, 0.04))
    bodies = [
        Body("body", joints.Free(), None, Pose(), Inertia(3.0, (0.02, 0.01, -0.1), GENERIC)),
        Body("arm", joints.Revolute(X), "body", Pose((0.1, 0.0, 0.2)), arm),
    ]
    return Mechanism("falling", bodies, gravity=DOWN, actuated=("arm",))


SE2 = np.eye(6)[:, [0, 1, 5]]


@dataclass(frozen=True)
class Case:
    """A robot, its momentum, the part of a joint, and what stays."""

    robot: Mechanism
    momentum: np.ndarray | None
    parts: tuple[Component, ...]
    shape: tuple[str, ...]
    straight: bool

    @property
    def stages(self) -> dict[str, np.ndarray]:
        return {self.parts[0][0]: np.concatenate([part[3] for part in self.parts])}

    def model(self) -> StagedReduction:
        model = reduce(self.robot, momentum=self.momentum, stages=self.stages)
        assert isinstance(model, StagedReduction)
        return model


def one(name: str, view: str, generators: np.ndarray, *theta: float) -> Component:
    return name, view, generators, np.array(theta)


CASES = {
    "axis of a round body": Case(
        hull(),
        MU,
        (one("ball", "body", AXIS, 0.5),),
        ("arm", "ball[wx]", "ball[wy]"),
        True,
    ),
    "axis of a round body, tilted": Case(
        with_ball(tilted_ball()),
        MU,
        (one("ball", "body", np.array([[0.6], [0.0], [0.8]]), 0.5),),
        ("arm", "ball[wx]", "ball[wy]"),
        False,
    ),
    "vertical axis": Case(
        with_ball(Inertia(2.0, moments=GENERIC)),
        MU,
        (one("ball", "parent", AXIS, 0.4),),
        ("arm", "ball[wx]", "ball[wy]"),
        False,
    ),
    "both": Case(
        with_ball(Inertia(2.0, moments=(0.3, 0.3, 0.2))),
        MU,
        (one("ball", "body", AXIS, 0.02), one("ball", "parent", AXIS, 0.1)),
        ("arm", "ball[wy]"),
        False,
    ),
    "disc then plane": Case(
        turntable(),
        None,
        (one("plate", "parent", AXIS, 0.1),),
        ("disc", "plate[vx]", "plate[vy]", "arm"),
        False,
    ),
    "top": Case(
        top(),
        None,
        (one("top", "parent", AXIS, 0.7),),
        ("top[wx]", "top[wy]", "rotor"),
        False,
    ),
    "falling": Case(
        falling(),
        None,
        (one("body", "parent", SE2, 0.8, -0.5, 0.6),),
        ("body[vz]", "body[wx]", "body[wy]", "arm"),
        False,
    ),
}


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", CASES)
def test_equations(name: str) -> None:
    case = CASES[name]
    model = case.model()
    assert model.shape_names == case.shape
    assert model.reason.count("; then by") == len(case.parts)
    oracle, equations = equations_of(case.robot, case.momentum, *case.parts)
    check_against(
        model,
        Lifted(oracle, equations, model.shape),
        oracle.forward_dynamics,
        seed=20,
        states=8,
        least=0.3,
    )
    assert model.chain[-1]._straight == case.straight


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", CASES)
def test_parts_are_found_as_they_are(name: str) -> None:
    case = CASES[name]
    model = case.model()
    for stage, (joint, view, generators, theta) in zip(model.chain, case.parts, strict=True):
        assert (stage.joint, stage.seen_from, stage.theta) == (joint, view, tuple(theta))
        np.testing.assert_allclose(np.array(stage.generators).T, generators, rtol=0, atol=1e-12)
        # The symmetries of the joint alone are the same without wheels.
        row = symmetry(case.robot)[joint]
        found = row.conserving if view == "parent" else row.own
        span, theirs = generators, found.coordinates
        assert theirs.shape == span.shape
        np.testing.assert_allclose(span @ np.linalg.pinv(span) @ theirs, theirs, atol=1e-9)


def test_a_second_part_with_an_axis_beside_the_joint() -> None:
    # The plate without its arm turns about its own centre of mass too, in its own axes.
    whole = turntable()
    robot = Mechanism("plate", whole.bodies[:2], gravity=DOWN, actuated=("disc",))
    about = np.array([[-0.03], [-0.02], [1.0]])
    parts = (one("plate", "body", about, 0.2), one("plate", "parent", AXIS, 0.6))
    model = reduce(robot, stages={"plate": [0.2, 0.6]})
    assert [stage.seen_from for stage in model.chain] == ["body", "parent"]
    np.testing.assert_allclose(np.array(model.chain[0].generators).T, about, rtol=0, atol=1e-12)
    oracle, equations = equations_of(robot, None, *parts)
    lifted = Lifted(oracle, equations, model.shape)
    check_against(model, lifted, oracle.forward_dynamics, seed=21, least=0.3)


def test_an_ideal_is_regular_everywhere() -> None:
    # A plate that slides on a table: its translations, whose span does not turn.
    table = Body("rail", joints.Prismatic(X), None, Pose(), Inertia(1.0))
    plate = Body("plate", joints.Planar(), "rail", Pose(), Inertia(2.0, (0.1, 0.05, 0), GENERIC))
    fin = Body("fin", joints.Revolute(Z), "plate", Pose((0.2, 0, 0)), Inertia(0.3, (0.1, 0, 0)))
    robot = Mechanism("sled", [table, plate, fin], actuated=("rail", "fin"), gravity=DOWN)
    model = reduce(robot, stages={"plate": [0.3, -0.2]})
    assert model.generators == ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    assert model.shape_names == ("rail", "plate[omega]", "fin")
    assert (model.seen_from, model._straight) == ("parent", True)
    plane = np.eye(3)[:, :2]
    oracle, equations = equations_of(robot, None, one("plate", "parent", plane, 0.3, -0.2))
    check_against(model, Lifted(oracle, equations, model.shape), oracle.forward_dynamics, seed=22)
    assert "regularity" not in model.reason
    assert reduce(robot, stages="auto").shape == model.shape
    # Where gravity pulls along the table, what is left turns in the axes of the plate.
    pulled = replace(robot, gravity=(0, 1.0, 0))
    one_left = reduce(pulled, stages={"plate": 0.4})
    assert one_left.generators == ((1.0, 0.0, 0.0),)
    assert "regularity" in one_left.reason
    oracle, equations = equations_of(pulled, None, one("plate", "parent", plane[:, :1], 0.4))
    lifted = Lifted(oracle, equations, one_left.shape)
    check_against(one_left, lifted, oracle.forward_dynamics, seed=22, least=0.3)


def cylinder(gravity: tuple[float, float, float], com: float = 0.0) -> tuple[Mechanism, Mechanism]:
    """A sleeve on a driven rod, and the same with two joints in its place."""
    rod = Body("rod", joints.Revolute(X), None, Pose(), Inertia(1.0, (0, 0, 0.2), (0.1, 0.1, 0.02)))
    inertia = Inertia(0.7, (com, 0.0, 0.1), (0.03, 0.03, 0.02))
    place = Pose((0.1, 0.2, 0.0))
    sleeve = Body("sleeve", joints.Cylindrical(Z), "rod", place, inertia)
    slide = Body("slide", joints.Prismatic(Z), "rod", place)
    spin = Body("sleeve", joints.Revolute(Z), "slide", Pose(), inertia)
    return (
        Mechanism("one", [rod, sleeve], gravity=gravity, actuated=("rod",)),
        Mechanism("two", [rod, slide, spin], gravity=gravity, actuated=("rod",)),
    )


def test_the_turn_of_a_cylindrical_joint() -> None:
    robot, twin = cylinder(DOWN)
    model = reduce(robot, stages={"sleeve": 0.3})
    assert model.shape_names == ("rod", "sleeve[travel]")
    assert model.generators == ((0.0, 1.0),)
    oracle = Pinocchio(twin)

    def equations(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return oracle.mass_matrix(q)[2:], np.array([0.3])

    lifted = Lifted(oracle, equations, model.shape)
    check_against(model, lifted, oracle.forward_dynamics, seed=23)
    assert model.regularity(robot.random(np.random.default_rng(0))) == 1.0
    with pytest.raises(ReductionError, match="or a part of it"):
        reduce(cylinder(DOWN, com=1e-3)[0], stages=["sleeve"])


def test_stages_after_a_part_that_turns() -> None:
    # A balanced rotor beside it: its rows are those of the metric no longer.
    rotor = Inertia(0.5, moments=(0.03, 0.03, 0.05))
    case = CASES["vertical axis"]
    robot = Mechanism(
        "pair",
        [*case.robot.bodies, Body("rotor", joints.Revolute(Z), "plate", Pose((0.1, 0, 0)), rotor)],
        gravity=DOWN,
        actuated=("arm",),
    )
    rotor_part = one("rotor", "body", np.eye(1), 0.25)
    oracle, equations = equations_of(robot, MU, case.parts[0], rotor_part)
    both = {"ball": 0.4, "rotor": 0.25}
    for order in (["ball", "rotor"], ["rotor", "ball"]):
        model = reduce(robot, momentum=MU, stages={name: both[name] for name in order})
        assert model.stages == tuple(order)
        assert model.shape_names == ("arm", "ball[wx]", "ball[wy]")
        lifted = Lifted(oracle, equations, model.shape)
        check_against(model, lifted, oracle.forward_dynamics, seed=25, states=6, least=0.3)


def test_where_a_part_does_not_determine_a_velocity() -> None:
    model = CASES["vertical axis"].model()
    assert "see `regularity`" in model.reason
    assert "ball[wz] does not follow" in model.reason
    robot = model.robot
    values = []
    for angle in (0.0, 0.8, 1.4, np.pi / 2):
        q = robot.neutral()
        q[robot.q_slice("ball")] = Rotation.from_rotvec((0.0, angle, 0.0)).as_quat()
        values.append(float(model.regularity(q)))
    assert values[0] > 0.9
    assert values == sorted(values, reverse=True)
    round_one = CASES["axis of a round body"].model()
    assert "regularity" not in round_one.reason
    assert round_one.regularity(robot.random(np.random.default_rng(27))) == 1.0
    # Two axes of one body are one where it stands upright.
    assert CASES["both"].model().regularity(robot.neutral()) < 1e-12


def test_auto_takes_parts_that_are_regular_everywhere() -> None:
    assert reduce(hull(), stages="auto").shape_names == ("arm", "ball[wx]", "ball[wy]")
    hint = reduce(hull()).reason
    assert (
        "`ball` is unactuated and keeps a part of its momentum, wz in the axes of the body" in hint
    )
    upright = CASES["vertical axis"].robot
    assert reduce(upright, stages="auto") == reduce(upright)
    assert "stages" not in reduce(upright).reason


@pytest.mark.parametrize(
    "inertia",
    [
        Inertia(2.0, (1e-6, 0, 0.1), (0.3, 0.3, 0.2)),
        Inertia(2.0, (0, 0, 0.1), (0.3, 0.3 + 1e-7, 0.2)),
        Inertia(2.0, (0, 0, 0.1), ((0.3, 0, 0), (0, 0.3, 1e-6), (0, 1e-6, 0.2))),
    ],
    ids=["centre", "moments", "axes"],
)
def test_a_body_that_is_almost_round_keeps_nothing(inertia: Inertia) -> None:
    robot = with_ball(inertia)
    with pytest.raises(ReductionError, match="keeps its momentum, or a part of it"):
        reduce(robot, stages=["ball"])
    assert reduce(robot, stages="auto").kind == "symplectic"


def test_parts_at_another_momentum_and_of_another_robot() -> None:
    case = CASES["both"]
    model = case.model()
    other = reduce(case.robot, momentum=2 * MU, stages=case.stages)
    assert model.at_momentum(2 * MU) == other
    assert pickle.loads(pickle.dumps(model)) == model
    heavy = with_ball(Inertia(3.0, moments=(0.4, 0.4, 0.2)))
    twin = reduce(heavy, momentum=MU, stages=case.stages)
    q = twin.robot.random(np.random.default_rng(28))
    assert_close(model.on(heavy).mass_matrix(q), twin.mass_matrix(q), 1e-14)


def test_gravity_leaves_a_part_of_the_momentum_of_a_base() -> None:
    robot = top()
    with pytest.raises(ReductionError, match="name the base in `stages`"):
        reduce(robot)
    with pytest.raises(ReductionError, match="`gravity`"):
        reduce(robot, stages="auto")
    with pytest.raises(ReductionError, match="`gravity`"):
        reduce(robot, stages=["rotor"])
    with pytest.raises(ReductionError, match="leaves constant is given in `stages`"):
        reduce(robot, momentum=MU, stages=["top"])
    model = reduce(robot, stages=["top"])
    assert model.first.kind == "unreduced"
    assert "gravity changes the momentum of the base `top`" in model.reason
    first = next(row for row in model.audit() if row.id == "CON1")
    assert "found constant when the stages were taken" in first.why


def test_a_momentum_that_drifts_leaves_the_turn_about_itself() -> None:
    # Off its centre, a body on a ball joint that slides freely keeps its angular momentum about
    # the direction of the linear one.
    direction = np.array([1.0, 2.0, 3.0]) / np.sqrt(14.0)
    whole = carrier(com=(0.1, 0.0, 0.05))
    momentum = np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0])
    model = reduce(whole, momentum=momentum, stages={"carrier": 0.3})
    assert model.seen_from == "parent"
    np.testing.assert_allclose(model.generators[0], direction, rtol=0, atol=1e-12)
    oracle, inner = equations_of(whole, None, one("carrier", "parent", direction[:, None], 0.3))

    def equations(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows, values = inner(q)
        return np.vstack([oracle.mass_matrix(q)[:3], rows]), np.array([*momentum[:3], *values])

    lifted = Lifted(oracle, equations, model.shape)
    check_against(model, lifted, oracle.forward_dynamics, seed=29, states=6, least=0.3)
    again = model.at_momentum(2 * momentum).generators
    np.testing.assert_allclose(again, model.generators, rtol=0, atol=1e-12)
    with pytest.raises(ReductionError, match="another part of it"):
        model.at_momentum([0, 0, 2, 0, 0, 0])
