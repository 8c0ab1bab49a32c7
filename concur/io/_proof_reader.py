"""Reader of robot and task in the file of a proof."""

from __future__ import annotations

import functools
import tempfile
import tomllib
from pathlib import Path
from typing import NoReturn

from concur.errors import DescriptionError
from concur.files import confined
from concur.io._proof_task import ROBOT, proof_task
from concur.io._robot import load
from concur.io._task import Task, load_task
from concur.writers import to_toml

LARGEST = 30
"""Most bodies of a robot in the file of a proof."""


def load_proof_task(robot: str, task: str) -> Task:
    """Read the robot and the task in the file of a proof.

    Nothing but the two texts is read.

    Parameters
    ----------
    robot, task : str
        Texts of a robot file and of a task file, as `Mechanism.save` and `Task.proof_text` write
        them.

    Returns
    -------
    Task
        The task, without a statement.

    Raises
    ------
    ConcurError
        If a text is invalid, or has entries that have no effect on law, reference and start.
    """
    return _read(robot, task)


@functools.lru_cache(maxsize=1)
def _read(robot: str, task: str) -> Task:
    """Read the task; a command that reads a file twice has its robot and law once."""
    with tempfile.TemporaryDirectory(prefix="concur-proof-") as name:
        folder = Path(name)
        (folder / ROBOT).write_text(robot, encoding="utf-8")
        (folder / "task.toml").write_text(task, encoding="utf-8")
        with confined(folder):
            found = load(folder / ROBOT)
            if len(found.bodies) > LARGEST:
                _refuse("robot", f"at most {LARGEST} bodies", str(len(found.bodies)))
            made = load_task(folder / "task.toml")
    if made.robot != found or made.robot_file != ROBOT:
        _refuse("task", f'robot = "{ROBOT}"', "another robot")
    for text, own, entry in ((robot, to_toml(found), "robot"), (task, proof_task(made), "task")):
        if tomllib.loads(text) != tomllib.loads(own):
            _refuse(entry, "the text that concur writes", "a text with other entries")
    return made


def _refuse(entry: str, expected: str, came: str) -> NoReturn:
    raise DescriptionError(
        f"proof of a task, `{entry}`",
        expected=expected,
        came=came,
        cure="Write it again with `TaskProof.save`.",
    )
