"""Worlds in lanes come to where they come one by one: only then is a ratio worth reading."""

import numpy as np
import pytest

from concur.codegen import instructions
from tests.benchmarks._lanes import (
    LOOPS,
    THREADS,
    UNCERTAIN,
    WAYS,
    batch_of,
    inputs_comparison,
    inputs_table,
    lane_comparison,
    lanes_table,
    thread_comparison,
    threads_table,
)
from tests.benchmarks._timing import measure


@pytest.mark.slow
@pytest.mark.parametrize("robot", LOOPS)
def test_all_ways_give_the_same_worlds(compiler, robot):
    single, *others = [contender.prepare() for contender in lane_comparison(robot).contenders]
    right = single()
    for other in others:
        np.testing.assert_allclose(other(), right, rtol=0.0, atol=1e-11 * np.abs(right).max())
    assert [batch_of(robot, way)[0].width for way in WAYS] == [1, 4, 8]


@pytest.mark.slow
def test_table_has_a_line_for_each_robot(compiler):
    lines = lanes_table(rounds=2).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {robot}" for robot in LOOPS]


@pytest.mark.slow
@pytest.mark.parametrize("robot", LOOPS)
def test_two_threads_give_the_same_worlds_to_the_bit(compiler, robot):
    comparison = thread_comparison(robot)
    assert comparison.spread
    one, two = [contender.prepare() for contender in comparison.contenders]
    np.testing.assert_array_equal(two(), one())
    assert [batch_of(robot, way)[0].threads for way in THREADS] == [1, 2]


@pytest.mark.slow
def test_table_of_threads_has_a_line_for_each_robot(compiler):
    lines = threads_table(rounds=2).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == [f"| {robot}" for robot in LOOPS]


@pytest.mark.slow
@pytest.mark.parametrize("robot", LOOPS)
def test_nominal_inputs_give_the_same_worlds(compiler, robot):
    constants, *others = [c.prepare() for c in inputs_comparison(robot).contenders]
    right = constants()
    for other in others:
        np.testing.assert_allclose(other(), right, rtol=0.0, atol=1e-11 * np.abs(right).max())


@pytest.mark.slow
@pytest.mark.parametrize("robot", LOOPS)
def test_inputs_cost_what_is_allowed(compiler, robot):
    best = measure(inputs_comparison(robot), 60).times.min(axis=0)  # free of other load
    lengths = [instructions(batch_of(robot, way)[0].function) for way in UNCERTAIN]
    for cost in (best, np.array(lengths)):
        assert (cost <= np.array([1.0, 1.15, 1.4, 1.5]) * cost[0]).all(), cost / cost[0]


@pytest.mark.slow
def test_table_of_inputs_has_a_line_for_each_family(compiler):
    lines = [line.split(" | ") for line in inputs_table(rounds=2).splitlines()[2:]]
    assert [line[:2] for line in lines] == [[f"| {r}", u] for r in LOOPS for u in UNCERTAIN]
