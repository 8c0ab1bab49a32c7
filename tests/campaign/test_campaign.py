"""Campaigns: one compile, the same bits in any block, and worlds that `concur track` reproduces."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import rv_discrete, triang, uniform

import concur as cc
from concur.campaign import sampled_curves
from concur.campaign._campaign import Campaign
from concur.campaign._verify import run
from concur.errors import ConcurError, DescriptionError, SimulationError
from concur.io import Task, load_task
from concur.worlds import Quantity, Requirement, Uncertainty
from tests.io.test_task import TASK as REACH
from tests.io.test_task import altered, robot_text, write

HEAD = REACH.split("[initial.q]")[0].replace("[4.0, 5.0]", "4.0")
TASK = (
    HEAD.replace('"rover_arm"', '"robot.toml"   # beside the task')
    + """
[initial.q]
chassis = [-0.25, -0.02, 0.02]
turret = -0.1
upper_arm = 1.0
forearm = -1.6

[initial.s]
left_wheel = 2.0
right_wheel = 2.0

[simulation]
duration = 0.5
dt = 0.005
control_period = 0.01

[imperfections.viscous]
turret = 0.1

[imperfections.timing]
latency = 0.005
jitter = 0.005

[uncertainty.mass]
"*" = { relative = [-0.1, 0.1] }

[uncertainty.com]
forearm = [-0.01, 0.01]

# Friction and timing of the drives.
[uncertainty.viscous]
turret = [-0.1, 0.1]

[uncertainty.timing]
latency = [-0.002, 0.002]

[uncertainty.initial_q]
chassis = [-0.02, 0.02]
turret = { normal = [0.0, 0.01] }

[uncertainty.initial_s]
left_wheel = [-0.1, 0.1]

[uncertainty.reference.hand]
radius = { relative = [-0.2, 0.2] }

[[requirements]]
kind = "settle"
output = "hand"
within = 0.3
radius = 0.2

[[requirements]]
kind = "torque"
below = 12.0

[[requirements]]
kind = "speed"
joint = "turret"
below = 1.0

[[requirements]]
kind = "joint"
joint = "forearm"
interval = [-1.65, -1.0]

[[requirements]]
kind = "margin"
above = 0.1

[[requirements]]
kind = "base"
box = [[-1.0, 0.0], [-0.1, 0.1]]

[[requirements]]
kind = "ticks"
"""
)
WIDE = 1.0 + 1e-9  # the rounding of a limit
NUMBERS = np.array([0, 3, 4, 9, 17])
ROWS = ("numbers", "worlds", "values", "stopped", "extremes")


def task_of(folder: Path, text: str = TASK) -> Task:
    write(folder, robot_text(), "robot.toml")
    return load_task(write(folder, text))


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    made = Campaign(task_of(tmp_path_factory.mktemp("campaign")), seed=5)
    made.prepare()
    return made


@pytest.fixture(scope="module")
def worlds(campaign: Campaign) -> np.ndarray:
    return campaign.task.uncertainty.draw(NUMBERS, seed=5)


@pytest.fixture(scope="module")
def values(campaign: Campaign, worlds: np.ndarray) -> np.ndarray:
    return campaign.evaluate(NUMBERS, worlds)


def test_a_row_depends_on_its_world_alone(
    campaign: Campaign, worlds: np.ndarray, values: np.ndarray
) -> None:
    for rows in ([2], [4, 1], [3, 0, 2, 1, 4]):
        assert np.array_equal(campaign.evaluate(NUMBERS[rows], worlds[rows]), values[rows])
    with ThreadPoolExecutor(2) as threads:
        found = run(campaign, NUMBERS, worlds, executor=threads)[0]
    assert np.array_equal(found, values)
    other = campaign.evaluate(NUMBERS + 1, worlds)  # jitter follows the number
    assert not np.array_equal(other, values)
    campaign.looks |= {5}
    again = pickle.loads(pickle.dumps(campaign))
    assert (again.facts, again.looks) == (campaign.facts, {5})
    assert np.array_equal(again.evaluate(NUMBERS[:1], worlds[:1]), values[:1])
    assert campaign.evaluate(NUMBERS[:0], worlds[:0]).shape == (0, len(campaign.columns))


def from_run(run: cc.Run) -> dict[str, float]:
    """Robustness of the requirements, from a recorded run and its definitions."""
    robot = run.robot
    ticks = len(run.t) - 1
    q, t = run.q[:ticks], run.t[:ticks]
    forearm = q[:, robot.q_slice("forearm")].ravel()
    x, y = q[:, 0], q[:, 1]
    found = {
        "settle hand": 0.2 - run.error_parts[1][2][:ticks][t >= 0.3 - 1e-9].max(),
        "joint forearm": min((forearm + 1.65 * WIDE).min(), (-1.0 / WIDE - forearm).min()),
        "base": min((x + 1.0).min(), -x.max(), (y + 0.1).min(), (0.1 - y).min()),
        "ticks": 1.0,
    }
    for k, name in enumerate(robot.control_names):
        found[f"torque {name}"] = 12.0 * WIDE - np.abs(run.u[:ticks, k]).max()
    return found


def test_a_margin_is_judged_itself_on_both_sides(
    campaign: Campaign, worlds: np.ndarray, values: np.ndarray
) -> None:
    row, servo = 2, campaign.task.servo
    run = campaign.replay(worlds[row], int(NUMBERS[row]))
    found = []
    for q in run.q[:-1]:
        left, size = (
            np.linalg.cholesky(servo.model.mass_matrix(q)),
            servo.margins.scales[0][:, None],
        )
        rows = np.linalg.solve(left, (size * servo.decoupling(q)).T)
        found.append(np.linalg.svd(rows, compute_uv=False)[-1])
    least = min(found)
    columns = dict(zip(campaign.columns, values[row], strict=True))
    assert abs(columns["extreme margin"] - least) < 1e-9
    assert abs(columns["margin"] - (least - 0.1)) < 1e-9
    for above, holds in ((least * (1 - 1e-8), True), (least * (1 + 1e-8), False)):
        made = Requirement("margin", "margin", (("margin", above, np.inf),), above)
        whole = made.value([[columns["extreme margin"]]], [100], 100)[0]
        assert bool(whole > 0.0) is holds
        task = replace(campaign.task, requirements=(made,))
        assert (task.robustness(run)["margin"] > 0.0) is holds


@pytest.mark.extended
def test_track_reproduces_a_world_from_its_file(
    campaign: Campaign, worlds: np.ndarray, values: np.ndarray, tmp_path: Path
) -> None:
    task = campaign.task
    elsewhere = tmp_path / "deep"
    elsewhere.mkdir()
    row = 1
    path = task.write_world(elsewhere / "worst.toml", worlds[row], int(NUMBERS[row]), 5)
    text = path.read_text()
    assert "uncertainty" not in text
    assert "# beside the task" in text
    written = load_task(path)
    assert not written.uncertainty.size
    assert written.requirements == task.requirements
    run = written.simulate()
    found = from_run(run)
    columns = dict(zip(campaign.columns, values[row], strict=True))
    for name, value in found.items():
        assert abs(value - columns[name]) < 1e-9, name
    robustness = written.robustness(run)
    assert list(robustness) == [made.name for made in task.requirements]
    # The campaign looks at the speeds of each step, the run has one row for each period.
    speed = robustness.pop("speed turret")
    assert columns["speed turret"] - 1e-9 < speed < columns["speed turret"] + 0.01
    for name, value in robustness.items():
        assert abs(value - columns[name]) < 1e-9, name
    assert columns["stopped"] == 0.5
    same = campaign.replay(worlds[row], int(NUMBERS[row]))
    assert np.abs(same.q - run.q).max() < 1e-9
    quick = task.with_world(worlds[row], int(NUMBERS[row]), 5).simulate()
    assert np.array_equal(quick.q, run.q)
    # Another world differs: the numbers reach the loop.
    other = task.with_world(worlds[0], int(NUMBERS[row]), 5).simulate()
    assert np.abs(other.q - run.q).max() > 1e-4


@pytest.mark.extended
def test_worlds_are_those_of_robots_with_other_numbers(campaign: Campaign) -> None:
    """Start, masses, reference and friction of a world, against `simulate` with those numbers."""
    task = campaign.task
    plain = TASK.split("[imperfections.")[0]
    robot = altered("mass = 2.0", "mass = 2.3", robot_text())
    changed = plain.replace("radius = 0.07", "radius = 0.08").replace(
        "-0.02, 0.02]", "-0.01, 0.02]"
    )
    changed = changed.replace("left_wheel = 2.0", "left_wheel = 2.1")
    changed += '\n[plant]\nfile = "other.toml"\n'
    write(task.path.parent, robot, "other.toml")
    expected = load_task(write(task.path.parent, changed, "expected.toml")).simulate()
    c, s = np.cos(0.02), np.sin(0.02)
    text = (
        plain
        + "[world.mass]\nturret = 0.3\n"
        # A displacement of the base is along its own axes.
        + f"[world.initial_q]\nchassis = [{s * 0.01}, {c * 0.01}, 0.0]\n"
        + "[world.initial_s]\nleft_wheel = 0.1\n"
        + "[world.reference.hand]\nradius = 0.01\n"
    )
    found = load_task(write(task.path.parent, text, "world.toml")).simulate()
    steps = slice(None, None, 2)  # the plain run records each step
    assert np.abs(found.q - expected.q[steps]).max() < 1e-9


def test_numbers_that_are_not_physical_are_refused_before_the_run(campaign: Campaign) -> None:
    for quantity, words in (
        (Quantity("mass", "chassis", uniform(-33.0, 33.1), unit="kg"), "-33 kg"),
        (Quantity("viscous", "turret", uniform(-0.2, 0.3)), "-0.2"),
        (Quantity("viscous", "turret", uniform(0.0, 1e6)), "step"),
        (Quantity("timing", "latency", rv_discrete(values=([-0.006, 0.0], [0.5, 0.5]))), "-0.006"),
        (Quantity("timing", "latency", uniform(0.0, 2.54)), "at most 254"),
        (Quantity("reference.hand", "radius", triang(0.5, -0.08, 0.18)), "radius"),
    ):
        with pytest.raises(DescriptionError) as caught:
            Campaign(campaign.task, uncertainty=Uncertainty((quantity,))).prepare()
        error = caught.value
        assert (error.table, error.field) == (f"[uncertainty.{quantity.kind}]", quantity.name)
        assert words in str(error)
        assert str(campaign.task.path) in str(error)


def test_a_world_that_is_not_physical_fails_with_its_reason(tmp_path: Path) -> None:
    # The ends of a normal distribution are infinite: single worlds may be impossible.
    text = altered('"*" = { relative = [-0.1, 0.1] }', "forearm = { normal = [0.0, 0.5] }", TASK)
    text = altered("duration = 0.5", "duration = 0.1", text)
    text = altered("within = 0.3", "within = 0.05", text)
    campaign = Campaign(task_of(tmp_path, text))
    worlds = np.zeros((3, campaign.task.uncertainty.size))
    worlds[1, 0] = -1.2
    numbers = np.array([7, 8, 9])
    values = campaign.evaluate(numbers, worlds)
    assert np.isnan(values[1]).all()
    assert np.isfinite(values[[0, 2]]).all()
    many = np.repeat(worlds, [69, 1, 1], axis=0)  # more than are computed at once
    found, reasons = campaign.outcome(np.arange(71), many)
    assert list(reasons) == [69]
    assert np.isnan(found).all(axis=1).nonzero()[0] == [69]
    result = campaign.result(numbers, worlds, *campaign.outcome(numbers, worlds))
    assert "forearm" in result.crashes[8]
    assert not result.passed[1]
    assert result.columns[0] == ("settle hand", "m")
    assert result.limits["torque:turret"] == (-np.inf, 12.0)
    with pytest.raises(ConcurError, match="physical"):
        campaign.replay(worlds[1])


@pytest.mark.extended
def test_a_world_that_stops_at_its_first_tick_has_no_curve(tmp_path: Path) -> None:
    # The arm is straight where the forearm is at zero.
    text = altered("turret = { normal = [0.0, 0.01] }", "forearm = { choice = [0.0, 1.6] }", TASK)
    campaign = Campaign(task_of(tmp_path, text))
    numbers = np.arange(6)
    worlds = campaign.task.uncertainty.draw(numbers)
    result = campaign.result(numbers, worlds, *campaign.outcome(numbers, worlds))
    refused = worlds[:, campaign.task.uncertainty.labels.index("initial_q.forearm")] > 0.0
    assert 0 < refused.sum() < 6
    assert (result.stopped == np.where(refused, 0.0, 0.5)).all()
    assert (result.values[refused] < 0.0).all()
    curves = sampled_curves(campaign, result, 6)
    assert [len(one.values) for one in curves] == [(~refused).sum()] * len(curves) != []
    rest = replace(result, **{k: getattr(result, k)[refused] for k in ROWS})
    assert sampled_curves(campaign, rest, 6) == ()


def test_a_world_that_diverges_never_passes(tmp_path: Path) -> None:
    # Late commands with high gains: the loop is unstable.
    wild = TASK.replace("stiffness = 9.0", "stiffness = 4e4").replace(
        "damping = 6.0", "damping = 400.0"
    )
    campaign = Campaign(task_of(tmp_path, wild))
    worlds = campaign.task.uncertainty.draw(range(4))
    numbers = np.arange(4)
    result = campaign.result(numbers, worlds, *campaign.outcome(numbers, worlds))
    assert (result.stopped < 0.5).all()
    assert (result.values < 0.0).all()
    assert not result.held.any()
    with pytest.raises(SimulationError, match=r"diverged|SINGULAR") as caught:
        campaign.replay(worlds[0])
    assert len(caught.value.run.t) > 1


def test_the_task_of_one_world_is_no_campaign(campaign: Campaign, worlds: np.ndarray) -> None:
    with pytest.raises(DescriptionError, match=r"\[world\]"):
        Campaign(campaign.task.with_world(worlds[0]))


@pytest.mark.extended
def test_facts_name_what_differs(campaign: Campaign, tmp_path: Path) -> None:
    for old, new, fields in (
        ("radius = 0.2\n", "radius = 0.3\n", {"requirements"}),
        ("[-0.01, 0.01]", "[-0.02, 0.01]", {"uncertainty"}),
        ("stiffness = 9.0", "stiffness = 8.0", {"law", "program"}),
        ("upper_arm = 1.0", "upper_arm = 1.1", {"nominal world"}),
    ):
        other = Campaign(task_of(tmp_path, altered(old, new, TASK)), seed=5)
        differing = {name for name, value in other.facts.items() if value != campaign.facts[name]}
        assert differing == fields
    assert Campaign(campaign.task, seed=6).facts != campaign.facts


@pytest.mark.extended
def test_an_uncertain_momentum_is_the_true_one(tmp_path: Path) -> None:
    example = (Path(__file__).parents[2] / "examples" / "free_floater.toml").read_text()
    head, rest = example.split("[simulation]", 1)
    short = f"{head}[simulation]\nduration = 0.1\ndt = 0.005\n"
    assert "[tolerances]" in rest
    world = "[world.momentum]\nlinear = [0.1, 0.0, 0.0]\nangular = [0.0, 0.0, -0.2]\n"
    plant = "[plant]\nmomentum = [0.6, -0.3, 0.2, 2.5, 0.8, 0.6]\n"
    held = "control_period = 0.005\n"
    runs = [load_task(write(tmp_path, short + held + text)).simulate() for text in (world, plant)]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-9
    nominal = load_task(write(tmp_path, short + held)).simulate()
    assert np.abs(runs[0].q - nominal.q).max() > 1e-4


@pytest.mark.extended
def test_a_wheel_that_slips_is_named(tmp_path: Path) -> None:
    text = (
        TASK.split("[imperfections.")[0]
        + """
[plant.slip]
grip = 0.8
loads = 150.0
time = 0.005

[uncertainty.grip]
left_wheel = { choice = [-0.75, 0.0] }

[[requirements]]
kind = "slip"
below = 0.01
"""
    )
    campaign = Campaign(task_of(tmp_path, text))
    values = campaign.evaluate(np.arange(2), [[-0.75], [0.0]])[:, :2]
    assert campaign.columns[:2] == ("slip left_wheel", "slip right_wheel")
    assert values[0, 0] < 0.0 < min(values[1])
    run = campaign.task.with_world([-0.75]).simulate()
    # The campaign looks at each step, the run has one row for each period.
    slip, largest = run.slip_speed[:, 0].max(), 0.01 - values[0, 0]
    assert 0.9 * largest < slip < largest + 1e-9
