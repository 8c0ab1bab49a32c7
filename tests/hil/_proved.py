"""A short task of the rover's rig with its proof, and changed files.

`python -m tests.hil._proved` proves the task and writes the file in `tests/data`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from concur.io import load_task
from concur.proofs import prove_task
from hil.rig import load_rig
from hil.settings import Rig
from tests.checker._stored import sealed, write

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "data" / "rover_rig_proof.json"
EXAMPLE = ROOT / "examples" / "rover_rig"

STATEMENT = """
[proof]
place = 0.004                  # m
speed = 0.004                  # m/s
heading = 0.002                # rad
masses = 0.002
margin = 0.1
"""


def task_text(statement: str = STATEMENT) -> str:
    """The task of the rig, 0.2 s of it."""
    text = (EXAMPLE / "task.toml").read_text(encoding="utf-8")
    text = text.replace("duration = 60.0", "duration = 0.2")
    text = text.replace("evaluate_after = 12.0", "evaluate_after = 0.1")
    return text.split("\n[proof]")[0] + statement


def proved_rig(
    folder: Path,
    change: Callable[[dict[str, Any]], Any] | None = None,
    task: Callable[[str], str] = str,
    rig: Callable[[str], str] = str,
    statement: str = STATEMENT,
) -> Rig:
    """Rig with a proof in a folder; functions change proof, task and rig file."""
    (folder / "task.toml").write_text(task(task_text(statement)), encoding="utf-8")
    shutil.copy(EXAMPLE / "robot.toml", folder)
    document = json.loads(FILE.read_text(encoding="utf-8"))
    if change is not None:
        change(document)
        document = sealed(document)
    write(folder / "proof.json", document)
    text = (EXAMPLE / "rig.toml").read_text(encoding="utf-8")
    lines = text.splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("certificate"))
    lines[at] = 'proof = "proof.json"'
    (folder / "rig.toml").write_text(rig("\n".join(lines) + "\n"), encoding="utf-8")
    return load_rig(folder / "rig.toml")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "task.toml"
        shutil.copy(EXAMPLE / "robot.toml", name)
        path.write_text(task_text(), encoding="utf-8")
        prove_task(load_task(path)).save(FILE)
        print(FILE)
