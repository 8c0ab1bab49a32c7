"""Facts about a task that reports and tables show."""

from __future__ import annotations

from pathlib import Path

import pytest

from concur.io import load_task, task_facts

TASK = """
name = "tumbling"
robot = "free_flyer"
momentum = [1.0, 0.0, 0.0, 0.0, 0.0, 2.0]
[[outputs]]
name = "hand"
body = "tool"
group = "SO3"
stiffness = 4.0
damping = 4.0
[reference.hand]
kind = "hold"
point = [0.0, 0.0, 0.0, 1.0]
[servo]
use_measured_velocity = {measured}
[simulation]
duration = 1.0
[plant]
momentum = [5.0, 0.0, 0.0, 0.0, 0.0, 7.0]
"""


def _momentum(path: Path, measured: bool) -> str:
    path.write_text(TASK.replace("{measured}", str(measured).lower()), encoding="utf-8")
    task = load_task(path)
    return dict(task_facts(task))["Momentum"]


def test_measured_momentum_is_the_one_the_plant_starts_with(tmp_path: Path) -> None:
    assumed = _momentum(tmp_path / "task.toml", False)
    assert assumed.startswith("(1, 0, 0) kg m/s, (0, 0, 2) kg m^2/s about the origin")
    measured = _momentum(tmp_path / "task.toml", True)
    assert measured.startswith("measured; (5, 0, 0) kg m/s, (0, 0, 7) kg m^2/s")


BENCH = """
name = "bench"
actuated = ["arm"]
[[bodies]]
name = "floor"
joint = { type = "Fixed" }
[[bodies]]
name = "arm"
parent = "floor"
joint = { type = "Revolute", axis = [0, 0, 1] }
inertia = { mass = 1.0, com = [0.3, 0, 0], moments = [0.1, 0.1, 0.1] }
[[bodies]]
name = "puck"
parent = "floor"
joint = { type = "Cylindrical", axis = [0, 0, 1] }
inertia = { mass = 1.0, moments = [0.1, 0.1, 0.2] }
[[bodies]]
name = "disc"
parent = "floor"
joint = { type = "Revolute", axis = [0, 0, 1] }
inertia = { mass = 1.0, moments = [0.1, 0.1, 0.2] }
[[bodies]]
name = "cart"
parent = "floor"
joint = { type = "Prismatic", axis = [1, 0, 0] }
inertia = { mass = 1.0, moments = [0.1, 0.1, 0.2] }
"""
STAGED = """
name = "spinning"
robot = "bench.toml"
stages = { puck = [0.3, -0.2], disc = 0.5, cart = 0.7 }
[[outputs]]
name = "turn"
body = "arm"
group = "SO2"
stiffness = 4.0
damping = 4.0
[reference.turn]
kind = "hold"
point = [0.0]
[simulation]
duration = 1.0
"""


def test_momenta_of_stages_have_the_unit_of_each_component(tmp_path: Path) -> None:
    (tmp_path / "bench.toml").write_text(BENCH, encoding="utf-8")
    (tmp_path / "task.toml").write_text(STAGED, encoding="utf-8")
    task = load_task(tmp_path / "task.toml")
    shown = dict(task_facts(task))["Momenta of further stages"]
    # A cylindrical joint slides and turns, in this order.
    assert shown == "`puck` 0.3 N s, -0.2 N m s; `disc` 0.5 N m s; `cart` 0.7 N s"


NOISE = "[imperfections]\ncoulomb = 0.1\n"
WORLD = "[world]\nnumber = 1\nseed = 2\n[world.mass]\nhand = 0.1\n"


@pytest.mark.parametrize(
    ("tables", "more"),
    [
        ("", ""),
        (NOISE, ", with [imperfections] of the task"),
        (NOISE + WORLD, ", with [imperfections] and [world] of the task"),
    ],
)
def test_the_plant_is_shown_with_the_tables_that_change_it(
    tmp_path: Path, tables: str, more: str
) -> None:
    text = TASK.replace("{measured}", "false").split("[plant]")[0] + tables
    (tmp_path / "task.toml").write_text(text, encoding="utf-8")
    task = load_task(tmp_path / "task.toml")
    assert dict(task_facts(task))["Plant"] == f"the robot of the servo's model{more}"
