"""Facts about a task that reports and tables show."""

from __future__ import annotations

from pathlib import Path

from concur.cli._facts import task_facts
from concur.formats import load_task

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
measured = {measured}
[simulation]
duration = 1.0
[plant]
momentum = [5.0, 0.0, 0.0, 0.0, 0.0, 7.0]
"""


def _momentum(path: Path, measured: bool) -> str:
    path.write_text(TASK.replace("{measured}", str(measured).lower()), encoding="utf-8")
    task = load_task(path)
    return dict(task_facts(task, task.servo()))["Momentum"]


def test_measured_momentum_is_the_one_the_plant_starts_with(tmp_path: Path) -> None:
    assumed = _momentum(tmp_path / "task.toml", False)
    assert assumed.startswith("(1, 0, 0) kg m/s, (0, 0, 2) kg m^2/s about the origin")
    measured = _momentum(tmp_path / "task.toml", True)
    assert measured.startswith("measured; (5, 0, 0) kg m/s, (0, 0, 7) kg m^2/s")
