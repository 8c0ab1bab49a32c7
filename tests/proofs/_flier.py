"""The shipped floater task, short, and states drawn inside its tubes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import SimpleNamespace

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from concur.io import Task, load_task
from concur.proofs._floater import Prover
from concur.proofs._recheck_balls import Balls
from concur.proofs._statement import Statement

EXAMPLES = Path(__file__).parents[2] / "examples"

NEAR = Statement((2e-4,), (3e-4,), 4e-4, push=(1e-3,))
"""A thin tube, for quick tests."""


@cache
def flier() -> Task:
    return load_task(EXAMPLES / "free_floater.toml")


def prover(duration: float, statement: Statement = NEAR) -> Prover:
    task = flier()
    return Prover(task.servo, task.reference, duration, task.q0, task.s0, statement)


def ball(rng: np.random.Generator, radius: float) -> np.ndarray:
    """A point of a ball of R^6; half of the points lie on its sphere."""
    d = rng.normal(size=6)
    return radius * d / np.linalg.norm(d) * rng.choice([1.0, rng.uniform()])


def candidate(case: Prover, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Candidate of (x, ve, quaternion, position) and its rate at a time."""
    k = min(int(t / case.length), case.count - 1)
    d = 2 * (t / case.length - k) - 1
    c = case.declared.cubics[..., k]
    value = sum(c[i] * d**i for i in range(4))
    rate = sum(i * c[i] * d ** (i - 1) for i in range(1, 4)) * 2 / case.length
    return value, rate


def deviated(case: Prover, t: float, dx: np.ndarray, eta: np.ndarray, dv: np.ndarray) -> np.ndarray:
    """Configuration and shape velocities, (19,), by inverse kinematics of the servo's functions."""
    servo, (c, _) = flier().servo, candidate(case, t)
    turn = Rotation.from_quat(c[12:16])
    side = np.sqrt(1 - eta[3:] @ eta[3:] / 4)
    own = turn * Rotation.from_quat([*eta[3:] / 2, side])
    sample = flier().reference(t)
    x, ve = c[:6] + dx, c[6:12] + dv
    group = servo.error_dynamics.group
    target = np.asarray(ca.DM(group.shifted(ca.DM(sample.flat_pose), ca.DM(x)))).ravel()
    k = min(int(t / case.length), case.count - 1)
    q = np.array([*c[16:] + turn.apply(eta[:3]), *own.as_quat(), *case.declared.path[19:, k]])
    for _ in range(12):
        off = servo.pose_error(q, target)
        slope = np.empty((6, 6))
        for j in range(6):
            moved = q.copy()
            moved[7 + j] += 1e-6
            slope[:, j] = (servo.pose_error(moved, target) - off) / 1e-6
        q[7:] -= np.linalg.solve(slope, off)
    carried = np.asarray(ca.DM(group.transport(ca.SX(ca.DM(x)))))
    drift = servo.motion(q, servo.velocity(q, np.zeros(6)))[0]
    return np.concatenate(
        [q, np.linalg.solve(servo.decoupling(q), ve + carried @ sample.twist - drift)]
    )


def base_deviation(case: Prover, t: float, q: np.ndarray) -> np.ndarray:
    """Eta of a configuration at a time."""
    c = candidate(case, t)[0]
    turn = Rotation.from_quat(c[12:16])
    apart = (turn.inv() * Rotation.from_quat(q[3:7])).as_quat()
    apart *= np.sign(apart[3])
    return np.concatenate([turn.inv().apply(q[:3] - c[16:]), 2 * apart[:3]])


def knee(power: int) -> SimpleNamespace:
    """A reference whose first twist coordinate is (t - 1.2345)^power after 1.2345 s, else zero."""
    t = ca.SX.sym("t")
    twist = ca.vertcat(ca.if_else(t < 1.2345, 0.0, (t - 1.2345) ** power), ca.SX.zeros(5))
    pose = ca.vertcat(ca.SX.zeros(6), 1)
    made = ca.Function("r", [t], [pose, twist, ca.jacobian(twist, t)])
    return SimpleNamespace(pieces=lambda: SimpleNamespace(function=made, tables=[]))


def polynomial(m: Balls, xi: np.ndarray) -> np.ndarray:
    """Polynomial of a model at symbols (n, b)."""
    first, second = m.blocks.first[: len(m.h)], m.blocks.second[: len(m.h)]
    linear = np.einsum("i...b,ib->...b", m.g, xi[: len(m.g)])
    return np.asarray(m.c + linear + np.einsum("i...b,ib->...b", m.h, xi[first] * xi[second]))


def encloses(m: Balls, k: int, xi: np.ndarray, values: np.ndarray, slack: float) -> bool:
    """Whether the checker's models contain values; symbols beyond xi are remainders."""
    column = m[..., np.array([k])]
    n = min(len(column.g), len(xi))
    point = np.concatenate([xi[:n], np.zeros(len(column.g) - n)])[:, None]
    more = np.abs(column.g[n:]).sum(axis=0)
    more = more + np.abs(column.h[column.blocks.second[: len(column.h)] >= n]).sum(axis=0)
    off = np.abs(polynomial(column, point)[:, 0] - values)
    return bool((off <= (column.r + more)[:, 0] + slack).all())
