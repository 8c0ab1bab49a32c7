"""Programs of limits against a solver by least squares: momentum, redundancy, shared motors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.optimize import nnls

import concur as cc
from concur.control import Servo
from concur.control._constraint_rows import limit_rows
from concur.control._core import approach
from concur.control._law import all_velocities
from concur.control._limited import _posed, _unit
from concur.robot import robot_size
from tests.control._floating_cases import CHECK_A_MOMENTUM, CHECK_A_Q0
from tests.oracles import assert_close

Floats = NDArray[np.float64]
SLOW, PRICE = 0.4, 1e-6
BASE = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
HAND = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))


def slow(robot: cc.Mechanism) -> cc.Mechanism:
    """The robot with a largest speed of every joint of one angle."""
    bodies = [
        replace(b, speed_limit=SLOW) if b.parent is not None and b.joint.nv == 1 else b
        for b in robot.bodies
    ]
    return replace(robot, bodies=tuple(bodies))


def law(model: Any, outputs: list[cc.Output], **more: Any) -> Servo:
    return Servo(model, outputs, 4.0, 4.0, **more)


ROVER, FLYER = slow(cc.robots.rover_arm()), slow(cc.robots.free_flyer())
MECANUM = slow(cc.robots.mecanum_arm())
LAWS: dict[str, tuple[Callable[..., Servo], Floats]] = {
    "rover": (
        lambda **more: law(cc.reduce(ROVER), [BASE, HAND], **more),
        np.array([-0.45, -0.1, 0.1, 0, 0, -0.1, 1.0, -1.6]),
    ),
    "redundant rover": (
        lambda **more: law(cc.reduce(ROVER), [HAND], **more),
        np.array([-0.45, -0.1, 0.1, 0, 0, -0.1, 1.0, -1.6]),
    ),
    "floater with momentum": (
        lambda **more: law(
            cc.reduce(FLYER, CHECK_A_MOMENTUM), [cc.Output("hand", "tool", "SE3")], **more
        ),
        CHECK_A_Q0,
    ),
    "redundant floater with momentum": (
        lambda **more: law(
            cc.reduce(FLYER, CHECK_A_MOMENTUM), [cc.Output("hand", "tool", "R3")], **more
        ),
        CHECK_A_Q0,
    ),
    "four motors of three velocities": (
        lambda **more: law(cc.reduce(MECANUM), [cc.Output("hand", "hand", "R3")], **more),
        np.array([0, 0, 0, 0, 0, 0, 0, 0.3, 0.6, 0.2, 1.3, -0.2, 0.9, 0.0]),
    ),
}


def least(h: Floats, a: Floats, low: Floats, high: Floats, slack: Floats) -> Floats:
    """Solve ``min x h x + t t`` with ``low <= a x + sqrt(slack) t <= high`` by least squares.

    After Lawson and Hanson, chapter 23: the shortest vector under inequalities is the residual of a
    problem with non-negative unknowns.
    """
    root = np.linalg.cholesky(h)
    rows = np.hstack([np.linalg.solve(root, a.T).T, np.diag(np.sqrt(slack))])
    kept = np.vstack([rows[np.isfinite(low)], -rows[np.isfinite(high)]])
    ends = np.concatenate([low[np.isfinite(low)], -high[np.isfinite(high)]])
    sizes = np.linalg.norm(kept, axis=1)
    both = np.vstack([kept.T / sizes, ends / sizes])
    forces, _ = nnls(both, np.eye(len(both))[-1], maxiter=10000)
    rest = both @ forces - np.eye(len(both))[-1]
    whole = -rest[:-1] / rest[-1]
    return np.asarray(np.linalg.solve(root.T, whole[: len(h)]))


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", [*LAWS][::-1])
def test_torques_and_accelerations_are_those_of_both_programs(name: str) -> None:
    """First the speeds of joints, then the torques, by slowing down; all numbers from the model."""
    make, start = LAWS[name]
    rng, met = np.random.default_rng(11), np.zeros(2, dtype=int)
    rules = cc.Constraints(joints=False, holding=False)
    free = make()
    model, robot = free.model, free.model.robot
    start = robot.normalize(start)
    for _ in range(6):
        q = robot.integrate(start, 0.1 * rng.normal(size=free.nv))
        s = rng.uniform(-0.35, 0.35, free.ns)
        near = robot.integrate(q, 0.15 * rng.normal(size=free.nv))
        still = np.zeros(free.size)
        sample = cc.ReferenceSample(free.output(near), still, still)
        wanted = free.torque(q, s, sample)
        share = rng.uniform(0.6, 1.3)
        limit = share * np.abs(wanted).max()
        kept = make(torque_limits=limit, constraints=rules, damping_threshold=1e-4)
        tick = kept.compile()
        u = tick(q, s, sample).copy()

        nominal = np.asarray(model.acceleration(q, s, wanted))
        v, mass = np.asarray(model.velocity(q, s)), np.asarray(model.mass_matrix(q))
        scaled = 0.1 * free.margins.scales[0][:, None] * np.asarray(free.decoupling(q))
        metric = mass + scaled.T @ scaled
        lift, drift = np.asarray(model.lift(q)[0]), np.asarray(model.velocity_drift(q, v))
        chosen = np.flatnonzero(np.isfinite(robot.speed_limits))
        rows, rate = lift[chosen], 2.0 * approach(kept)
        sizes = np.linalg.norm(rows / np.sqrt(np.diag(mass)), axis=1)
        value = rows @ nominal + drift[chosen]
        low, high = ((rate * (end - v[chosen]) - value) / sizes for end in (-SLOW, SLOW))
        rows = rows / sizes[:, None]
        first = least(metric, rows, low, high, np.full(len(rows), PRICE))

        effect = np.asarray(model.input_matrix(q))
        others = null_space(effect)
        felt = np.linalg.pinv(effect) @ mass
        way = -approach(kept) * v[list(model.shape)] - nominal - first
        length = float(np.sqrt(way @ metric @ way))
        way = way / length
        ns, more, count = free.ns, others.shape[1], len(rows)
        wide = np.zeros((free.nu + count + 1, ns + more + 1))
        wide[: free.nu, :ns], wide[: free.nu, ns : ns + more] = felt / limit, others / limit
        wide[: free.nu, -1] = felt @ way / limit
        wide[free.nu : -1, :ns], wide[free.nu : -1, -1] = rows, rows @ way
        wide[-1, -1] = 1.0
        h = np.eye(ns + more + 1)
        h[:ns, :ns] = metric
        h[-1, -1] = 0.03
        h[ns : ns + more, ns : ns + more] *= 1e-9 * np.trace(mass) / np.sum(felt**2)
        begin = wanted + felt @ first
        ends = np.full(free.nu, limit)
        lows = np.concatenate([(-ends - begin) / limit, low - rows @ first, [0.0]])
        highs = np.concatenate([(ends - begin) / limit, high - rows @ first, [length]])
        slack = np.concatenate([np.zeros(free.nu), np.full(count, PRICE), [0.0]])
        found = least(h, wide, lows, highs, slack)
        change = first + found[:ns] + way * found[-1]
        expected = wanted + felt @ change + others @ found[ns : ns + more]
        assert np.abs(u).max() <= limit
        assert_close(u, np.clip(expected, -limit, limit), 1e-5)
        names = [kept.limit_names[k] for k in np.flatnonzero(tick.buffers.active)]
        met += [any(kind in one for one in names) for kind in ("torque", "speed")]
        tick.reset()
    assert (met >= 2).all(), met


def posed(servo: Servo, q: Floats, s: Floats, margin: float | None = None) -> tuple[Floats, Floats]:
    """Metric of the program, and what rows of joints and weights may miss, at a demand of zero.

    The margin may be stated; default: that of the configuration.
    """
    symbols = {name: ca.SX.sym(name, size) for name, size in servo.inputs.items()}
    extra = {"sdot": ca.SX.sym("sdot", servo.ns), "margins": ca.SX.sym("margins", 2)}
    v = all_velocities(servo, symbols)
    program, values = _posed(servo, extra | symbols, limit_rows(servo, symbols["q"], v, held=True))
    found = ca.Function(
        "posed", [*extra.values(), *symbols.values()], [program[0], values["slack"]]
    )
    sample = cc.ReferenceSample(servo.output(q), np.zeros(servo.size), np.zeros(servo.size))
    bound = servo.margin(q) if margin is None else margin
    given = np.zeros(servo.ns), [bound, 1.0], q, s, *servo.flat(sample)
    metric, slack = found(*given)
    return _unit(servo) ** 2 * np.array(metric), np.array(slack)[:, 0]


def test_limits_of_weights_are_less_firm_from_a_share_of_their_fastest_approach_on() -> None:
    """The rate of the weight by differences; its fastest approach from gravity and size."""
    rules = cc.Constraints(joints=False, speeds=False)
    servo = law(cc.reduce(ROVER), [BASE, HAND], torque_limits=20.0, constraints=rules)
    model, robot, q = servo.model, servo.model.robot, LAWS["rover"][1]
    place = model.control_names.index("forearm")
    held = [name for name in servo.limit_names if name.startswith("weight on")]
    row = held.index("weight on forearm")

    def weight(at: Floats) -> float:
        return float(np.asarray(model.bias(at, np.zeros(servo.ns)))[place])

    way, step = np.asarray(model.velocity(q, np.eye(5)[-1])), 1e-6
    rate = weight(robot.integrate(q, step * way)) - weight(robot.integrate(q, -step * way))
    fastest = 1.5 * np.sqrt(np.linalg.norm(robot.gravity) / robot_size(robot)) * 0.99 * 20.0
    for share, expected in (
        (0.0, 1e-6),
        (0.05, 0.5 * (1e-6 + 1e-4)),
        (-0.0999, 1e-6 + 0.999 * (1e-4 - 1e-6)),
        (0.1001, 1e-4),
        (5.0, 1e-4),
    ):
        speed = share * fastest * 2 * step / rate
        slack = posed(servo, q, speed * np.eye(5)[-1])[1]
        assert slack[row] == pytest.approx(expected, rel=1e-6)


def test_accelerations_cost_more_below_twice_the_least_margin_alone() -> None:
    """Internal ones 100 times their kinetic energy at the least margin, outputs in their scales."""
    start, rng = LAWS["redundant rover"][1], np.random.default_rng(0)
    free = LAWS["redundant rover"][0]()
    mass = np.asarray(free.model.mass_matrix(start))
    scaled = free.margins.scales[0][:, None] * np.asarray(free.decoupling(start))
    inner = null_space(scaled) @ rng.normal(size=free.ns - free.size)
    outer = np.linalg.solve(mass, scaled.T) @ rng.normal(size=free.size)
    size = float((scaled @ outer) @ (scaled @ outer))
    energy, margin = inner @ mass @ inner, free.margin(start)
    for share, price in (
        (0.4, 0.0),
        (0.4999, 0.0),
        (0.5001, 100 * 4e-4**2),
        (0.75, 400 / 9),
        (1, 100),
    ):
        rules = cc.Constraints(margin=share * margin, holding=False)
        limited = LAWS["redundant rover"][0](torque_limits=50.0, constraints=rules)
        metric = posed(limited, start, np.zeros(free.ns))[0][: free.ns, : free.ns]
        found = inner @ (metric - mass) @ inner / energy
        assert found == pytest.approx(price, rel=5e-3, abs=1e-9)
        found = outer @ (metric - mass) @ outer / size - 0.1**2
        assert found == pytest.approx(0.3 * price / (share * margin) ** 2, rel=5e-3, abs=1e-9)
    # Below a least margin of 0.05 the price of the outputs grows no further.
    for least, square in ((0.2, 0.04), (0.0501, 0.0501**2), (0.0499, 0.0025), (1e-3, 0.0025)):
        rules = cc.Constraints(margin=least, holding=False)
        limited = LAWS["redundant rover"][0](torque_limits=50.0, constraints=rules)
        metric = posed(limited, start, np.zeros(free.ns), least)[0][: free.ns, : free.ns]
        found = outer @ (metric - mass) @ outer / size - 0.1**2
        assert found == pytest.approx(100 * 0.3 / square, rel=1e-6)
