"""The one search for constant momenta: all that Pinocchio's motions keep, and no other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from concur.reduction import ReducedModel
from concur.reduction._search import Search
from tests.contract._robots import case
from tests.oracles import random_tree
from tests.reduction._staged import carrier, satellite
from tests.reduction._symmetric_robots import momentum_rates

FREE = ("floater", "moving floater", "planar floater", "pendulum", "free tree")
ROBOTS = {name: lambda name=name: case(name).robot for name in FREE}
ROBOTS |= {f"random {seed}": lambda seed=seed: random_tree(seed) for seed in (1, 2, 3)}
ROBOTS |= {"rotors": satellite, "carrier": carrier}


def kept(rates: np.ndarray) -> int:
    """Dimension of the motions whose momenta do not change, by differences."""
    sizes = np.linalg.svd(rates, compute_uv=False)
    return rates.shape[1] - int(np.sum(sizes > 1e-6))


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ROBOTS)
def test_it_finds_the_momenta_that_stay_constant_and_no_other(name: str) -> None:
    robot = replace(ROBOTS[name](), actuated=())
    model = ReducedModel(robot, "unreduced", tuple(range(robot.nv)), (), "as it is")
    search, report = Search(model), cc.symmetry(robot)
    for body in robot.bodies:
        if not body.joint.nv:
            continue
        parts, row = search.found(body.name), report[body.name]
        found = {part.seen_from: len(part.generators) for part in parts}
        every = np.eye(body.joint.nv)
        left = momentum_rates(robot, body.name, every, count=7)
        right = momentum_rates(robot, body.name, every, count=7, left=False)
        assert found.get("parent", 0) == kept(left) == row.conserving.dim, body.name
        if body.joint.nv > 1 and "body" in found:
            assert found["body"] == kept(right)
        elif kept(right):  # the motions commute: both views are one
            assert kept(left) == kept(right)
        for part in parts:
            if part.seen_from != "link":
                own = np.array(part.generators).T
                rates = momentum_rates(robot, body.name, own, left=part.seen_from == "parent")
                assert np.abs(rates).max() < 1e-7
        assert row.reducible == bool(parts), body.name
