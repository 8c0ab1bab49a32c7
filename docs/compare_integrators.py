"""A double spherical pendulum over a million steps: the table of docs/lagrangian.md.

python docs/compare_integrators.py

takes about a minute. "rkmk4" steps a million times; the others get steps or a tolerance with which
they take as much processor time. Needs MuJoCo, from the extra `test`.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import mujoco
import numpy as np
from scipy.integrate import DOP853

import concur as cc
from concur.codegen import Evaluator, compiled
from concur.formulations import Factor

PAGE = Path(__file__).resolve().with_name("lagrangian.md")
STEPS, STEP, SAMPLES = 1_000_000, 1e-3, 100
MASSES, LENGTHS, GRAVITY = (1.0, 0.7), (0.8, 0.6), 9.81
Q0 = np.array([0.6, 0.0, -0.8, 2 / 7, 3 / 7, -6 / 7])
V0 = np.array([0.8, 0.5, 0.6, 0.9, 0.4, 0.5])
TOLERANCES = tuple(10.0**-k for k in np.arange(3.0, 13.5, 0.5))


@dataclass(frozen=True)
class Row:
    """Largest deviations of one method over a run."""

    method: str
    steps: int
    seconds: float  # processor time
    length: float  # of the directions from 1
    energy: float  # J
    momentum: float  # vertical angular momentum, N m s


def pendulum() -> cc.LagrangianSystem:
    """Two links on two-spheres."""
    links = [Factor(f"link{k}", "S2", (0.0, 0.0, -1.0)) for k in (1, 2)]
    place, speed, kinetic, potential = ca.SX(3, 1), ca.SX(3, 1), ca.SX(0), ca.SX(0)
    for link, mass, length in zip(links, MASSES, LENGTHS, strict=True):
        place, speed = place + length * link.q, speed + length * link.qdot
        kinetic += mass * ca.sumsqr(speed) / 2
        potential += mass * GRAVITY * place[2]
    return cc.LagrangianSystem(kinetic, potential, links, name="double pendulum")


def kept(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Energy and vertical angular momentum of states (k, 6), by masses and places: (k, 2)."""
    lengths = np.array(LENGTHS)[:, None]
    turns = np.cross(v.reshape(-1, 2, 3), q.reshape(-1, 2, 3))
    place = np.cumsum(lengths * q.reshape(-1, 2, 3), axis=1)
    speed = np.cumsum(lengths * turns, axis=1)
    mass = np.array(MASSES)[:, None]
    energy = (mass * (speed**2 / 2 + GRAVITY * place * [0, 0, 1])).sum(axis=(1, 2))
    return np.column_stack([energy, (mass * np.cross(place, speed))[..., 2].sum(axis=1)])


def row(method: str, steps: int, seconds: float, q: np.ndarray, values: np.ndarray) -> Row:
    """Deviations from the start."""
    off = np.abs(np.linalg.norm(q.reshape(-1, 3), axis=1) - 1.0).max()
    energy, momentum = np.abs(values - kept(Q0[None], V0[None])).max(axis=0)
    return Row(method, steps, seconds, float(off), float(energy), float(momentum))


def fixed(method: str, steps: int = STEPS) -> Row:
    """A method of `simulate` and `forced_motion`, as machine code."""
    system = pendulum()

    one, state = cc.Plant(system).step_function(method), ca.MX.sym("state", 12)
    q, v = one(*ca.vertsplit(state, 6), ca.DM(0, 1), STEP)
    per = steps // SAMPLES
    many = ca.Function("step", [state], [ca.vertcat(q, v)]).fold(per)
    made = compiled([many])
    advance = Evaluator(made.functions[0] if made else many, [(12,)], "pendulum")
    states, start = [np.concatenate([Q0, V0])], time.process_time()
    for _ in range(SAMPLES):
        states.append(np.array(advance(states[-1])))
    seconds = time.process_time() - start
    q, v = np.hsplit(np.array(states), 2)
    return row(f'`"{method}"`', steps, seconds, q, kept(q, v))


def adaptive(budget: float, duration: float) -> Row:
    """SciPy's DOP853 with the same accelerations as machine code, and the tightest tolerance."""
    system = pendulum()
    q, v = ca.SX.sym("q", 6), ca.SX.sym("v", 6)
    graph = ca.Function(
        "slope",
        [ca.vertcat(q, v)],
        [ca.vertcat(system.rate(q, v), cc.Plant(system).acceleration(q, v, ca.SX(0, 1))[0])],
    )
    made = compiled([graph])
    slope = Evaluator(made.functions[0] if made else graph, [(12,)], "pendulum", can_fail=False)

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        slope.inputs[0][:, 0] = y
        slope.trigger()
        return slope.outputs[0][:, 0].copy()

    def run(tolerance: float, end: float) -> tuple[float, int, np.ndarray]:
        solver = DOP853(rates, 0.0, [*Q0, *V0], end, rtol=tolerance, atol=tolerance)
        start, count, states = time.process_time(), 0, [solver.y]
        while solver.status == "running":
            solver.step()
            count += 1
            states.append(solver.y)
        return time.process_time() - start, count, np.array(states)

    share, chosen = 0.01, TOLERANCES[0]
    for tolerance in TOLERANCES:
        if run(tolerance, share * duration)[0] > share * budget:
            break
        chosen = tolerance
    seconds, count, states = run(chosen, duration)
    q, v = np.hsplit(states, 2)
    return row(f"SciPy DOP853, tolerance {chosen:.1g}", count, seconds, q, kept(q, v))


def by_mujoco(budget: float, duration: float) -> Row:
    """MuJoCo's RK4 on ball joints; point masses have the least inertia that it takes."""
    links = "".join(
        f'<body pos="0 0 {-offset}"><joint type="ball"/><inertial pos="0 0 {-length}" '
        f'mass="{mass}" diaginertia="1e-9 1e-9 1e-9"/>'
        for offset, mass, length in zip((0.0, LENGTHS[0]), MASSES, LENGTHS, strict=True)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option integrator="RK4" timestep="{STEP}" gravity="0 0 {-GRAVITY}"/>'
        f'<option><flag contact="disable" energy="enable"/></option>'
        f"<worldbody>{links}</body></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)

    def reset() -> None:
        mujoco.mj_resetData(model, data)
        turn, spin = np.eye(3), []
        for k in range(2):
            q, v = Q0[3 * k : 3 * k + 3], V0[3 * k : 3 * k + 3]
            axis = np.cross([0.0, 0.0, -1.0], q)
            half = np.concatenate([[1.0 - q[2]], axis])
            own = np.zeros(9)
            mujoco.mju_quat2Mat(own, half / np.linalg.norm(half))
            new = own.reshape(3, 3)
            mujoco.mju_mat2Quat(data.qpos[4 * k : 4 * k + 4], (turn.T @ new).ravel())
            spin.append(v)
            data.qvel[3 * k : 3 * k + 3] = new.T @ (v - (spin[k - 1] if k else 0.0))
            turn = new
        mujoco.mj_forward(model, data)

    def values() -> tuple[np.ndarray, np.ndarray]:
        mujoco.mj_energyPos(model, data)
        mujoco.mj_energyVel(model, data)
        mujoco.mj_subtreeVel(model, data)
        turning = data.subtree_angmom[1] + model.body_subtreemass[1] * np.cross(
            data.subtree_com[1], data.subtree_linvel[1]
        )
        q = np.concatenate([-data.xmat[k].reshape(3, 3)[:, 2] for k in (1, 2)])
        return q, np.array([data.energy.sum(), turning[2]])

    reset()
    trial = time.process_time()
    mujoco.mj_step(model, data, 20_000)
    each = (time.process_time() - trial) / 20_000
    count = max(SAMPLES, round(budget / each / SAMPLES) * SAMPLES)
    model.opt.timestep = duration / count
    reset()
    states, seconds = [values()], 0.0
    for _ in range(SAMPLES):
        start = time.process_time()
        mujoco.mj_step(model, data, count // SAMPLES)
        seconds += time.process_time() - start
        mujoco.mj_forward(model, data)
        states.append(values())
    q, found = (np.array(part) for part in zip(*states, strict=True))
    return row("MuJoCo RK4", count, seconds, q, found)


def table(steps: int = STEPS) -> list[Row]:
    """All methods over the same time."""
    first, duration = fixed("rkmk4", steps), steps * STEP
    return [
        first,
        fixed("rk4", steps),
        by_mujoco(first.seconds, duration),
        adaptive(first.seconds, duration),
        adaptive(np.inf, duration),
    ]


def main() -> None:
    """Run all methods, print the table, and write it into the page."""
    lines = [
        "| method | steps | processor time, s | length of q from 1 | energy, J | momentum, N m s |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for one in table():
        numbers = " | ".join(f"{x:.1e}" for x in (one.length, one.energy, one.momentum))
        lines.append(f"| {one.method} | {one.steps:,} | {one.seconds:.1f} | {numbers} |")
    block = "\n".join(lines)
    print(block)
    begin, end = "<!-- table: written by `python docs/compare_integrators.py` -->", "<!-- end -->"
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(begin) + r".*?" + re.escape(end)
    changed = re.sub(pattern, lambda _: f"{begin}\n{block}\n{end}", page, flags=re.DOTALL)
    PAGE.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
