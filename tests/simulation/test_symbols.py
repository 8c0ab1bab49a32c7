"""Symbols that come in are in the results, or are refused: no nominal value takes their place."""

from __future__ import annotations

import inspect
from typing import Any

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.errors import ConcurError, SimulationError
from concur.robot import wheel_rows
from concur.simulation import Slip
from tests.oracles import assert_close
from tests.simulation.test_worlds import ROBOTS, cases, one

REFUSED = {"forward", "potential_energy", "screw_jacobian"}
"""Methods that take the numbers of a description only."""


def owners() -> dict[str, Any]:
    floater = cc.robots.planar_floater()
    return {
        "mechanism": ROBOTS["rover"],
        "rolling": cc.reduce(cc.robots.chaplygin_sleigh()),
        "momentum": cc.reduce(floater, momentum=[0.1, 0.2, 0, 0, 0, 0.3]),
        "plant": cc.Plant(floater),
        "slipping": cc.Plant(
            ROBOTS["mecanum"], slip=Slip.of(ROBOTS["mecanum"], 0.8, compliance=1.0)
        ),
    }


@pytest.mark.parametrize("name", owners())
def test_evaluated_methods_keep_the_symbols_of_their_arguments(name: str) -> None:
    owner, seen = owners()[name], []
    rng = np.random.default_rng(3)
    p = ca.SX.sym("p", 2)
    body = getattr(owner, "robot", owner).bodies[-1].name
    for method in dir(type(owner)):
        made = getattr(type(owner), method)
        if method.startswith("_") or not hasattr(made, "evaluator_for"):
            continue
        others = [x for x in inspect.signature(made).parameters.values() if x.name == "body"]
        static = (body,) if others else ()
        try:
            graph = owner.buffered(method, *static).function
        except SimulationError:
            assert isinstance(owner, cc.Plant)  # its wheels either roll or slip
            continue
        sizes = [graph.size1_in(i) for i in range(len(graph.name_in()))]
        values = [0.3 * rng.normal(size=n) for n in sizes]
        for _ in range(2):  # a second time from what is kept
            moved = [ca.SX(x) + p[0] * (1 + k) for k, x in enumerate(values)]
            results = getattr(owner, method)(*moved, *static)
            results = results if isinstance(results, tuple) else (results,)
            due = getattr(owner, method)(
                *[x + 0.01 * (1 + k) for k, x in enumerate(values)], *static
            )
            due = due if isinstance(due, tuple) else (due,)
            found = ca.Function("found", [p], [ca.densify(ca.SX(x)) for x in results])
            for came, wanted in zip(found.call([[0.01, 0.0]]), due, strict=True):
                assert_close(np.array(came).ravel(), np.ravel(wanted), 1e-10)
        seen.append(method)
    assert len(seen) > 0


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", ROBOTS)
def test_functions_take_the_numbers_of_a_symbolic_robot_or_refuse_it(name: str) -> None:
    plant, worlds, numbers = cases(name)
    robot, rng = ROBOTS[name], np.random.default_rng(0)
    p = ca.SX.sym("p", plant.n_numbers)
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    inside: Any = plant.symbolic(p)
    other = plant.rebuilt(one(worlds, 1))
    q0, v0 = other.random(rng), rng.normal(size=robot.nv)
    given = dict.fromkeys(("q", "coordinates"), q) | dict.fromkeys(("v", "vdot", "s", "dv"), v)
    given |= {"body": robot.bodies[-1].name}
    asked = {
        name: [x.name for x in inspect.signature(made).parameters.values() if x.default is x.empty]
        for name, made in inspect.getmembers(cc.Mechanism, lambda x: hasattr(x, "evaluator_for"))
        if not name.startswith("_")
    }
    seen, refused = set(), set()
    for method, needs in asked.items():
        if not set(needs[1:]) <= set(given):
            continue
        arguments = [given[n] for n in needs[1:]]
        try:
            came = getattr(inside, method)(*arguments)
        except ConcurError:
            refused.add(method)
            continue
        due = getattr(other, method)(*arguments)
        graph = ca.Function("f", [q, v, p], [ca.densify(came), ca.densify(due)])
        found, wanted = graph(q0, v0, numbers[1])
        assert_close(np.array(found), np.array(wanted), 1e-9)
        seen.add(method)
    assert refused == REFUSED
    assert seen >= {"bias", "coriolis", "jacobian", "kinetic_energy", "mass_matrix", "momentum"}
    for wheel, same in zip(robot.wheels, other.wheels, strict=True):
        rows = wheel_rows(inside, q, wheel).rows, wheel_rows(other, q, same).rows
        found, wanted = ca.Function("f", [q, p], list(map(ca.densify, rows)))(q0, numbers[1])
        assert_close(np.array(found), np.array(wanted), 1e-12)
