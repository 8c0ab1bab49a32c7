"""Random floating trees, whose joints are of every kind: accelerations and momentum rates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from concur.reduction import MomentumReduction
from tests.oracles import assert_close, difference_quotient, random_tree, random_tree_parts
from tests.reduction._floaters import FullOrder, reduced

TREES = [seed for seed in range(40) if random_tree_parts(seed)[1][0].joint.nv]


def _some_slow(quick: int, slow: int) -> list[object]:
    later = [pytest.param(seed, marks=pytest.mark.slow) for seed in TREES[quick:slow]]
    return [*TREES[:quick], *later]


def _drifting(seed: int) -> tuple[MomentumReduction, FullOrder, np.random.Generator]:
    robot = replace(random_tree(seed), gravity=(0.0, 0.0, 0.0))
    rng = np.random.default_rng(seed)
    return reduced(robot, rng.uniform(-3.0, 3.0, 6)), FullOrder(robot), rng


@pytest.mark.by_default(2)
@pytest.mark.parametrize("seed", _some_slow(6, 30))
def test_random_trees_accelerate_as_at_full_order(seed: int) -> None:
    model, full, rng = _drifting(seed)
    for _ in range(5):
        q, s = model.robot.random(rng), rng.uniform(-1.0, 1.0, model.ns)
        u = rng.uniform(-2.0, 2.0, model.nu)
        v = full.velocity(q, s, np.array(model.momentum))
        expected = full.acceleration(q, v, np.concatenate([np.zeros(model.nb), u]))
        assert_close(model.velocity(q, s), v, 1e-9)
        assert_close(model.acceleration(q, s, u), expected[model.nb :], 1e-9)


@pytest.mark.parametrize("seed", _some_slow(1, 12))
def test_random_trees_change_their_momenta_as_at_full_order(seed: int) -> None:
    model, full, rng = _drifting(seed)
    for _ in range(3):
        q, s = model.robot.random(rng), rng.uniform(-1.0, 1.0, model.ns)
        u = rng.uniform(-2.0, 2.0, model.nu)
        v = full.velocity(q, s, np.array(model.momentum))
        vdot = full.acceleration(q, v, np.concatenate([np.zeros(model.nb), u]))
        qdot, metric = full.rate(q, v), full.blocks(q)[2]
        turning = difference_quotient(lambda h, q=q, qdot=qdot: full.blocks(q + h * qdot)[2], 2e-3)
        _, pdot = model.vector_field(q, metric @ s, u)
        assert_close(pdot, turning @ s + metric @ vdot[model.nb :], 1e-7)
