"""Writer of one world of a campaign as a task file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from concur.files import read_text, replace_files
from concur.worlds import World


def write_world(task: Path, path: Path, world: World) -> None:
    """Copy a task file with a table [world] in place of [uncertainty]; all else stays as written.

    Robot files, the file of a law and that of a plan are named relative to the folder of the copy.
    """
    import tomlkit

    document: Any = tomlkit.parse(read_text(task, "a task file", "Write the task first."))
    for name in ("uncertainty", "world"):
        if name in document:
            del document[name]

    def moved(name: str) -> str:
        file = task.parent / name
        return Path(os.path.relpath(file, path.parent)).as_posix() if file.exists() else name

    for table, field in ((document, "robot"), (document.get("plant", {}), "file")):
        if field in table:
            table[field] = moved(table[field])
    if "law" in document:
        file, colon, name = document["law"]["kind"].rpartition(":")
        document["law"]["kind"] = (moved(file) if file else "") + colon + name
    if "plan" in document:
        document["plan"]["file"] = moved(document["plan"].get("file", f"{task.stem}.plan.json"))
    document["world"] = _table({"number": world.number, "seed": world.seed, **world.deviations})
    replace_files({path: tomlkit.dumps(document).encode()})


def _table(values: dict[str, Any]) -> Any:
    import tomlkit

    table = tomlkit.table()
    for name, value in values.items():
        table.add(name, _table(value) if isinstance(value, dict) else value)
    return table
