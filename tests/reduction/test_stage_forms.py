"""Two-form of stages by a part of a joint's group, and stages after stages.

The momentum equation, with the two-form in it, is held against momenta differenced along motions at
full order: Pinocchio's, with multipliers on wheels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from concur.reduction import StagedReduction, reduce
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.oracles import Constrained, Pinocchio, assert_close, difference_quotient
from tests.reduction._parts import DOWN, Component, body_axes, equations_of, with_ball
from tests.reduction._reduced import Reference
from tests.reduction._staged import (
    GENERIC,
    Dynamics,
    Lifted,
    Z,
    ball_rover,
    check_against,
    twist_bracket,
)

AXIS = np.array([[0.0], [0.0], [1.0]])
MU = np.array([1.2, -0.7, 0.0, 0.0, 0.0, 0.9])


@dataclass(frozen=True)
class Held:
    """A staged model, and the same from Pinocchio."""

    model: StagedReduction
    lifted: Lifted
    dynamics: Dynamics


def staged(robot: Mechanism, momentum: np.ndarray | None, parts: Sequence[Component]) -> Held:
    momenta: dict[str, list[float]] = {}
    for name, _, _, theta in parts:
        momenta[name] = [*momenta.get(name, []), *theta]
    model = reduce(robot, momentum=momentum, stages=momenta)
    assert isinstance(model, StagedReduction)
    oracle, equations = equations_of(robot, momentum, *parts)
    return Held(model, Lifted(oracle, equations, model.shape), oracle.forward_dynamics)


def upright(*others: Body) -> Mechanism:
    """A base in a plane with an arm and a body on a ball joint, generic, held in its centre."""
    robot = with_ball(Inertia(2.0, moments=GENERIC))
    return Mechanism("upright", [*robot.bodies, *others], gravity=DOWN, actuated=("arm",))


def beside_a_ball() -> Held:
    # The other ball is in the shape as a whole: its frame does not commute.
    inertia = Inertia(1.0, (0.1, 0.05, 0.02), (0.1, 0.12, 0.13))
    other = Body("other", joints.Spherical(), "plate", Pose((0.1, -0.2, 0.1)), inertia)
    return staged(upright(other), MU, [("ball", "parent", AXIS, np.array([0.4]))])


def in_both_axes() -> Held:
    robot = with_ball(Inertia(2.0, moments=(0.3, 0.3, 0.2)))
    spin, turn = np.array([0.02]), np.array([0.1])
    return staged(robot, MU, [("ball", "body", AXIS, spin), ("ball", "parent", AXIS, turn)])


def on_wheels(inertia: Inertia, parts: Sequence[Component]) -> Held:
    whole = ball_rover()
    bodies = [*whole.bodies[:-1], replace(whole.bodies[-1], inertia=inertia)]
    robot = Mechanism("rover", bodies, whole.wheels, DOWN, ("left", "right", "arm"))
    rows = np.zeros((3, robot.nv))
    rows[0, 1] = 1.0
    rows[1, [0, 2, 3]] = 1.0, -0.25, -0.1
    rows[2, [0, 2, 4]] = 1.0, 0.25, -0.1
    full = Constrained(Pinocchio(robot), lambda q: rows.astype(q.dtype))
    first = Reference(full, shape=list(range(3, robot.nv)), dependent=[0, 1, 2])
    span = robot.v_slice("ball")

    def equations(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # The ball's columns of the first stage, those of the shape, turned.
        fields = first.lift(q)[:, [i - 3 for i in range(robot.nv)[span]]]
        turned = body_axes(joints.Spherical(), q[robot.q_slice("ball")])
        kept = [
            (fields @ (turned if view == "parent" else np.eye(3)) @ generators).T
            @ full.oracle.mass_matrix(q)
            for _, view, generators, _ in parts
        ]
        values = [theta for *_, theta in parts]
        return np.vstack([rows, *kept]), np.concatenate([np.zeros(3), *values])

    model = reduce(robot, stages={"ball": np.concatenate([theta for *_, theta in parts])})
    assert isinstance(model, StagedReduction)
    lifted = Lifted(full.oracle, equations, model.shape)
    return Held(model, lifted, lambda q, v, tau: full.acceleration(q, v, tau)[0])


ON_WHEELS = {
    "vertical axis on wheels": (
        Inertia(2.0, moments=GENERIC),
        [("ball", "parent", AXIS, np.array([0.2]))],
    ),
    "both on wheels": (
        Inertia(2.0, moments=(0.3, 0.3, 0.2)),
        [("ball", "body", AXIS, np.array([0.02])), ("ball", "parent", AXIS, np.array([0.1]))],
    ),
}

CASES = {
    "beside a ball": beside_a_ball,
    "both": in_both_axes,
    **{name: lambda given=given: on_wheels(*given) for name, given in ON_WHEELS.items()},
}


def bracket(robot: Mechanism, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Bracket of velocities, joint by joint as twists."""
    parts = [np.zeros(0)]
    for body in robot.bodies:
        span, basis = robot.v_slice(body.name), body.joint.basis
        parts.append(
            np.linalg.pinv(basis) @ twist_bracket(basis @ first[span], basis @ second[span])
        )
    return np.concatenate(parts)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", CASES)
def test_two_form_is_that_of_the_momentum_equation(name: str) -> None:
    held = CASES[name]()
    model, lifted, oracle = held.model, held.lifted, held.lifted.oracle
    robot, n = model.robot, model.ns
    rng, states = np.random.default_rng(31), 0
    units = np.eye(model.nv)[:, list(model.shape)]
    constants = np.array(
        [[bracket(robot, a, b)[list(model.shape)] for b in units.T] for a in units.T]
    )
    while states < 3:
        q = robot.random(rng)
        if model.regularity(q) < 0.3:
            continue
        states += 1
        s, tau = rng.uniform(-2, 2, n), np.zeros(model.nv)
        tau[list(robot.actuated_freedoms)] = rng.uniform(-1, 1, model.nu)
        (lift, drift), mass = lifted.lift(q), oracle.mass_matrix(q)
        v = lift @ s + drift
        momentum, vdot = mass @ v, held.dynamics(q, v, tau)

        def changed(function, field, q=q) -> np.ndarray:
            step = oracle.rate(q, field)
            return difference_quotient(lambda h: np.asarray(function(q + h * step)))

        def lagrangian(x: np.ndarray, s=s) -> float:
            w = lifted.velocity(x, s)
            return oracle.kinetic_energy(x, w) - oracle.potential_energy(x)

        # d/dt <M v, X_b>, the momenta along the horizontal fields.
        rate = changed(lambda x: lifted.lift(x)[0].T @ oracle.mass_matrix(x), v) @ v
        rate += lift.T @ mass @ vdot
        turning = changed(lambda x: lifted.lift(x)[0], drift)
        expected = lift.T @ tau
        for b, field in enumerate(lift.T):
            moved = turning[:, b] - changed(lambda x: lifted.lift(x)[1], field)
            expected[b] += momentum @ (bracket(robot, drift, field) + moved)
            expected[b] += changed(lagrangian, field)
        form = model.two_form(q, model.mass_matrix(q) @ s)
        assert_close(form, -form.T, 1e-12)
        along = lift.T @ momentum
        expected += s @ (constants @ along - form)
        assert_close(expected, rate, 1e-7)
        # All of it, not only what the velocity meets.
        changes = [changed(lambda x: lifted.lift(x)[0], field) for field in lift.T]
        brackets = np.array(
            [
                [
                    bracket(robot, lift[:, a], lift[:, b]) + changes[a][:, b] - changes[b][:, a]
                    for b in range(n)
                ]
                for a in range(n)
            ]
        )
        assert_close(form, constants @ along - brackets @ momentum, 1e-7)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ON_WHEELS)
def test_parts_on_wheels(name: str) -> None:
    held = on_wheels(*ON_WHEELS[name])
    assert held.model.first.kind == "chaplygin"
    check_against(held.model, held.lifted, held.dynamics, seed=32, states=5, least=0.3)


def three() -> Mechanism:
    """Three joints that keep something: about the vertical, a round body's spin, a rotor."""
    spin = Inertia(2.0, (0.0, 0.0, 0.1), (0.3, 0.3, 0.2))
    rotor = Inertia(0.5, moments=(0.03, 0.03, 0.05))
    return upright(
        Body("rotor", joints.Revolute(Z), "plate", Pose((0.1, 0.0, 0.0)), rotor),
        Body("top", joints.Spherical(), "plate", Pose((0.2, 0.3, 0.1)), spin),
    )


def test_auto_takes_what_is_regular_of_three() -> None:
    model = reduce(three(), stages="auto")
    assert isinstance(model, StagedReduction)
    assert model.stages == ("rotor", "top")
