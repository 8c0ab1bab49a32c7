"""Worlds whose run is not valid fail, whatever the requirements; loads and tipping too."""

import math
from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from concur.campaign import Campaign, CampaignReport
from concur.control import JointLimits
from concur.errors import ConcurError, DescriptionError
from concur.io import load_task
from concur.reduction import contact_edges
from concur.simulation import (
    Slip,
    ValidRange,
    first_invalid,
    run_signals,
    valid_ranges,
)
from concur.worlds import Requirement
from tests.campaign.test_campaign import TASK
from tests.io.test_task import robot_text, write

HEAD = TASK.split("[simulation]")[0]
ROLLING = """
[simulation]
duration = 0.1
dt = 0.005
control_period = 0.005

[uncertainty.mass]
chassis = [-28.0, 0.0]
"""
SLIPPING = (
    ROLLING.replace("dt = 0.005", "dt = 0.0025")
    + """
[plant.slip]
grip = 0.8
"""
)
TICKS = '[[requirements]]\nkind = "ticks"\n'


def campaign_of(folder, tail, robot=None):
    supports = "\n[supports]\nfront = [0.4, 0.0, -0.1]\n"
    write(folder, (robot or robot_text()) + supports, "robot.toml")
    return Campaign(load_task(write(folder, HEAD + tail)), seed=2)


def result_of(campaign, worlds):
    numbers = np.arange(len(worlds))
    return campaign.result(numbers, np.array(worlds), *campaign.outcome(numbers, worlds))


@pytest.fixture(scope="module")
def slipping(tmp_path_factory):
    campaign = campaign_of(tmp_path_factory.mktemp("task"), SLIPPING + TICKS)
    return campaign, result_of(campaign, [[0.0], [-28.0]])


@pytest.fixture(scope="module")
def rolling(tmp_path_factory):
    campaign = campaign_of(tmp_path_factory.mktemp("task"), ROLLING + TICKS)
    return campaign, result_of(campaign, [[0.0]])


def test_a_world_that_lifts_off_fails_with_reason_and_time(slipping, tmp_path):
    campaign, result = slipping
    assert result.passed.tolist() == [True, False]
    assert result.values[0, 0] == 1.0 > 0.0 > result.values[1, 0]
    run = campaign.replay([-28.0], 1)
    lifted = run.wheel_load < 0.0
    row = int(np.flatnonzero(lifted.any(axis=1))[0])
    name = ("left_wheel", "right_wheel", "front")[int(np.flatnonzero(lifted[row])[0])]
    assert result.invalid == {
        1: f"{name} lifts off at {run.t[row]:.3g} s: the run is not valid from there on"
    }
    assert result.stopped.tolist() == [0.1, pytest.approx(run.t[row])]
    # `concur track` judges by the same ranges, and fails.
    world = campaign.task.with_world([-28.0], 1, 2)
    assert world.robustness(run)["ticks"] == pytest.approx(result.values[1, 0])
    found = {one.quantity: one for one in run.findings(world.tolerances)}[
        f"load of {name}, smallest"
    ]
    assert (found.holds, found.limit, found.at_least) == (False, 0.0, True)
    sound = campaign.task.with_world([0.0], 0, 2)
    good = campaign.replay([0.0], 0)
    assert sound.robustness(good)["ticks"] == 1.0
    loads = [one for one in good.findings(sound.tolerances) if one.quantity.startswith("load of")]
    assert [one.holds for one in loads] == [True] * 3
    # Reasons stay in files and stand in the report.
    again = type(result).load(result.save(tmp_path / "campaign.h5"))
    assert again.invalid == result.invalid
    assert again.passed.tolist() == [True, False]
    report = CampaignReport(result)
    assert (report.passed, report.rates[0].passed) == (False, 1)
    assert report.sentence == "1 of 2 sampled worlds fail; in 1 of them the run is not valid"
    assert report.problems[0] == f"not valid: world 1: {result.invalid[1]}"
    assert report.details["invalid"][0]["numbers"] == [1]
    assert report.worst[0].reason == result.invalid[1]
    # Values cannot outvote it: forged ones do not pass.
    forged = replace(result, values=np.ones((2, 1)))
    assert forged.held.tolist() == [[True], [False]]
    with pytest.raises(ConcurError, match="`invalid`"):
        replace(result, invalid={7: "?"})


def test_a_load_of_zero_is_valid_and_less_is_not():
    one = ValidRange("load:caster", 0.0, math.inf, "caster lifts off")
    tiny = math.ulp(0.0)
    assert first_invalid([one], {"load:caster": np.array([1.0, 0.0])}) is None
    assert first_invalid([one], {"load:caster": np.array([1.0, 0.0, -tiny])}) == (2, one)
    assert first_invalid([one], {"load:caster": np.array([np.nan])}) == (0, one)
    late = ValidRange("x", -1.0, 1.0, "x leaves")
    both = {"load:caster": np.array([1.0, 1.0, -1.0]), "x": np.array([0.0, 1.1, 1.1])}
    assert first_invalid([one, late], both) == (1, late)


def test_ranges_are_the_limits_of_track_with_their_rounding():
    robot = cc.robots.rover_arm()
    limits = JointLimits.of(robot)
    ranges = {one.signal: one for one in valid_ranges(robot, None, limits, 1e-9)}
    assert ranges["constraint"].high == 1e-9
    assert not any(name.startswith("load") for name in ranges)
    slip = Slip.of(robot, 0.8, supports={"front": (0.5, 0.0, 0.0)})
    named = [one.signal for one in valid_ranges(robot, slip, limits, 1e-9)]
    assert named[:3] == ["load:left_wheel", "load:right_wheel", "load:front"]
    assert "constraint" not in named
    fixed = Slip.of(robot, 0.8, loads=100.0)
    assert [one for one in valid_ranges(robot, fixed, limits, 1.0) if "load" in one.signal] == []
    flyer = cc.robots.free_flyer()
    signals = [one.signal for one in valid_ranges(flyer, None, JointLimits.of(flyer), 1e-9)]
    assert not {"constraint", "load"} & {name.split(":")[0] for name in signals}
    # Both judge the same extremes alike, on both sides of each limit and of the rounding.
    ends = np.tile([[-1.0], [2.0]], robot.nq), np.tile([3.0], robot.nv), np.tile([4.0], 5)
    limits = JointLimits(ends[0].T, ends[1], ends[2], robot)
    for scale, good in ((1.0, True), (1 + 0.9e-9, True), (1 + 1.1e-9, False)):
        for k, (size, part) in enumerate(((robot.nq, 0), (robot.nv, 1), (5, 2))):
            for side in (0, 1):
                extremes = [np.zeros((2, robot.nq)), np.zeros((2, robot.nv)), np.zeros((2, 5))]
                limit = ends[k][side, -1] if k == 0 else ends[k][-1] * (2 * side - 1)
                extremes[part][side, size - 1] = scale * limit
                judged = all(row.holds for row in limits.judge(*extremes))
                own = valid_ranges(robot, None, limits, 1.0)[1:]
                at = [robot.nq, robot.nv, 5][:k]
                column = sum(at) + size - 1
                outside = own[column].outside(extremes[part][side, -1])
                assert (judged, not outside) == (good, good)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("limit", "word"),
    [
        ("speed_limit = 0.01", "speed of forearm"),
        ("limits = [-1.601, -1.599]", "position of forearm"),
        ("torque_limit = 0.5", "torque of forearm"),
    ],
)
def test_a_limit_that_the_plant_passes_makes_the_run_invalid(limit, word, rolling, tmp_path):
    old, new = 'name = "forearm"\n', f'name = "forearm"\n{limit}\n'
    assert rolling[1].passed.all()
    assert old in robot_text()
    limited = campaign_of(tmp_path, ROLLING + TICKS, robot_text().replace(old, new))
    result = result_of(limited, [[0.0]])
    assert not result.passed.any()
    assert word in result.invalid[0]
    run = limited.replay([0.0], 0)
    assert any(one.holds is False for one in run.findings(limited.task.tolerances))


MOTOR = """
[[motors]]
name = "forearm motor"
joints = "forearm"
gear = 10.0
"""


@pytest.mark.parametrize(
    ("numbers", "word"),
    [
        ("torque = {most}", ""),  # the plant cuts the torque off, and the world is valid
        ("continuous = {cold}\nthermal_time = 2.0", ""),
        ("continuous = {hot}\nthermal_time = 2.0", "motor forearm motor overheats"),
    ],
)
def test_motors_of_a_campaign_saturate_and_heat_up(numbers, word, rolling, tmp_path):
    peak = float(np.abs(rolling[0].replay([0.0], 0).u[:, -1]).max()) / 10.0
    given = numbers.format(most=0.9 * peak, cold=3.0 * peak, hot=0.2 * peak)
    actuated = [name for name in rolling[0].task.robot.actuated if name != "forearm"]
    text = f"actuated = {actuated}\n{robot_text()}{MOTOR}{given}\n"
    real = ROLLING + TICKS + "\n[imperfections]\n"
    campaign = campaign_of(tmp_path, real, text)
    result = result_of(campaign, [[0.0]])
    run = campaign.replay([0.0], 0)
    assert (result.passed.all(), list(result.invalid)) == (not word, [0] if word else [])
    assert word in result.invalid.get(0, "")
    rows = {row.quantity: row for row in run.findings(campaign.task.tolerances)}
    peak_row = rows["peak torque of forearm motor"]
    if "torque" in numbers:
        assert (peak_row.value, peak_row.holds) == (pytest.approx(0.9 * peak), True)
        assert "the law asks for more" in peak_row.place
    else:
        assert rows["heat of motor forearm motor, largest"].holds == (not word)
        signals = run_signals(run)["heat:forearm motor"]
        assert signals.max() == rows["heat of motor forearm motor, largest"].value


def test_wheels_that_slip_without_a_slip_model_make_the_run_invalid(rolling):
    loose, result = rolling
    assert result.invalid == {}
    none = replace(loose.task.tolerances, constraint=1e-30)
    strict = result_of(Campaign(replace(loose.task, tolerances=none), seed=2), [[0.0]])
    assert "slip" in strict.invalid[0]
    run = loose.replay([0.0], 0)
    largest = float(run.constraint_residual[:-1].max())
    for limit, valid in ((largest, True), (largest * (1 - 1e-12), False)):
        ranges = valid_ranges(run.robot, run.slip, run.joint_limits, limit)
        found = first_invalid(ranges[:1], run_signals(run))
        assert (found is None) is valid


def by_hand(run, names, places):
    """Moments about the edges of three contacts: load times distance of the one across."""
    found = {}
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        a, b, c = (np.append(places[n], 0.0) for n in (i, j, k))
        height = np.linalg.norm(np.cross(b - a, c - a)) / np.linalg.norm(b - a)
        found[frozenset((names[i], names[j]))] = run.wheel_load[:, k] * height
    return found


def test_loads_and_tipping_are_requirements_on_both_sides(slipping):
    campaign, _ = slipping
    run = campaign.replay([0.0], 0)
    names = ("left_wheel", "right_wheel", "front")
    robot = campaign.task.robot
    sides = [robot.bodies[robot.index(name)].placement.translation for name in names[:2]]
    places = [*(np.array(side[:2]) for side in sides), np.array([0.4, 0.0])]
    signals = run_signals(run)
    expected = by_hand(run, names, places)
    edges = [name for name in signals if name.startswith("tipping:")]
    assert len(edges) == 3
    for name in edges:
        pair = frozenset(name.removeprefix("tipping:").split(" to "))
        np.testing.assert_allclose(signals[name], expected[pair], rtol=1e-9)
    least = {name: float(signals[name][1:].min()) for name in (*edges, "load:front")}
    for name, smallest in least.items():
        kind = name.split(":")[0]
        for above, holds in ((smallest - 1e-6, True), (smallest + 1e-6, False)):
            requirement = Requirement(kind, kind, ((name, above, math.inf),), 1.0)
            rows = {key: values[1:] for key, values in signals.items()}
            value = requirement.robustness({name: rows[name]}, len(run.t) - 1, run.dt)
            assert (value > 0.0) is holds


def test_requirements_of_contacts_are_read_and_judged_in_worlds(tmp_path):
    kinds = '[[requirements]]\nkind = "load"\n[[requirements]]\nkind = "tipping"\nabove = 2.0\n'
    campaign = campaign_of(tmp_path, SLIPPING + kinds)
    units = {made.name: (made.unit, made.bounds[0][1]) for made in campaign.task.requirements}
    assert {name: unit for name, unit in units.items() if "load" in name} == {
        f"load {name}": ("N", 0.0) for name in ("left_wheel", "right_wheel", "front")
    }
    assert [bound for name, bound in units.items() if "tipping" in name] == [("N m", 2.0)] * 3
    result = result_of(campaign, [[0.0], [-28.0]])
    assert result.held.tolist() == [[True] * 6, [False] * 6]
    run = campaign.replay([0.0], 0)
    columns = dict(zip([name for name, _ in result.columns], result.values[0], strict=True))
    signals = run_signals(run)
    for name, value in columns.items():
        signal = name.replace(" ", ":", 1)
        rest = signals[signal][1:].min() - units[name][1]
        assert value - 1e-9 <= rest < value + 0.5  # the campaign has the steps in between, too
    loads = dict(zip([name for name, _ in result.signals], result.extremes[0], strict=True))
    assert loads["load:front"] == columns["load front"]
    assert dict(result.signals)["load:front"] == "N"


LOADS = ROLLING + "[plant.slip]\ngrip = 0.8\nloads = 90.0\n"


@pytest.mark.parametrize(
    ("task", "requirement", "field"),
    [
        *((task, f'kind = "{kind}"', "kind") for task in (ROLLING, LOADS)
          for kind in ("load", "tipping")),
        (SLIPPING, 'kind = "load"\ncontact = "rear"', "contact"),
        (SLIPPING, 'kind = "load"\nbelow = 3.0', "below"),
        (SLIPPING, 'kind = "tipping"\nabove = -3.0', "above"),
    ],
)  # fmt: skip
def test_requirements_without_loads_are_refused(task, requirement, field, tmp_path):
    with pytest.raises(DescriptionError) as caught:
        campaign_of(tmp_path, f"{task}[[requirements]]\n{requirement}\n")
    assert caught.value.data["field"] == field


def test_edges_go_around_points_counterclockwise():
    rng = np.random.default_rng(0)
    for _ in range(20):
        points = rng.normal(size=(7, 2))
        edges = contact_edges(points.tolist())
        for (i, j), (following, _) in zip(edges, [*edges[1:], edges[0]], strict=True):
            assert j == following
            way, rest = points[j] - points[i], points - points[i]
            assert (way[0] * rest[:, 1] - way[1] * rest[:, 0] >= -1e-12).all()
