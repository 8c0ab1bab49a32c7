"""Tables of imperfections, requirements, uncertainty and worlds, and their errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from concur.errors import ConcurError, DescriptionError
from concur.io import load_task
from concur.worlds import Quantity
from tests.io.test_task import TASK, altered, robot_text, write

IMPERFECT = """
[imperfections]
ripple = 0.02
momentum_error = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]

[imperfections.viscous]
turret = 0.2

[imperfections.lag]
left_wheel = 0.005

[imperfections.timing]
latency = 0.002
jitter = 0.001

[[imperfections.wrenches]]
name = "push"
body = "chassis"
force = [3.0, 0.0, 0.0]
start = 1.0
end = 1.5

[imperfections.gravity_gradient]
rate = 1e-3
"""

UNCERTAIN = """
[uncertainty.mass]
forearm = [-0.1, 0.3]
"*" = { relative = [-0.2, 0.1] }

[uncertainty.com]
turret = [[-0.01, 0.01], 0, { normal = [0.0, 0.02] }]
forearm = [-0.01, 0.02]

[uncertainty.viscous]
turret = { relative = true, triangular = [-0.5, 0.0, 1.0] }

[uncertainty.timing]
latency = { choice = [0.0, 0.001] }

[uncertainty.force]
push = [-1.0, 1.0]

[uncertainty.initial_q]
chassis = [[-0.1, 0.1], 0, [-0.2, 0.2]]

[uncertainty.initial_s]
left_wheel = { relative = [-0.1, 0.1] }

[uncertainty.reference.hand]
radius = { relative = [-0.5, 0.5] }
center = [-0.02, 0.02]
"""

WORLD = """
[world]
number = 17
seed = 3

[world.mass]
forearm = 0.2

[world.com]
turret = [0.01, 0.0, -0.02]

[world.reference.hand]
radius = 0.01
"""

REQUIREMENTS = """
[plant.slip]
grip = 0.8
loads = 150.0

[[requirements]]
kind = "settle"
output = "hand"
within = 3.0
radius = 0.02

[[requirements]]
kind = "error"
name = "near"
output = "base"
below = 0.5
after = 1.0

[[requirements]]
kind = "torque"
control = "turret"
below = 8.0

[[requirements]]
kind = "torque"
name = "any"
below = 50.0

[[requirements]]
kind = "speed"
joint = "left_wheel"
below = 9.0

[[requirements]]
kind = "margin"
above = 0.05

[[requirements]]
kind = "joint"
joint = "forearm"
interval = [-2.5, 0.5]

[[requirements]]
kind = "base"
box = [[-1.0, 9.0], [-1.0, 1.0]]

[[requirements]]
kind = "slip"
wheel = "left_wheel"
below = 0.01

[[requirements]]
kind = "ticks"
"""


def law(quantity: Quantity) -> tuple[str, float, float]:
    """Name of a distribution, and its ends."""
    return (quantity.distribution.dist.name, *quantity.support)


def test_uncertain_quantities_are_read(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, TASK + IMPERFECT + UNCERTAIN))
    found = {quantity.label: quantity for quantity in task.uncertainty.quantities}
    assert law(found["mass.forearm"]) == ("uniform", -0.1, 0.3)
    assert law(found["mass.chassis"]) == ("uniform", -6.0, 3.0)
    masses = [label for label in found if label.startswith("mass.")]
    assert masses == [f"mass.{b}" for b in ("forearm", "chassis")] + [
        f"mass.{b}" for b in ("left_wheel", "right_wheel", "turret", "upper_arm")
    ]
    assert [label for label in found if "com.turret" in label] == ["com.turret[0]", "com.turret[2]"]
    assert law(found["com.turret[2]"]) == ("norm", -np.inf, np.inf)
    assert found["com.turret[2]"].distribution.std() == 0.02
    assert found["com.turret[2]"].size == 3
    assert law(found["com.forearm[1]"]) == ("uniform", -0.01, 0.02)
    assert law(found["viscous.turret"]) == ("triang", -0.1, 0.2)
    assert found["viscous.turret"].distribution.ppf(1.0 / 3.0) == pytest.approx(0.0, abs=1e-15)
    assert found["viscous.turret"].unit == "N m s/rad"
    assert law(found["timing.latency"])[1:] == (0.0, 0.001)
    assert found["timing.latency"].distribution.ppf([0.49, 0.51]).tolist() == [0.0, 0.001]
    assert law(found["force.push[2]"]) == ("uniform", -1.0, 1.0)
    assert law(found["initial_q.chassis[2]"]) == ("uniform", -0.2, 0.2)
    assert "initial_q.chassis[1]" not in found
    assert law(found["initial_s.left_wheel"]) == ("uniform", -0.2, 0.2)
    assert law(found["reference.hand.radius"]) == ("uniform", -0.035, 0.035)
    assert found["reference.hand.center[1]"].size == 3
    assert task.imperfections is not None
    assert task.imperfections.values("viscous", task.robot)[2] == 0.2
    assert task.imperfections.latency == 0.002
    assert task.imperfections.disturbances[0].end == 1.5  # type: ignore[union-attr]
    assert task.world is None


def test_a_world_is_read(tmp_path: Path) -> None:
    world = load_task(write(tmp_path, TASK + WORLD)).world
    assert world is not None
    assert (world.number, world.seed) == (17, 3)
    assert world.deviations["reference"] == {"hand": {"radius": 0.01}}
    assert world.values["com", "turret"].tolist() == [[0.01, 0.0, -0.02]]
    assert world.values["mass", "forearm"].tolist() == [0.2]


def test_requirements_are_read(tmp_path: Path) -> None:
    requirements = load_task(write(tmp_path, TASK + REQUIREMENTS)).requirements
    load_task(write(tmp_path, TASK + entry(REQUIREMENTS, "within = 3.0", "within = 19.99")))
    found = {requirement.name: requirement for requirement in requirements}
    names = ["left_wheel", "right_wheel", "turret", "upper_arm", "forearm"]
    assert list(found) == [
        *("settle hand", "near", "torque turret"),
        *(f"any {name}" for name in names),
        *("speed left_wheel", "margin", "joint forearm", "base", "slip left_wheel", "ticks"),
    ]
    inf = np.inf
    for name, bounds, scale, after in (
        ("settle hand", (("error:hand", -inf, 0.02),), 0.02, 3.0),
        ("near", (("error:base", -inf, 0.5),), 0.5, 1.0),
        ("torque turret", (("torque:turret", -8.0, 8.0),), 8.0, 0.0),
        ("any turret", (("torque:turret", -50.0, 50.0),), 50.0, 0.0),
        ("speed left_wheel", (("speed:left_wheel", -9.0, 9.0),), 9.0, 0.0),
        ("margin", (("margin", 0.05, inf),), 0.05, 0.0),
        ("joint forearm", (("position:forearm", -2.5, 0.5),), 1.5, 0.0),
        ("base", (("base:x", -1.0, 9.0), ("base:y", -1.0, 1.0)), 1.0, 0.0),
        ("slip left_wheel", (("slip:left_wheel", -inf, 0.01),), 0.01, 0.0),
        ("ticks", (), 1.0, 0.0),
    ):
        made = found[name]
        assert (made.bounds, made.scale, made.after) == (bounds, scale, after)


def test_tolerances_and_limits_are_requirements_without_any(tmp_path: Path) -> None:
    found = {made.name: made for made in load_task(write(tmp_path, TASK)).requirements}
    assert list(found) == ["settle base", "settle hand", "margin", "ticks"]
    assert found["settle hand"].bounds == (("error:hand", -np.inf, 1e-6),)
    assert abs(found["settle hand"].after - 19.99) < 1e-12
    limits = "limits = [-1.0, 0.5]\nspeed_limit = 2.0\ntorque_limit = 5.0"
    place = "placement = { translation = [0.4, 0.0, 0.0] }"
    write(tmp_path, altered(place, f"{place}\n{limits}", robot_text()), "robot.toml")
    limited = load_task(write(tmp_path, altered('"rover_arm"', '"robot.toml"')))
    found = {made.name: made for made in limited.requirements}
    assert found["joint turret"].bounds == (("position:turret", -1.0, 0.5),)
    assert found["speed turret"].bounds == (("speed:turret", -2.0, 2.0),)
    assert found["torque turret"].bounds == (("torque:turret", -5.0, 5.0),)
    assert len(found) == 7


def entry(tables: str, old: str, new: str) -> str:
    assert tables.count(old) >= 1, f"`{old}` is not in the text"
    return tables.replace(old, new, 1)


FAULTS = [
    # old and new text, table and field of the error, words of it
    ("[uncertainty.mass]", "[uncertainty.weight]", "[uncertainty]", "weight", "a kind of quantity"),
    ("forearm = [-0.1, 0.3]", "hand = [-0.1, 0.3]", "[uncertainty.mass]", "hand", "forearm"),
    ("[-0.1, 0.3]", "[0.3, -0.1]", "[uncertainty.mass]", "forearm", "low below high"),
    ("[-0.1, 0.3]", "0.3", "[uncertainty.mass]", "forearm", "an interval"),
    ("[-0.1, 0.3]", "[-0.1, inf]", "[uncertainty.mass]", "forearm", "an interval"),
    ("[-0.1, 0.3]", "[0.1, 0.2, 0.3]", "[uncertainty.mass]", "forearm", "an interval"),
    ("[-0.1, 0.3]", "{ uniform = [0, 1] }", "[uncertainty.mass]", "forearm", "`triangular`"),
    ("[-0.1, 0.3]", "{ normal = [0.0, -1.0] }", "[uncertainty.mass]", "forearm", "above zero"),
    ("[-0.1, 0.3]", "{ choice = [1, 1] }", "[uncertainty.mass]", "forearm", "differ"),
    (
        "[-0.1, 0.3]",
        "{ relative = [0, 1], interval = [0, 2] }",
        "[uncertainty.mass]",
        "forearm",
        "an interval",
    ),
    ("{ relative = [-0.2, 0.1] }", "{ relative = 0.1 }", "[uncertainty.mass]", "*", "an interval"),
    ("[[-0.01, 0.01], 0,", "[[-0.01, 0.01],", "[uncertainty.com]", "turret", "a list with 3"),
    ("forearm = [-0.01, 0.02]", "forearm = [0, 0, 0]", "[uncertainty.com]", "forearm", "uncertain"),
    (
        "viscous]\nturret",
        "viscous]\nforearm",
        "[uncertainty.viscous]",
        "turret",
        "other than zero",
    ),
    ("left_wheel = { rel", "chassis = { rel", "[uncertainty.initial_s]", "chassis", "left_wheel"),
    (
        "chassis = [[-0.1, 0.1], 0, [-0.2, 0.2]]",
        "chassis = { relative = [-0.1, 0.1] }",
        "[uncertainty.initial_q]",
        "chassis",
        "uncertain",
    ),
    (
        "[uncertainty.reference.hand]",
        "[uncertainty.reference.arm]",
        "[uncertainty.reference]",
        "arm",
        "an output",
    ),
    (
        "radius = { rel",
        "period = 1\nradius = { rel",
        "[uncertainty.reference.hand]",
        "period",
        "an",
    ),
    ("radius = { rel", "kind = { rel", "[uncertainty.reference.hand]", "kind", "radius"),
    (
        "viscous]\nturret = {",
        "torque_limit]\nturret = [-1, 1]\n[uncertainty.viscous]\nturret = {",
        "[uncertainty.torque_limit]",
        "turret",
        "finite nominal value",
    ),
    (
        "viscous]\nturret = {",
        "radius]\nforearm = [-1, 1]\n[uncertainty.viscous]\nturret = {",
        "[uncertainty.radius]",
        "forearm",
        "left_wheel",
    ),
    (
        "viscous]\nturret = {",
        "momentum]\nlinear = [-1, 1]\n[uncertainty.viscous]\nturret = {",
        "[uncertainty]",
        "momentum",
        "a kind of quantity",
    ),
    ("turret = 0.2", "turret = -0.2", "[imperfections]", "viscous", "zero or more"),
    ("turret = 0.2", "hand = 0.2", "[imperfections]", "viscous", "left_wheel"),
    ("latency = 0.002", "delay = 0.002", "[imperfections.timing]", "delay", "`latency`"),
    ("latency = 0.002", "latency = -0.1", "[imperfections.timing]", "latency", "zero or more"),
    ("ripple = 0.02", "gears = 0.02", "[imperfections]", "gears", "`ripple`"),
    (
        'body = "chassis"\nforce',
        'body = "hull"\nforce',
        '[[imperfections.wrenches]] "push"',
        "body",
        "chassis",
    ),
    ("end = 1.5", "end = 0.5", '[[imperfections.wrenches]] "push"', "end", "after 1"),
    ("rate = 1e-3", "rate = -1.0", "[imperfections.gravity_gradient]", "rate", "zero or more"),
    ("number = 17", "number = -1", "[world]", "number", "whole number"),
    ("seed = 3", "seed = 0.5", "[world]", "seed", "whole number"),
    ("forearm = 0.2", "forearm = [0.2]", "[world.mass]", "forearm", "a number"),
    ("forearm = 0.2", 'forearm = "0.2"', "[world.mass]", "forearm", "a number"),
    ("forearm = 0.2", "hand = 0.2", "[world.mass]", "hand", "forearm"),
    ("0.0, -0.02]", "0.0]", "[world.com]", "turret", "3 numbers"),
    ("[world.mass]\nforearm = 0.2", "[[world.mass]]\nforearm = 0.2", "[world]", "mass", "a table"),
    ('kind = "settle"', 'kind = "settles"', "[[requirements]] number 1", "kind", "settle"),
    ('output = "hand"', 'output = "arm"', "[[requirements]] number 1", "output", "hand"),
    ("within = 3.0", "", "[[requirements]] number 1", "within", "no value"),
    ("within = 3.0", "within = 20.0", "[[requirements]] number 1", "within", "tick at 19.99 s"),
    ("radius = 0.02", "", "[[requirements]] number 1", "radius", "no value"),
    ("radius = 0.02", "angle = 0.02", "[[requirements]] number 1", "angle", "`radius`"),
    ("below = 0.5", "radius = 0.5", '[[requirements]] "near"', "radius", "one of `kind`, `name`"),
    ("below = 0.5", "below = -0.5", '[[requirements]] "near"', "below", "above zero"),
    ('control = "turret"', 'control = "arm"', "[[requirements]] number 3", "control", "turret"),
    ('name = "any"\nbelow = 50.0', "", "[[requirements]] number 4", "below", "robot file"),
    ('name = "any"', "", "[[requirements]] number 4", "name", "unique name"),
    ('joint = "left_wheel"', 'joint = "wheel"', "[[requirements]] number 5", "joint", "turret"),
    ('joint = "forearm"\n', "", "[[requirements]] number 7", "joint", "for the interval"),
    ("[-2.5, 0.5]", "[0.5, -2.5]", "[[requirements]] number 7", "interval", "below an upper"),
    ("interval = [-2.5, 0.5]", "", "[[requirements]] number 7", "interval", "robot file"),
    ("9.0], [-1.0, 1.0]]", "9.0]]", "[[requirements]] number 8", "box", "2 intervals"),
    ("[[-1.0, 9.0]", "[[9.0, -1.0]", "[[requirements]] number 8", "box", "below an upper"),
    (
        'wheel = "left_wheel"',
        'wheel = "turret"',
        '[[requirements]] "turret"',
        "wheel",
        "left_wheel",
    ),
    (
        "[plant.slip]\ngrip = 0.8\nloads = 150.0\n",
        "",
        '[[requirements]] "left_wheel"',
        "kind",
        "[plant.slip]",
    ),
    ("within = 3.0", "within = 19.9901", "[[requirements]] number 1", "within", "tick at 19.99 s"),
]


@pytest.mark.parametrize("fault", FAULTS, ids=range(len(FAULTS)))
def test_a_fault_names_file_table_and_field(fault: tuple[str, ...], tmp_path: Path) -> None:
    old, new, table, field, words = fault
    for tables in (IMPERFECT + UNCERTAIN, WORLD, REQUIREMENTS):
        if old in tables:
            path = write(tmp_path, TASK + entry(tables, old, new))
            break
    with pytest.raises(ConcurError) as caught:
        load_task(path)
    error = caught.value
    assert (error.file, error.table, error.field) == (str(path), table, field), str(error)
    assert words in str(error)
    assert error.cure


SLIP = """
[plant.slip]
grip = { left_wheel = 0.8, right_wheel = 0.7 }
loads = 150.0

[uncertainty.grip]
left_wheel = { relative = [-0.5, 0.0] }

[uncertainty.rotation]
turret = [-0.01, 0.01]
"""


def test_start_velocities_of_all_joints_are_those_that_are_no_result(tmp_path: Path) -> None:
    expected = "shape velocities: left_wheel, right_wheel, turret, upper_arm, forearm"
    for entries, others in (
        ('"*" = [-0.1, 0.1]', "also chassis[vx], chassis[vy], chassis[omega], which"),
        ('"chassis[vx]" = [-0.1, 0.1]', "also chassis[vx], which"),
    ):
        task = load_task(write(tmp_path, f"{TASK}[uncertainty.initial_s]\n{entries}\n"))
        with pytest.raises(DescriptionError) as caught:
            task.loop(task.uncertainty.values(np.zeros((1, task.uncertainty.size))))
        error = caught.value
        assert (error.file, error.table) == (str(task.path), "[uncertainty.initial_s]")
        assert expected in error.expected
        assert others in error.came
        assert '"*" stands for all' in error.cure
    # Shares of zero are skipped: one shape velocity of the task is not zero.
    given = '[uncertainty.initial_s]\n"*" = { relative = [-0.1, 0.1] }\n'
    found = load_task(write(tmp_path, TASK + given)).uncertainty
    assert found.labels == ("initial_s.left_wheel",)


def test_wheels_may_slip(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, TASK + SLIP))
    assert task.slip is not None
    assert task.slip.grip == (0.8, 0.7)
    assert law(task.uncertainty.quantities[0]) == ("uniform", -0.4, 0.0)
    assert task.uncertainty.size == 4
    for old, new, table, field in (
        ("left_wheel = 0.8", "wheel = 0.8", "[plant.slip]", "grip"),
        ("loads = 150.0", "", "[plant.slip]", "supports"),
        ("grip = {", "weight = 3.0\ngrip = {", "[plant.slip]", "weight"),
        ("left_wheel = { rel", "turret = { rel", "[uncertainty.grip]", "turret"),
    ):
        with pytest.raises(ConcurError) as caught:
            load_task(write(tmp_path, TASK + entry(SLIP, old, new)))
        assert (caught.value.table, caught.value.field) == (table, field), str(caught.value)
    with pytest.raises(DescriptionError, match="a kind of quantity"):
        load_task(write(tmp_path, TASK + "[uncertainty.grip]\nleft_wheel = [-0.1, 0.1]\n"))


def test_many_worlds_and_one_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match=r"\[uncertainty\] for many worlds.*both"):
        load_task(write(tmp_path, TASK + IMPERFECT + UNCERTAIN + WORLD))
