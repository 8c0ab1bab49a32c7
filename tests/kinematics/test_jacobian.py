"""The Jacobian of a long arm turns each of its columns once."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from concur.robot import jacobian
from tests.benchmarks._robots import bent, chain
from tests.oracles import Pinocchio, assert_close


@pytest.mark.extended
def test_length_grows_with_the_joints_and_no_faster() -> None:
    lengths = []
    for count in (12, 24, 48):
        robot = chain(count)
        q = ca.SX.sym("q", robot.nq)
        graph = ca.Function("jacobian", [q], [jacobian(robot, q, "link_tool")], {"cse": True})
        lengths.append(graph.n_instructions())
    added = np.diff(lengths)
    assert added[1] < 2.1 * added[0], lengths


def test_long_arm_moves_its_tool_as_in_a_library_of_others() -> None:
    robot = chain(24)
    q = bent(robot)
    assert_close(robot.jacobian(q, "link_tool"), Pinocchio(robot).jacobian(q, "link_tool"), 1e-12)
