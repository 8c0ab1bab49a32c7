"""Certified tubes and certificates hold all sampled motions under their own assumptions.

The disturbance of a sampled world is not taken from the package: it is what the difference quotient
of the true velocity error has beyond the error dynamics. The tube for a disturbance of that
size, which is PROVED, has to hold the motion at all times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import concur as cc
from concur.campaign import Campaign
from concur.campaign._proved import true_velocity_error
from concur.certify import (
    Disturbance,
    model_disturbance,
    narrow_decays,
    torque_disturbance,
    tubes,
)
from concur.errors import SimulationError, SingularConfigurationError
from concur.io import Task
from concur.simulation import Friction, Integrator, Plant, Run, simulate
from tests.io.test_task import write

EXAMPLES = Path(__file__).parents[2] / "examples"

DRIVES = """
[imperfections]
ripple = 0.05
lag = 0.002
[imperfections.timing]
latency = 0.001
jitter = 0.001
[[imperfections.wrenches]]
name = "push"
body = "BODY"
start = 0.2
end = 1.0
[uncertainty.mass]
"*" = { relative = [-0.2, 0.2] }
[uncertainty.coulomb]
"*" = [0.0, 0.01]
[uncertainty.force]
push = [-0.5, 0.5]
[uncertainty.torque]
push = [-0.05, 0.05]
"""
ROVER = """
[uncertainty.initial_q]
chassis = [-0.02, 0.02]
upper_arm = [-0.05, 0.05]
"""
FLOATER = """
[uncertainty.momentum]
linear = [-0.1, 0.1]
[uncertainty.initial_q]
turret = [-0.05, 0.05]
wrist_roll = [-0.05, 0.05]
"""
FLOATER_TEXT = {
    "duration = 24.0": "duration = 2.0",
    "dt = 0.005": "dt = 0.01",
    "= 12.0": "= 1.0",
}

# Example, changes of its text, its uncertainty, angle (rad) and distance (m) of the certificate.
CASES: dict[str, tuple[str, dict[str, str], str, float | None, float | None]] = {
    "rover, R2 and R3": (
        "rover_arm",
        {"duration = 20.0": "duration = 2.0", "= 12.0": "= 1.0", "dt = 0.001": "dt = 0.01"},
        DRIVES.replace("BODY", "forearm") + ROVER,
        None,
        None,
    ),
    "floater, R3xSO3": (
        "free_floater",
        FLOATER_TEXT | {'"SE3"': '"R3xSO3"'},
        DRIVES.replace("BODY", "hand").replace("0.05", "0.01") + FLOATER,
        2.0,
        None,
    ),
    "floater, SE3": (
        "free_floater",
        FLOATER_TEXT,
        DRIVES.replace("BODY", "hand").replace("0.05", "0.01") + FLOATER,
        1.2,
        1.5,
    ),
}


def few_by_default(few: int, many: int) -> Any:
    """Some worlds of the first case by default, many of each in extended runs."""
    first, *_ = CASES
    counts = [(first, few), *((name, many) for name in CASES)]
    marks = pytest.mark.by_default(1), pytest.mark.parametrize(("name", "count"), counts)
    return lambda test: marks[0](marks[1](test))


def case(name: str, folder: Path) -> tuple[Task, cc.Certificate]:
    """Task of a case, and the certificate of its law."""
    example, changes, uncertainty, angle, distance = CASES[name]
    text = (EXAMPLES / f"{example}.toml").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    task = cc.load_task(write(folder, text + uncertainty))
    certificate = cc.certify(task.servo, angle=angle, distance=distance)
    assert certificate.status is cc.Status.PROVED
    return task, certificate


def disturbances(run: Run) -> np.ndarray:
    """Mean disturbance in each period of a run, shape (k - 1, size)."""
    dynamics, ve = run.servo.error_dynamics, true_velocity_error(run)
    rates = [dynamics.rate(*pair)[1] for pair in zip(run.error, ve, strict=True)]
    expected = (np.array(rates)[1:] + np.array(rates)[:-1]) / 2.0
    return np.diff(ve, axis=0) / np.diff(run.t)[:, None] - expected


def norms(decay: Any, run: Run) -> np.ndarray:
    """|z|_P of a channel along a run."""
    own = decay.channel.index
    z = np.hstack([run.error[:, own], true_velocity_error(run)[:, own]])
    return np.sqrt(np.einsum("ki,ij,kj->k", z, decay.P, z))


def held(decays: Sequence[Any], bound: Disturbance, run: Run) -> bool | None:
    """Whether the tubes of a run for a bound of its disturbance contain it; None without tubes."""
    values = [norms(decay, run) for decay in decays]
    found = tubes(decays, bound, [own[0] for own in values])
    if not all(one.fits for one in found):
        return None
    inside = True
    for one, own in zip(found, values, strict=True):
        assert bound.sampled or one.status is cc.Status.PROVED
        left = np.exp(-one.rate * run.t) if one.rate else 1.0
        reach = one.ultimate + (one.start - one.ultimate) * left if one.rate else one.radius
        inside &= bool((own <= (1.0 + 1e-9) * reach + 1e-12).all())
    return inside


@pytest.mark.extended
@pytest.mark.parametrize(("name", "count"), [(name, 40) for name in CASES])
def test_tubes_hold_all_sampled_motions(
    name: str, count: int, compiler: Any, tmp_path: Path
) -> None:
    task, certificate = case(name, tmp_path)
    decays = narrow_decays(certificate)
    campaign = Campaign(task, seed=1)
    covered = narrow = 0
    for number, row in enumerate(task.uncertainty.draw(range(count), seed=1)):
        run = campaign.replay(row, number)
        found = disturbances(run)
        # Within a period the disturbance may differ from its mean by what it changes to the next.
        size = np.abs(found).max(axis=0) + np.abs(np.diff(found, axis=0)).max(axis=0)
        inside = held(decays, Disturbance(size), run)
        assert inside is not False, f"world {number} leaves its tube"
        covered += inside is True
        narrow += held(decays, Disturbance(size / 20.0), run) is False
    assert covered > 0.7 * count, f"only {covered} of {count} disturbances have a tube"
    assert narrow, "no motion leaves the tube for a twentieth of its disturbance"


@pytest.mark.extended
@pytest.mark.parametrize("name", CASES)
def test_tubes_for_wrong_masses_and_for_friction_hold_the_motions(
    name: str, tmp_path: Path
) -> None:
    """The bounds follow from the states of the motions."""
    task, certificate = case(name, tmp_path)
    servo, decays = replace(task.servo, use_measured_velocity=True), narrow_decays(certificate)
    integrator = Integrator(task.method, task.dt)
    heavy = [body for body in task.robot.bodies if body.inertia.mass > 0.0]
    rng, covered = np.random.default_rng(3), 0
    for _ in range(6):
        parts = rng.uniform(-0.1, 0.1, len(heavy))
        masses = {
            f"{body.name}.inertia.mass": part * body.inertia.mass
            for body, part in zip(heavy, parts, strict=True)
        }
        heavier = Plant(task.robot, uncertain=list(masses)).of_world(masses)
        coulomb = rng.uniform(0.0, 0.02, servo.nu)
        friction = Friction((0.0,) * servo.nu, tuple(coulomb))
        for plant in (heavier, Plant(task.robot, friction=friction)):
            run = simulate(
                task.robot, servo, task.reference, task.duration, task.q0,
                task.shape_velocities(servo), plant=plant, dt=integrator,
            )  # fmt: skip
            if plant is heavier:
                commands = np.array([task.reference(t).acceleration for t in run.t])
                bound = model_disturbance(servo, heavier.tree, run.q, run.v, commands)
            else:
                bound = torque_disturbance(servo, run.q, coulomb)
            inside = held(decays, bound, run)
            assert inside is not False
            covered += inside is True
    assert covered


@few_by_default(2, 12)
def test_certificate_bounds_the_norm_of_sampled_starts(
    name: str, count: int, tmp_path: Path
) -> None:
    """Nominal motions from starts of the certified region."""
    task, certificate = case(name, tmp_path)
    servo, robot, rng = task.servo, task.robot, np.random.default_rng(4)
    s0 = task.shape_velocities(servo)
    seen = 0
    for _ in range(10 * count):
        q0 = robot.coupled(robot.integrate(task.q0, rng.uniform(-0.2, 0.2, robot.nv)))
        s = s0 + rng.uniform(-0.2, 0.2, len(s0))
        if not certificate.contains(*servo.error(q0, s, task.reference(0.0))):
            continue
        try:
            run = simulate(robot, servo, task.reference, task.duration, q0, s, dt=task.dt)
        except (SimulationError, SingularConfigurationError):
            continue  # the certificate covers regular motions
        reached = [
            certificate.norm(*pair) for pair in zip(run.error, run.velocity_error, strict=True)
        ]
        bound = reached[0] * np.exp(-certificate.rate * run.t)
        assert (reached <= (1.0 + 1e-6) * bound + 1e-9).all()
        seen += 1
        if seen == count:
            return
    pytest.fail(f"only {seen} of {10 * count} starts are in the region")
