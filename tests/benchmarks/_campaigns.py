"""Worlds of a campaign through time: by `Rollout` in C, and by loops in Python over libraries.

All worlds have other masses; the law is sampled each millisecond and knows the nominal ones. The
loops over Pinocchio and ours integrate the same plant by the classic Runge-Kutta method; MuJoCo
takes one step of its own per millisecond, on wheels with friction and a caster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import mujoco
import numpy as np
import pinocchio as pin

import concur as cc
from concur.codegen import Batch, Demand, Rollout
from concur.simulation import Imperfections, Plant, Program, loop_program
from concur.simulation._contact_model import ContactModel
from concur.writers import Contacts
from tests.benchmarks._contender import Comparison, Contender, Law, Run
from tests.benchmarks._mujoco import MujocoLaw
from tests.benchmarks._pinocchio import PinocchioLaw, PinocchioLoop
from tests.benchmarks._report import duration
from tests.benchmarks._rover_comparisons import drawn, peer_law
from tests.benchmarks._timing import Measured, measure

WORLDS, TICKS, STEP = 16, 500, 1e-3
ROUNDS = 9
REPEATS, THREADED_ROUNDS = 16, 25
"""The worlds repeated, as threads share long jobs, and rounds of which the shortest counts."""

SPREAD = 0.1
"""Largest relative deviation of a mass."""

IMPERFECT = "`Rollout`, also with friction, lag, latency and jitter"
CASTER = {"caster": (0.5, 0.0, 0.0)}


@dataclass(frozen=True)
class Worlds:
    """The worlds: deviations of the masses, and the robot of each."""

    plant: Plant
    deviations: dict[str, dict[str, np.ndarray]]
    robots: tuple[cc.Mechanism, ...]
    q0: np.ndarray
    s0: np.ndarray


@cache
def worlds() -> Worlds:
    """Draw the worlds."""
    job = drawn()[0]
    rng = np.random.default_rng(0)
    deviations = {
        f"{body.name}.inertia.mass": body.inertia.mass * rng.uniform(-SPREAD, SPREAD, WORLDS)
        for body in job.robot.bodies
    }
    plant = Plant(job.robot, uncertain=list(deviations))
    robots = tuple(
        plant.rebuilt({name: own[k] for name, own in deviations.items()}) for k in range(WORLDS)
    )
    return Worlds(plant, deviations, robots, np.asarray(job.q0), np.asarray(job.s0))


def samples() -> list[cc.ReferenceSample]:
    """The reference at all ticks."""
    parts = drawn()[0].reference.sample(np.arange(TICKS) * STEP)
    return [cc.ReferenceSample(*row) for row in zip(*parts, strict=True)]


def rolled(program: Program, threads: int = 1, repeats: int = 1) -> Run:
    """Run all worlds by one call; configurations at the last tick."""
    job, these = drawn()[0], worlds()
    loop = Rollout(
        program.tick, program.step, program.steps_per_tick, program.noises, threads=threads
    )
    p = np.tile(program.numbers(these.plant.numbers(these.deviations)), (repeats, 1))
    x0, r = program.start(these.q0, these.s0, p=p), program.reference(job.reference, TICKS)
    delay, jitter = program.delays(worlds=len(p))
    watched = [k for k, s in enumerate(program.signals) if s.startswith(("base:", "position:"))]
    demands = [Demand(k, "last", 0, TICKS - 1) for k in watched]
    batch = Batch(x0, p, np.arange(len(p)), delay=delay, jitter=jitter)

    def run() -> np.ndarray:
        return loop(batch, r, ticks=TICKS, demands=demands).values

    return run


def exact() -> Run:
    """Ours, of the job that the loop over Pinocchio does too."""
    return rolled(loop_program(drawn()[1], worlds().plant))


def imperfect() -> Run:
    """Ours, with what a campaign has beside masses."""
    robot = drawn()[0].robot
    real = Imperfections.of(
        robot, viscous=0.05, coulomb=0.1, lag=0.003, latency=0.002, jitter=0.001
    )
    return rolled(loop_program(drawn()[1], worlds().plant, real))


class PinocchioWorlds:
    """The sampled law, and the plants of all worlds, over Pinocchio."""

    def __init__(self) -> None:
        job, these = drawn()[0], worlds()
        self.law = peer_law(PinocchioLaw)
        self.plants = []
        for robot in these.robots:
            law = PinocchioLaw(robot, job.outputs, job.stiffness, job.damping)
            self.plants.append(PinocchioLoop(law, robot))
        self.samples = samples()
        self.start = these.q0, self.law.lift.dot(these.s0)

    def __call__(self) -> np.ndarray:
        return np.array([self._world(plant) for plant in self.plants])

    def _world(self, plant: PinocchioLoop) -> np.ndarray:
        h, law, (q, v) = STEP, self.law, self.start

        def rate(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            own = model.configuration(q)
            mass = pin.crba(model.model, model.data, own)
            bias = pin.nonLinearEffects(model.model, model.data, own, v)
            qdot = v.copy()
            c, s = own[2], own[3]
            qdot[0], qdot[1] = c * v[0] - s * v[1], s * v[0] + c * v[1]
            return qdot, plant.plant(mass, bias, v, u)

        model = plant.law
        for sample, _ in pairwise(self.samples):
            u = law(q, v[3:], sample)
            q1, v1 = rate(q, v)
            q2, v2 = rate(q + (h / 2) * q1, v + (h / 2) * v1)
            q3, v3 = rate(q + (h / 2) * q2, v + (h / 2) * v2)
            q4, v4 = rate(q + h * q3, v + h * v3)
            q = q + (h / 6) * (q1 + 2 * (q2 + q3) + q4)
            v = v + (h / 6) * (v1 + 2 * (v2 + v3) + v4)
        return q


class MujocoWorlds:
    """A law, and the worlds on contacts, over MuJoCo, by its usual integrator or `RK4`."""

    def __init__(self, law: Law, rk4: bool = False) -> None:
        job, servo, _ = drawn()
        these = worlds()
        self.law = law
        v0 = np.asarray(servo.model.velocity(these.q0, these.s0))
        self.models = []
        for robot in these.robots:
            made = ContactModel(robot, Contacts(CASTER, 1.0, job.robot.ground_height), STEP)
            if rk4:
                made.model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
            made.place(these.q0, v0)
            self.models.append((made, made.data.qpos.copy(), made.data.qvel.copy()))
        self.samples = samples()

    def __call__(self) -> np.ndarray:
        return np.array([self._world(*entry) for entry in self.models])

    def _world(self, made: ContactModel, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        model, data, law = made.model, made.data, self.law
        mujoco.mj_resetData(model, data)
        positions, velocities, ctrl = data.qpos, data.qvel, data.ctrl
        positions[:], velocities[:] = qpos, qvel
        q, s = np.zeros(8), velocities[6:]
        for sample in self.samples:
            w, x, y, z = positions[3:7].tolist()
            q[:2], q[3:] = positions[:2], positions[7:]
            q[2] = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
            ctrl[:] = law(q, s, sample)
            mujoco.mj_step(model, data)
        return q


def campaign_comparison() -> Comparison:
    """Compare all ways; times are per step and world, on one core."""
    return Comparison(
        f"closed loop, {WORLDS} worlds of {TICKS * STEP:g} s in steps of 1 ms",
        (
            Contender("`Rollout`", exact),
            Contender(IMPERFECT, imperfect),
            Contender("loop over Pinocchio, law over Pinocchio", PinocchioWorlds, "Pinocchio"),
            Contender(
                "loop over MuJoCo with contacts, law over MuJoCo",
                lambda: MujocoWorlds(peer_law(MujocoLaw)),
                "MuJoCo",
            ),
            Contender(
                "loop over MuJoCo with contacts, RK4, law over MuJoCo",
                lambda: MujocoWorlds(peer_law(MujocoLaw), rk4=True),
                "MuJoCo, RK4",
            ),
            Contender(
                "loop over MuJoCo with contacts, our compiled tick",
                lambda: MujocoWorlds(drawn()[1].compile()),
                "MuJoCo and ours",
            ),
        ),
        WORLDS * TICKS,
        ROUNDS,
        "step",
        alike=False,
    )


def thread_comparison() -> Comparison:
    """Compare one thread with two, on as many processors."""

    def threaded(threads: int) -> Run:
        return rolled(loop_program(drawn()[1], worlds().plant), threads, REPEATS)

    return Comparison(
        f"closed loop, {REPEATS * WORLDS} worlds of {TICKS * STEP:g} s in steps of 1 ms",
        (
            Contender("`Rollout`, two threads", lambda: threaded(2)),
            Contender("`Rollout`, one thread", lambda: threaded(1)),
        ),
        REPEATS * WORLDS * TICKS,
        THREADED_ROUNDS,
        "step",
        alike=False,
        spread=True,
    )


def campaign_table(rounds: int | None = None) -> str:
    """Measure, and write a Markdown table, and a line for two threads."""
    table = campaign_rows(measure(campaign_comparison(), rounds))
    return f"{table}\n\n{thread_row(measure(thread_comparison(), rounds))}"


def thread_row(measured: Measured) -> str:
    """Gain by the second thread: from the shortest times, as another process may use a core."""
    two, one = measured.times.min(axis=0)
    return (
        f"The same loop with {REPEATS * WORLDS} worlds, shortest of {len(measured.times)} "
        f"interleaved runs: one thread {duration(one)} per step of one world, two threads "
        f"{duration(two)}, **{one / two:.3g}** times as many worlds."
    )


def campaign_rows(measured: Measured) -> str:
    """A line for each way, with how many times longer it takes than both of ours."""
    ours, imperfect, *_ = measured.comparison.contenders
    lines = [
        f"| {measured.comparison.job}, one core | one step of one world | times `Rollout` "
        "| times `Rollout` with imperfections |",
        "| --- | ---: | ---: | ---: |",
    ]
    for contender in measured.comparison.contenders:
        cells = [contender.name, duration(measured.median(contender))]
        for base in (ours, imperfect):
            middle, low, high = measured.ratio(contender, base)
            cells.append(f"**{middle:.3g}** ({low:.3g} to {high:.3g})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
