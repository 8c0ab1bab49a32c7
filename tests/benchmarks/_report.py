"""The table and the page that shows it."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks._timing import Measured

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
BEGIN = "<!-- begin: written by `python -m tests.benchmarks --report` -->"
END = "<!-- end -->"
LIBRARIES = ("casadi", "numpy", "scipy", "pin", "mujoco")


def facts() -> str:
    """Machine and libraries, in one sentence."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), one thread; "
        f"{platform.python_implementation()} {platform.python_version()}, {libraries}."
    )


def table(measured: list[Measured]) -> str:
    """All comparisons as a Markdown table."""
    lines = [
        "| job | done by | median | ours / Pinocchio | ours / MuJoCo |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for result in measured:
        job, per = result.comparison.job, result.comparison.per
        peers = {c.library: c for c in result.comparison.contenders if c.library}
        for contender in result.comparison.contenders:
            time = duration(result.median(contender)) + (f" / {per}" if per else "")
            cells = [job, contender.name, time]
            for library in ("Pinocchio", "MuJoCo"):
                if contender.library or library not in peers:
                    cells.append("")
                    continue
                middle, low, high = result.ratio(contender, peers[library])
                cells.append(f"**{middle:.2f}** ({low:.2f} to {high:.2f})")
            lines.append(f"| {' | '.join(cells)} |")
            job = ""
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """Three digits and a unit: "7.12 µs"."""
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def rewritten(page: str, text: str) -> str:
    """Return the page with the text between the markers replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has no lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def with_section(page: str, title: str, text: str) -> str:
    """Return the page with one section between the markers replaced, or added as their last."""
    before, begin, rest = page.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has no lines {BEGIN!r} and {END!r}")
    head, *sections = re.split(r"^(?=## )", inside, flags=re.MULTILINE)
    heading = f"## {title}\n"
    if not any(section.startswith(heading) for section in sections):
        sections[-1] += "\n"
        sections.append(heading)
    for k, section in enumerate(sections):
        if section.startswith(heading):
            last = k == len(sections) - 1
            sections[k] = f"{heading}\n{text}\n" + ("" if last else "\n")
    return f"{before}{begin}{head}{''.join(sections)}{end}{after}"
