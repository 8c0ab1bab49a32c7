"""Every reduced model reports whether it takes a momentum, and its velocity at a given one."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.errors import ReductionError
from concur.reduction import ReducedModel
from tests.oracles import Pinocchio, assert_close, crane
from tests.reduction._staged import satellite

MU = np.array([0.5, -0.3, 0.2, 2.5, 0.8, 0.8])
OTHER = np.array([-1.0, 0.4, 0.1, 0.7, -2.0, 0.3])
STAGES = {"rotor": 0.5, "second": -0.2}


@pytest.mark.parametrize("stages", [None, STAGES])
def test_velocity_at_a_momentum_has_it_and_keeps_those_of_the_stages(stages) -> None:
    robot = satellite()
    model = cc.reduce(robot, MU, stages=stages)
    assert (model.takes_momentum, model.nm) == (True, 6)
    assert model.stages == tuple(stages or ())
    rng = np.random.default_rng(5)
    q, s = robot.random(rng), rng.normal(size=model.ns)
    v = model.velocity(q, s, OTHER)
    assert_close(Pinocchio(robot).momentum(q, v), OTHER, 1e-12)
    assert_close(v[list(model.shape)], s, 1e-12)
    for stage in model.chain:
        residual, own = stage.momentum_residual(q, v)
        assert np.abs(residual).max() < 1e-12 * np.abs(own).max()
    assert_close(model.velocity(q, s, MU), model.velocity(q, s), 1e-12)
    horizontal, drift = model.lift(q, momentum=OTHER)
    assert_close(horizontal @ s + drift, v, 1e-12)
    symbol = ca.SX.sym("momentum", 6)
    graph = ca.Function("v", [symbol], [model.velocity(q, s, symbol)])
    assert_close(np.array(graph(OTHER)).ravel(), v, 1e-12)
    assert_close(model.velocity(q, s, OTHER), model.at_momentum(OTHER).velocity(q, s), 1e-12)


@pytest.mark.parametrize("stages", [(), ("column",)])
def test_a_robot_that_rolls_takes_none(stages) -> None:
    robot = crane(undriven="column")
    model = cc.reduce(robot, stages=stages)
    assert (model.takes_momentum, model.nm, model.stages) == (False, 0, stages)
    rng = np.random.default_rng(6)
    q, s = robot.random(rng), rng.normal(size=model.ns)
    assert_close(model.velocity(q, s, np.zeros(0)), model.velocity(q, s), 1e-12)
    asked = {
        "momentum": lambda: model.momentum,
        "com_velocity": lambda: model.com_velocity,
        "body_momentum": lambda: model.body_momentum(q),
        "locked_inertia": lambda: model.locked_inertia(q),
        "at_momentum": lambda: model.at_momentum(MU),
    }
    for name, ask in asked.items():
        expected = f"`{name}`: expected a robot that floats, got {model.first.kind} reduction"
        with pytest.raises(ReductionError, match=expected):
            ask()


def test_stages_share_what_the_first_knows_of_the_momentum() -> None:
    robot = satellite()
    first, staged = cc.reduce(robot, MU), cc.reduce(robot, MU, stages=STAGES)
    assert isinstance(staged, ReducedModel)
    q = robot.random(np.random.default_rng(7))
    assert staged.momentum == first.momentum
    assert_close(staged.body_momentum(q), first.body_momentum(q), 1e-14)
    assert_close(staged.locked_inertia(q), first.locked_inertia(q), 1e-14)
