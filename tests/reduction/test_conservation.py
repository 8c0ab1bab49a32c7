"""Which joints keep their momentum: held against momenta differenced along full-order motions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from concur.errors import DescriptionError, ReductionError, UnknownNameError
from concur.reduction import Conservation, ReducedModel, conservation, reduce
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from tests.oracles import (
    Constrained,
    CraneNumbers,
    Pinocchio,
    assert_close,
    crane,
    crane_rows,
    difference_quotient,
    random_rover,
    rover,
    rover_rows,
)
from tests.reduction._reduced import Reference, torques
from tests.reduction._staged import X, Z, twist_bracket

N = CraneNumbers()


def undriven(robot: Mechanism) -> Mechanism:
    return replace(robot, actuated=())


def rates(
    oracle: Pinocchio,
    body: Body,
    span: slice,
    q: np.ndarray,
    v: np.ndarray,
    momenta: Callable[[np.ndarray], np.ndarray],
    vdot: np.ndarray,
) -> tuple[float, float]:
    """Rate of a joint's momentum seen from where it attaches and from its body.

    `momenta` gives the rows (nn, nv) of the momentum at a configuration.
    """
    qdot = oracle.rate(q, v)
    turning = difference_quotient(lambda h: momenta(q + h * qdot)) @ v
    rate = turning + momenta(q) @ vdot
    basis = body.joint.basis
    twist = basis @ v[span]
    wrench = np.linalg.pinv(basis).T @ (momenta(q) @ v)
    turned = [wrench @ twist_bracket(twist, direction) for direction in basis.T]
    return float(np.abs(rate - turned).max()), float(np.abs(rate).max())


def check_claims(model: ReducedModel, advance, momenta, seed: int, at_least: float) -> list[str]:
    """Hold each joint's claim against its momentum along the motion; name those that keep it."""
    robot, rng = model.robot, np.random.default_rng(seed)
    oracle = Pinocchio(robot)
    states = []
    while len(states) < 3:
        q = robot.random(rng)
        if model.regularity(q) > 1e-2:
            states.append((q, rng.uniform(-1, 1, model.ns)))
    kept = []
    for body in robot.bodies:
        rows = range(*robot.v_slice(body.name).indices(robot.nv))
        if not rows or not set(rows) <= set(model.shape):
            continue
        worst = np.zeros(2)
        for q, s in states:
            v = model.velocity(q, s)
            of_joint = partial(momenta, rows=rows)
            span = slice(rows.start, rows.stop)
            found = rates(oracle, body, span, q, v, of_joint, advance(q, v))
            worst = np.maximum(worst, found)
        claim = conservation(model, body.name)
        assert claim.conserved == (worst.min() < 1e-7), (robot.name, body.name, worst, claim.why)
        if claim.conserved:
            kept.append(body.name)
            assert worst[0 if claim.seen_from == "parent" else 1] < 1e-7
            continue
        assert worst.min() > at_least, (robot.name, body.name, worst)
    return kept


def some_of(count: int, quick: int) -> list[Any]:
    """Seeds of which only the first few are tried when time is short."""
    slow = pytest.mark.slow
    return [pytest.param(i, marks=() if i < quick else slow) for i in range(count)]


@pytest.mark.by_default(1)
@pytest.mark.parametrize("seed", some_of(8, 3))
def test_random_rovers(seed: int) -> None:
    drawn = random_rover(seed)
    robot = undriven(drawn.robot)
    full = Constrained(Pinocchio(robot), drawn.rows)
    first = Reference(full, shape=list(range(3, 8)), dependent=[0, 1, 2])
    still = np.zeros(8)

    def momenta(q: np.ndarray, rows: range) -> np.ndarray:
        return first.lift(q)[:, [i - 3 for i in rows]].T @ full.oracle.mass_matrix(q)

    model = reduce(robot)
    kept = check_claims(model, lambda q, v: full.acceleration(q, v, still)[0], momenta, seed, 1e-5)
    assert kept == []
    assert reduce(robot, stages="auto") == model


@pytest.mark.by_default(2)
@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
def test_small_imbalances_are_found(size: float) -> None:
    boom = replace(crane().bodies[-1], inertia=Inertia(90.0, (size, 0, 0), (1.0, 45.0, 45.0)))
    driven = ["axle", "left", "right", "boom"]
    robot = Mechanism("hung", [*crane().bodies[:-1], boom], crane().wheels, actuated=driven)
    found = conservation(reduce(robot), "column")
    assert not found.conserved
    assert 1e-3 * size < found.rate < 10 * size
    assert f"{found.metric:.1e}" in found.why


@pytest.mark.parametrize("size", [1e-2, 1e-4])
def test_imbalances_of_light_bodies_are_found(size: float) -> None:
    # Next to the forces on the whole robot, what this body does is nothing.
    hull = Body("hull", joints.Free(), None, Pose(), Inertia(1e4, moments=(4e4, 5e4, 6e4)))
    tiny = Inertia(1e-3, (0.0, 1e-3 * size, 0.0), (2e-9, 1e-9, 1e-9))
    rotor = Body("rotor", joints.Revolute(X), "hull", Pose((1, 2, 3)), tiny)
    balanced = replace(rotor, inertia=Inertia(1e-3, moments=(2e-9, 1e-9, 1e-9)))
    for body, conserved in ((rotor, False), (balanced, True)):
        robot = Mechanism("heavy", [hull, body], actuated=())
        assert conservation(reduce(robot, momentum=[1e4] * 6), "rotor").conserved == conserved


@pytest.mark.by_default(1)
@pytest.mark.parametrize("size", [1e-1, 1e-3, 1e-5])
def test_imbalances_on_light_arms_beside_heavy_ones_are_found(size: float) -> None:
    # The drive of the boom would throw the arm about.
    hull = Body("hull", joints.Free(), None, Pose(), Inertia(1e4, moments=(4e5, 5e5, 6e5)))
    heavy = Inertia(1e4, (5.0, 0, 0), (1e5, 1e5, 1e5))
    boom = Body("boom", joints.Revolute(Z), "hull", Pose((5, 2, 3)), heavy)
    light = Inertia(0.1, (0.01, 0, 0), (2e-4, 2e-4, 2e-4))
    arm = Body("arm", joints.Revolute((0.6, 0, 0.8)), "hull", Pose((1, 2, 3)), light)
    for off in (size, 0.0):
        moments = (4e-5, 2e-5, 2e-5 * (1 + off))
        rotor = Inertia(0.05, moments=moments)
        bodies = [hull, boom, arm, Body("rotor", joints.Revolute(X), "arm", Pose(), rotor)]
        robot = Mechanism("light", bodies, actuated=("boom", "arm"))
        found = conservation(reduce(robot), "rotor")
        assert found.conserved == (off == 0.0)
        assert found.rate > 1e-4 * off


def crane_reference() -> Reference:
    full = Constrained(Pinocchio(crane()), crane_rows(N.l, N.b, N.c))
    return Reference(full, shape=[3, 4, 5, 7], dependent=[0, 1, 2, 6])


def rover_reference() -> Reference:
    return Reference(
        Constrained(Pinocchio(rover()), rover_rows(0.1, 0.25)), list(range(3, 8)), [0, 1, 2]
    )


def terms(equation: str) -> list[str]:
    right = equation.split(" = ")[1]
    return re.findall(r"[+-]?\s*[^\s+-][^+-]*", right)


def by_equation(model: ReducedModel, found: Conservation, q, s, u) -> float:
    """Evaluate a momentum equation as it is printed."""
    shape, controls = list(model.shape_names), list(model.control_names)
    k = shape.index(found.joint)
    p, total, oracle = model.mass_matrix(q) @ s, 0.0, Pinocchio(model.robot)
    form, lift = model.two_form(q, p), model.input_matrix(q)
    step = np.zeros(model.nv)

    def moved(h: float) -> np.ndarray:
        step[model.shape[k]] = h
        return model.robot.integrate(q, step)

    for term in terms(found.equation):
        sign = -1.0 if term.startswith("-") else 1.0
        names = re.findall(r"\[([^\]]*)\]", term)
        head = term.lstrip("+- ").split("[")[0]
        if head == "dT/d":
            kinetic = difference_quotient(lambda h: s @ model.mass_matrix(moved(h)) @ s / 2)
            total += sign * float(kinetic)
        elif head == "dV/d":
            total += sign * float(difference_quotient(lambda h: oracle.potential_energy(moved(h))))
        elif head == "Xi":
            other = shape.index(names[0].split(", ")[1])
            total += sign * form[k, other] * s[shape.index(names[1])]
        elif head == "u":
            total += sign * u[controls.index(names[0])]
        else:
            assert head == "H"
            control = controls.index(names[0].split(", ")[0])
            total += sign * lift[k, control] * u[controls.index(names[1])]
    return total


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("robot", "reference"),
    [
        (crane(), crane_reference()),
        (crane(undriven="left"), None),
        (crane(undriven="boom"), crane_reference()),
        (rover(), rover_reference()),
    ],
)
def test_momentum_equations_are_those_of_the_full_order_motion(
    robot: Mechanism, reference: Reference | None
) -> None:
    """Thesis: Proposition 4.2.15."""
    model = reduce(robot)
    if reference is None or list(model.shape) != reference.shape:
        full = Constrained(Pinocchio(robot), crane_rows(N.l, N.b, N.c))
        reference = Reference(full, list(model.shape), list(model.dependent))
    rng = np.random.default_rng(3)
    states = []
    for _ in range(6):
        q, s = robot.random(rng), rng.uniform(-2, 2, model.ns)
        u = rng.uniform(-50, 50, model.nu)
        rate = reference.momentum_rate(q, s, torques(model, u))
        _, pdot = model.vector_field(q, model.mass_matrix(q) @ s, u)
        assert_close(pdot, rate, 1e-8)
        states.append((q, s, u, rate))
    for k, name in enumerate(model.shape_names):
        found = conservation(model, name)
        assert found.conserved == (name == "column" and not found.driven)
        for q, s, u, rate in states:
            assert_close(by_equation(model, found, q, s, u), rate[k], 1e-8)


def test_momentum_of_a_wheel_is_not_constant_and_why() -> None:
    idle = reduce(replace(rover(), actuated=("right", "turret", "upper", "fore")))
    found = conservation(idle, "left")
    assert not found.conserved
    assert not found.driven
    assert found.legs == ("right",)
    assert found.metric < 1e-12
    assert found.equation == "d/dt p[left] = Xi[left, right] s[right]"
    assert "reactions of the wheels" in found.why
    driven = conservation(reduce(rover()), "left")
    assert driven.driven
    assert driven.controls == ("left",)
    assert driven.equation == "d/dt p[left] = Xi[left, right] s[right] + u[left]"


def test_drives_of_dependent_wheels_act_through_the_lift() -> None:
    # All wheels of the car are driven, and one of them follows from the steering and the other.
    model = reduce(crane())
    wheels = {"left", "right"}
    (follows,) = wheels - set(model.shape_names)
    (leads,) = wheels - {follows}
    found = conservation(model, "axle")
    assert found.controls == ("axle", follows)
    assert found.push > 1e-3
    assert "other drives" in found.why
    assert set(conservation(model, leads).controls) == wheels
    assert conservation(reduce(crane(undriven=follows)), "axle").controls == ("axle",)


@pytest.mark.parametrize("name", ["chassis", "right", "column_", 3])
def test_only_shape_joints_can_be_asked_for(name: object) -> None:
    with pytest.raises(UnknownNameError, match="shape joint among axle, column, left, boom"):
        conservation(reduce(crane(undriven="right")), name)


def test_momentum_equation_of_a_ball_in_its_own_axes() -> None:
    # Off its centre, a body of equal moments on a hull that moves: nearest to constant in its own
    # axes, where the momentum turns as well.
    hull = Body("hull", joints.Free(), None, Pose(), Inertia(9.0, moments=(1, 2, 2.5)))
    ball = Inertia(1.0, moments=(0.1, 0.1, 0.1001))
    robot = Mechanism(
        "b", [hull, Body("ball", joints.Spherical(), "hull", Pose((0.3, 0, 0)), ball)], actuated=()
    )
    model = reduce(robot)
    found = conservation(model, "ball")
    assert (found.conserved, found.seen_from) == (False, "body")
    assert found.equation == "d/dt p[ball] = dT/d[ball] + ad*_v p[ball]"
    assert found.rate == pytest.approx(found.metric, rel=1e-9)


def rounded(size: float) -> Mechanism:
    """A rotor that is balanced but for the last digit of a number, on a body that floats."""
    hull = Body("hull", joints.Free(), None, Pose(), Inertia(9.0, moments=(1, 2, 2.5)))
    rotor = Inertia(1.0, moments=(0.1, 0.1 + size, 0.15))
    driven = Inertia(1.0, moments=(0.1, 0.1, 0.15))
    bodies = [
        hull,
        Body("rotor", joints.Revolute(Z), "hull", Pose((0.3, 0, 0)), rotor),
        Body("wheel", joints.Revolute(X), "hull", Pose((0, 0.3, 0)), driven),
    ]
    return Mechanism("rounded", bodies, actuated=("wheel",))


@pytest.mark.extended
def test_a_tolerance_takes_rounded_robots() -> None:
    robot = rounded(1e-7)
    strict = conservation(reduce(robot), "rotor")
    assert not strict.conserved
    assert 1e-9 < strict.rate < 1e-6
    loose = conservation(reduce(robot), "rotor", tolerance=1e-6)
    assert (loose.conserved, loose.rate, loose.tolerance) == (True, strict.rate, 1e-6)
    assert loose.equation == "d/dt p[rotor] = 0"
    model = reduce(robot, stages={"rotor": 0.4}, tolerance=1e-6)
    assert "within the tolerance 1e-06" in model.reason
    assert model.at_momentum([0, 0, 0, 0.1, 0, 0]).theta == (0.4,)
    assert reduce(robot, stages="auto").kind == "symplectic"
    assert reduce(robot, stages="auto", tolerance=1e-6).kind == "staged"
    assert "stages" not in reduce(robot).reason
    assert "stages" in reduce(robot, tolerance=1e-6).reason
    # An exact symmetry needs no tolerance; a tolerance below rounding is not satisfied.
    exact = conservation(reduce(rounded(0.0)), "rotor", tolerance=1e-6)
    assert exact.conserved
    assert "tolerance" not in exact.why
    sharp = conservation(reduce(rounded(1e-9)), "rotor", tolerance=1e-13)
    assert not sharp.conserved
    assert sharp.equation.startswith("d/dt p[rotor] = dT/d[rotor]")
    assert conservation(reduce(rounded(1e-9)), "rotor").conserved


def test_an_error_names_the_tolerance_that_would_do() -> None:
    with pytest.raises(ReductionError) as caught:
        reduce(rounded(1e-7), stages=["rotor"])
    found = re.search(r"give tolerance=(\S+)\.$", str(caught.value))
    assert found
    told = float(found.group(1))
    assert reduce(rounded(1e-7), stages=["rotor"], tolerance=told).stages == ("rotor",)
    with pytest.raises(ReductionError):
        reduce(rounded(1e-7), stages=["rotor"], tolerance=told / 10)
    # Too large for rounding, or the effect of a drive.
    with pytest.raises(ReductionError) as caught:
        reduce(rounded(1e-2), stages=["rotor"])
    assert "tolerance" not in str(caught.value)
    with pytest.raises(ReductionError) as caught:
        reduce(rounded(1e-7), stages=["wheel"])
    assert "tolerance" not in str(caught.value)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("tolerance", [0.0, 1.0, -1e-9, np.nan, np.inf, True, "1e-6", None])
def test_tolerances_that_are_none(tolerance: object) -> None:
    model = reduce(rounded(0.0))
    for ask in (
        lambda: conservation(model, "rotor", tolerance),
        lambda: reduce(model.robot, tolerance=tolerance),
        lambda: reduce(model.robot, stages=["rotor"], tolerance=tolerance),
        lambda: reduce(model.robot, stages=[], tolerance=tolerance),
    ):
        with pytest.raises(DescriptionError, match="`tolerance`: expected a number above 0"):
            ask()


@pytest.mark.parametrize("model", [rover(), None])
def test_a_robot_is_no_model(model: object) -> None:
    with pytest.raises(ReductionError, match=r"expected a reduced model.* Pass reduce\(robot\)"):
        conservation(model, "left")  # type: ignore[arg-type]
