"""Maps over batches: the compiled function world by world, solvers included."""

from __future__ import annotations

import threading

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import concur as cc
from concur.codegen import BatchMap, Evaluator
from concur.control._tick import tick_function
from concur.errors import ShapeError


def product() -> ca.Function:
    """Matrices in and out, through MX."""
    a, x, h = ca.MX.sym("a", 2, 3), ca.MX.sym("x", 3), ca.MX.sym("h")
    return ca.Function("product", [a, x, h], [a @ x, h * a], ["a", "x", "h"], ["y", "scaled"])


def nearest() -> ca.Function:
    """The point of a box that is nearest to x, on a line through the origin if there is one."""
    x, side = ca.MX.sym("x", 2), ca.MX.sym("side")
    options = {"error_on_fail": False}
    dense = {"h": ca.Sparsity.dense(2, 2), "a": ca.Sparsity.dense(1, 2)}
    solver = ca.conic("nearest", "daqp", dense, options)
    found = solver(
        h=ca.DM.eye(2), g=-x, a=ca.DM([[1.0, -1.0]]), lba=-1e3, uba=1e3, lbx=-side, ubx=side
    )
    return ca.Function("nearest", [x, side], [found["x"]], ["x", "side"], ["nearest"])


def test_matrices_are_row_by_row(compiler: None) -> None:
    rng = np.random.default_rng(0)
    a, x, h = rng.normal(size=(7, 2, 3)), rng.normal(size=(7, 3)), rng.normal(size=7)
    for threads in (1, 2):
        batch = BatchMap(product(), threads=threads)
        assert (batch.compiled, batch.width, batch.threads) == (True, 1, threads)
        y, scaled = batch(a, x, h)
        assert_allclose(y, np.einsum("bij,bj->bi", a, x), rtol=1e-14, atol=1e-15)
        assert_array_equal(scaled, h[:, None, None] * a)
        assert_array_equal(batch(a[0], x, h)[1], h[:, None, None] * a[0])


def test_no_worlds(compiler: None) -> None:
    y, scaled = BatchMap(product())(np.zeros((0, 2, 3)), np.zeros(3), 1.0)
    assert (y.shape, scaled.shape) == ((0, 2), (0, 2, 3))


@pytest.mark.parametrize("way", ["compiled", "interpreted"])
def test_solvers_are_one_thread(request: pytest.FixtureRequest, way: str) -> None:
    if way == "compiled":
        request.getfixturevalue("compiler")
    batch = BatchMap(nearest(), threads=2)
    assert (batch.threads, batch.compiled) == (1, way == "compiled")
    x = np.random.default_rng(1).normal(size=(50, 2))
    right = np.clip(x, -0.5, 0.5)
    assert_allclose(batch(x, 0.5), right, atol=1e-9)
    found: dict[int, np.ndarray] = {}

    def call(key: int) -> None:
        found[key] = batch(x * key, 0.5)

    runs = [threading.Thread(target=call, args=(key,)) for key in (1, 2, 3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    for key in (1, 2, 3):
        assert_allclose(found[key], np.clip(key * x, -0.5, 0.5), atol=1e-9)


@pytest.mark.slow
def test_law_with_torque_limits(compiler: None) -> None:
    robot = cc.robots.free_flyer()
    servo = cc.Servo(
        cc.reduce(robot, momentum=np.array([0.5, -0.3, 0.2, 2.5, 0.8, 0.8])),
        [cc.Output("hand", "tool", "SE3")],
        4.0 * np.eye(6),
        4.0 * np.eye(6),
        torque_limits=np.full(6, 10.0),
    )
    rng = np.random.default_rng(2)
    q = np.array([robot.random(rng) for _ in range(12)])
    s = rng.uniform(-0.3, 0.3, (12, servo.ns))
    pose = np.array([servo.output(one) for one in q])
    pose[:, :3] += rng.uniform(-0.2, 0.2, (12, 3))
    twist, acceleration = rng.uniform(-0.2, 0.2, (2, 12, 6))
    function = tick_function(servo)
    interpreted = Evaluator(function, [(6,), (), (6,), (), ()], "tick")
    momentum = servo.compile().buffers.momentum.copy()
    u, *_, status = BatchMap(interpreted)(q, s, pose, twist, acceleration, momentum)
    for k in range(12):
        right = interpreted(q[k], s[k], pose[k], twist[k], acceleration[k], momentum)
        assert_allclose(u[k], right[0], rtol=1e-9, atol=1e-9)
        assert status[k] == right[-1]
    assert (np.abs(u).max(axis=1) > 9.99).any()


def test_bad_numbers_of_threads() -> None:
    with pytest.raises(ShapeError, match="BatchMap, `threads`: expected a positive integer"):
        BatchMap(product(), threads=0)
