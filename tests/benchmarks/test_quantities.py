"""Single functions give the same numbers by all contenders, whatever their coordinates."""

import numpy as np
import pytest

from tests.benchmarks import _mujoco_model, _pinocchio_model
from tests.benchmarks._quantities import (
    CASES,
    QUANTITIES,
    case,
    graph,
    in_place,
    mujoco_functions,
    our_inner,
    ours,
    pinocchio_functions,
    their_inner,
)
from tests.oracles import assert_close

STATES = 5
SMALL = list(CASES)[:4]
LARGE = list(CASES)[4:]


def of(result):
    """Flat numbers of one or several results."""
    parts = result if isinstance(result, tuple) else (result,)
    return np.concatenate([np.asarray(part).ravel(order="F") for part in parts])


def results_of_graph(name, quantity, numbers):
    return of(tuple(np.array(part) for part in graph(case(name), quantity).call(list(numbers))))


def about_origin(robot, q, matrix, com):
    """Carry momenta about the centre of mass to the inertial origin."""
    moved = matrix.copy()
    moved[3:] += np.cross(com, matrix[:3], axis=0)
    return moved


def pinocchios(name, quantity, q, rest):
    robot, functions = case(name).robot, pinocchio_functions(case(name))
    result = getattr(functions, quantity)(_pinocchio_model.configuration(robot, q), *rest)
    if quantity == "mass_matrix":
        return of(np.triu(result) + np.triu(result, 1).T)
    if quantity == "momentum_matrix":
        return of(about_origin(robot, q, result, functions.data.com[0]))
    return of(result)


def mujocos(name, quantity, q, rest):
    """The library's result in our coordinates."""
    robot, functions = case(name).robot, mujoco_functions(case(name))
    turn = _mujoco_model.turned(robot, q)
    v = rest[0] if rest else np.zeros(robot.nv)
    numbers = (turn @ v, *rest[1:]) if rest else ()
    result = getattr(functions, quantity)(_mujoco_model.configuration(robot, q), *numbers)
    # Of the base's linear velocity, in inertial axes there: its rate has a turning part.
    turning = np.zeros(robot.nv)
    spin = robot.twist(q, v, robot.base.name)
    size = 3 if turn.shape[0] > 5 and robot.nq > robot.nv else 2
    turning[:size] = np.cross(spin[3:], spin[:3])[:size]
    if quantity == "mass_matrix":
        return of(turn.T @ result @ turn)
    if quantity == "bias":
        mass = mujoco_functions(case(name)).mass_matrix(_mujoco_model.configuration(robot, q))
        return of(turn.T @ (result + mass @ turn @ turning))
    if quantity == "forward_dynamics":
        return of(turn.T @ result - turning)
    if quantity == "momentum_matrix":
        return of(about_origin(robot, q, result @ turn, functions.data.subtree_com[0]))
    jacobian, change = result
    pose = robot.pose(q, case(name).hand)[:3, :3]
    axes = np.kron(np.eye(2), pose)
    own = jacobian @ turn
    moved = own @ v
    rate = change + jacobian @ turn @ turning
    rate[:3] -= np.cross(moved[3:], moved[:3])
    return of((axes.T @ own, axes.T @ rate))


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", SMALL)
def test_functions_equal_the_peers(name, quantity):
    for q, *rest in case(name).calls(quantity)[:STATES]:
        found = of(ours(case(name), quantity)(q, *rest))
        assert_close(found, results_of_graph(name, quantity, (q, *rest)), 1e-12)
        assert_close(found, of(in_place(case(name), quantity)(q, *rest)), 0.0)
        assert_close(found, pinocchios(name, quantity, q, rest), 1e-10)
        assert_close(found, mujocos(name, quantity, q, rest), 1e-10)


@pytest.mark.slow  # the graphs of long robots take their time
@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", LARGE)
def test_functions_of_long_robots_equal_the_peers(name, quantity):
    for q, *rest in case(name).calls(quantity)[:STATES]:
        found = results_of_graph(name, quantity, (q, *rest))
        assert_close(found, pinocchios(name, quantity, q, rest), 1e-9)
        assert_close(found, mujocos(name, quantity, q, rest), 1e-9)


@pytest.mark.extended
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_loop_in_c_ends_with_the_last_state(quantity, compiler):
    name = SMALL[2]
    inner = our_inner(case(name), quantity)
    assert inner.seconds() > 0.0
    last = case(name).calls(quantity)[-1]
    assert_close(of(tuple(inner.results)), of(ours(case(name), quantity)(*last)), 1e-11)


@pytest.mark.slow  # compiles Pinocchio's headers, for a minute where no other test has
@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", SMALL)
def test_functions_in_cpp_equal_ours(name, quantity, compiler):
    inner = their_inner(case(name), quantity)
    assert inner.seconds() > 0.0
    q, *rest = case(name).calls(quantity)[-1]
    found = of(tuple(inner.results))
    if quantity == "momentum_matrix":
        library = pinocchio_functions(case(name))
        library.momentum_matrix(_pinocchio_model.configuration(case(name).robot, q))
        matrix = found.reshape(6, -1, order="F")
        found = of(about_origin(case(name).robot, q, matrix, library.data.com[0]))
    assert_close(found, results_of_graph(name, quantity, (q, *rest)), 1e-10)
