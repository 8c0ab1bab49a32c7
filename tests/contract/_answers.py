"""Answers of the commands as named values: `--json` read by the key map `data/keys.json`.

Where an answer is restructured, the key map alone is edited: the values are frozen apart from it.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from concur.cli import main
from tests.contract._frozen import frozen

EXAMPLES = Path(__file__).parents[2] / "examples"

SHORT = (
    (r"(?m)^duration = 2\d\.0", "duration = 1.0"),
    (r"(?m)^dt = .*", "dt = 0.005"),
    (r"(?m)^evaluate_after = [\d.]+", "evaluate_after = 0.5"),
    (r"(?m)^within = [\d.]+", "within = 0.9"),
    (r"(?m)^radius = 0\.15 .*", "radius = 0.2"),
)
"""Changes of the examples that make a run of one second of them."""

TASKS = {"rover.toml": "rover_arm.toml", "floater.toml": "free_floater.toml"}
TASKS |= {"campaign.toml": "rover_campaign.toml"}

BROKEN = 'name = "r"\n[[bodies]]\nname = "base"\njoint = { type = "Plane" }\n'

CASES: dict[str, tuple[str, ...]] = {
    "check a rover": ("check", "rover_arm"),
    "check a floater": ("check", "free_flyer"),
    "check a crawler": ("check", str(EXAMPLES / "hull_crawler.toml")),
    "check a car": ("check", str(EXAMPLES / "drives" / "ackermann_car.toml")),
    "check a task": ("check", "rover.toml"),
    "check a broken robot": ("check", "broken.toml"),
    "check nothing": ("check", "missing.toml"),
    "new rover": ("new", "rover", "mine"),
    "export a rover": ("export", "rover.toml", "--out", "c"),
    "track a rover": ("track", "rover.toml", "--out", "rover"),
    "track a floater": ("track", "floater.toml", "--out", "floater"),
    "compare runs": ("compare", "rover/run.h5", "rover/run.h5"),
    "gains": ("gains", "rover.toml", "--settling", "2", "--torque-limit", "20"),
    "certify a rover": ("certify", "rover.toml", "--out", "proved"),
    "recheck": ("recheck", "proved/proof.json"),
    "verify": ("verify", "campaign.toml", "--samples", "4", "--seed", "3", "--jobs", "1"),
}
"""Commands, in an order in which later ones find the files of earlier ones."""

NEEDS = {"compare runs": "track a rover", "recheck": "certify a rover"}
"""Cases whose files another one writes."""

QUICK = tuple(CASES)[:9]
"""Those that run by default."""


def prepare(folder: Path) -> None:
    """Write the files that the commands name."""
    for name, source in TASKS.items():
        text = (EXAMPLES / source).read_text(encoding="utf-8")
        for pattern, new in SHORT:
            text = re.sub(pattern, new, text)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "broken.toml").write_text(BROKEN, encoding="utf-8")


def run(name: str, folder: Path) -> tuple[int, dict[str, Any]]:
    """Exit status of a command and the named values of its answer.

    Parameters
    ----------
    name : str
        Of the case.
    folder : pathlib.Path
        Where it runs.
    """
    before = Path.cwd()
    os.chdir(folder)
    try:
        done = CliRunner().invoke(main, [*CASES[name], "--json"])
    finally:
        os.chdir(before)
    keys = frozen("keys").get(CASES[name][0], {})
    if done.exit_code == 2:
        return 2, {}
    answer = json.loads(done.stdout)
    return done.exit_code, {key: look_up(answer, path) for key, path in keys.items()}


def look_up(answer: Any, path: str) -> Any:
    """Value at a path of an answer.

    Parts are keys or indices, `key=value` for the first entry of a list in which a key has that
    value and `key==value` for all of them, `*` for all entries and `#` for their number. None where
    there is none.
    """
    for k, part in enumerate(parts := path.split("/")):
        if answer is None:
            return None
        if part == "#":
            return len(answer)
        if part == "*":
            rest = "/".join(parts[k + 1 :])
            return [look_up(entry, rest) if rest else entry for entry in answer]
        if isinstance(answer, list) and "==" in part:
            key, _, value = part.partition("==")
            rest = "/".join(["*", *parts[k + 1 :]])
            return look_up([entry for entry in answer if str(entry.get(key)) == value], rest)
        if isinstance(answer, list) and "=" in part:
            key, _, value = part.partition("=")
            answer = next((entry for entry in answer if str(entry.get(key)) == value), None)
        elif isinstance(answer, list):
            answer = answer[int(part)] if int(part) < len(answer) else None
        else:
            answer = answer.get(part)
    return answer


ROUNDING = 1e-7
"""Size below which a number of an answer is rounding, in its unit."""


def differences(found: Any, wanted: Any, tolerance: float = 1e-6, where: str = "") -> list[str]:
    """Where two values differ: numbers by more than rounding, all else at all."""
    if isinstance(wanted, dict):
        names = wanted.keys() | found.keys()
        pairs = [(name, found.get(name), wanted.get(name)) for name in sorted(names)]
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = [(str(k), *both) for k, both in enumerate(zip(found, wanted, strict=True))]
    else:
        numbers = all(type(x) in (int, float) for x in (found, wanted))
        alike = (
            abs(found - wanted) <= tolerance * max(abs(found), abs(wanted)) + ROUNDING
            if numbers
            else found == wanted and isinstance(found, bool) == isinstance(wanted, bool)
        )
        return [] if alike else [f"{where}: {found!r}, expected {wanted!r}"]
    return [d for name, a, b in pairs for d in differences(a, b, tolerance, f"{where}/{name}")]
