"""The table and the page that shows it."""

from __future__ import annotations

import math
import os
import platform
import re
import textwrap
from importlib.metadata import version
from pathlib import Path

from concur.codegen._compiler import FLAGS as OURS
from concur.codegen._compiler import find_compiler
from tests.benchmarks._builds import Build
from tests.benchmarks._contender import Contender
from tests.benchmarks._inner import FLAGS as THEIRS
from tests.benchmarks._timing import Measured

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
BEGIN = "<!-- begin: written by `python -m tests.benchmarks --report` -->"
END = "<!-- end -->"
README = Path(__file__).parents[2] / "README.md"
QUOTE = "<!-- speed: written by `python -m tests.benchmarks --report` -->"
MISSING = "not measured"
LIBRARIES = ("casadi", "numpy", "scipy", "pin", "mujoco")


def facts() -> str:
    """Machine, libraries and flags of the compilers, in three sentences."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    compiler = find_compiler()
    compiled = "interpreted, for lack of a compiler"
    if compiler is not None:
        name = compiler.identity.splitlines()[0]
        compiled = f"{name}, `-O3 {' '.join(flag for flag in OURS if flag != '-w')}` where short"
    told = " ".join(flag for flag in THEIRS if flag.startswith(("-std", "-O", "-march", "-DN")))
    return (
        f"{os.cpu_count()} cores ({platform.machine()}), one thread; "
        f"{platform.python_implementation()} {platform.python_version()}, {libraries}. "
        f"Ours: {compiled}. Pinocchio's headers: g++ `{told}`."
    )


COLUMNS = {"Pinocchio": "Pinocchio", "MuJoCo": "MuJoCo", "C++": "Pinocchio's headers"}
"""Heads of the columns of ratios, by the peers."""


def table(measured: list[Measured]) -> str:
    """All comparisons as a Markdown table, with a column for each peer that is in one."""
    known = {c.library for result in measured for c in result.comparison.contenders}
    columns = [library for library in COLUMNS if library in known]
    heads = ["job", "done by", "median", *(f"ours / {COLUMNS[library]}" for library in columns)]
    lines = [f"| {' | '.join(heads)} |", f"| --- | --- | ---: |{' ---: |' * len(columns)}"]
    for result in measured:
        job, per = result.comparison.job, result.comparison.per
        peers = {c.library: c for c in result.comparison.contenders if c.library}
        for contender in result.comparison.contenders:
            time = duration(result.median(contender)) + (f" / {per}" if per else "")
            cells = [job, contender.name, time]
            for library in columns:
                if contender.library or library not in peers:
                    cells.append("")
                    continue
                middle, low, high = result.ratio(contender, peers[library])
                found = f"**{middle:.2f}** ({low:.2f} to {high:.2f})"
                cells.append(MISSING if math.isnan(middle) else found)
            lines.append(f"| {' | '.join(cells)} |")
            job = ""
    return "\n".join(lines)


def functions_table(measured: list[tuple[str, Measured, int]]) -> str:
    """Single functions of one robot: quantity, times, length of our graph."""
    lines = [
        "| function | ours | ours, in place | over Pinocchio | over MuJoCo | ours, in C "
        "| Pinocchio, in C++ | instructions |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for quantity, result, instructions in measured:
        ours, place, inner, python, headers, mujoco = result.comparison.contenders
        cells = [
            quantity,
            duration(result.median(ours)),
            duration(result.median(place)),
            beside(result, ours, python),
            beside(result, ours, mujoco),
            duration(result.median(inner)),
            beside(result, inner, headers),
            str(instructions),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def laws_table(measured: list[tuple[Measured, int]]) -> str:
    """Whole laws of many robots: times, and lengths of our graphs."""
    lines = [
        "| law | ours | over Pinocchio | ours, in C | from Python / in C | instructions |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for result, instructions in measured:
        ours, inner, *peers = result.comparison.contenders
        cells = [
            result.comparison.job,
            duration(result.median(ours)),
            beside(result, ours, peers[0]) if peers else "",
            duration(result.median(inner)),
            f"{result.ratio(ours, inner)[0]:.2f}",
            str(instructions),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def beside(result: Measured, ours: Contender, peer: Contender) -> str:
    """Time of a peer, and ours over it."""
    if math.isnan(result.median(peer)):
        return MISSING
    return f"{duration(result.median(peer))} (**{result.ratio(ours, peer)[0]:.2f}**)"


def builds_table(builds: list[Build]) -> str:
    """Times of builds as a Markdown table."""
    lines = [
        "| robot | freedoms | instructions | graph | C written | compiled | all, cache empty "
        "| all, from the cache |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for build in builds:
        times = build.graph, build.written, build.built, build.whole, build.again
        cells = build.robot, str(build.freedoms), str(build.instructions), *map(duration, times)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def factors_table(laws: list[Measured], loop: Measured) -> str:
    """How many times faster ours is, for robots with and without structural zeros."""
    rows = [
        ("`tick.run()` from Python, numbers in place, than the law over Pinocchio", 5, 2),
        ("tick from Python, than the law over Pinocchio in Python", 5, 0),
        ("tick from Python, than the law over MuJoCo in Python", 6, 0),
        ("tick in a loop in C, than the law over Pinocchio's headers in C++", 7, 3),
        ("interpreted tick, than the law over Pinocchio in Python", 5, 4),
        ("tick in a loop in C, than from Python", 0, 3),
        ("tick in a loop in C, than `tick.run()` from Python", 2, 3),
    ]
    lines = ["| times faster | free-flyer | without structural zeros |", "| --- | ---: | ---: |"]
    for what, slow, fast in rows:
        found = [
            _factor(law, law.comparison.contenders[slow], law.comparison.contenders[fast])
            for law in laws
        ]
        lines.append(f"| {what} | {' | '.join(found)} |")
    ours, *others = loop.comparison.contenders
    for peer in others:
        lines.append(f"| closed loop, than: {peer.name} | {_factor(loop, peer, ours)} |  |")
    return "\n".join(lines)


def quotation(laws: list[Measured], loop: Measured) -> str:
    """Say in the README how fast the law is."""
    plain, tilted = laws

    def times(law: Measured, slow: int, fast: int) -> str:
        contenders = law.comparison.contenders
        return _number(law.ratio(contenders[slow], contenders[fast])[0])

    tick, inner = (duration(plain.median(plain.comparison.contenders[k])) for k in (0, 3))
    ours, *_, mujoco = loop.comparison.contenders
    text = (
        "One tick of the law of a free-flyer with twelve degrees of freedom takes "
        f"{tick} from Python, {times(plain, 5, 0)} times less than the law over Pinocchio's "
        f"Python interface ({times(tilted, 5, 0)} times on a robot without structural zeros), "
        f"and {inner} in a loop in C, {times(plain, 7, 3)} times less than over Pinocchio's C++ "
        f"headers ({times(tilted, 7, 3)} times). Its closed-loop simulation is "
        f"{_number(loop.ratio(mujoco, ours)[0])} times faster than the same law called from "
        "MuJoCo's steps. [docs/benchmarks.md](docs/benchmarks.md) has all robots, functions, "
        "build times and methods."
    )
    return "\n".join(textwrap.wrap(text, 120, break_on_hyphens=False))


def _number(factor: float) -> str:
    """Two digits, or all before the point."""
    return f"{factor:.2g}" if factor < 99.5 else f"{factor:.0f}"


def _factor(result: Measured, slow: Contender, fast: Contender) -> str:
    middle, low, high = result.ratio(slow, fast)
    if math.isnan(middle):
        return MISSING
    return f"**{middle:.3g}** ({low:.3g} to {high:.3g})"


def duration(seconds: float) -> str:
    """Three digits and a unit: "7.12 µs"; a peer that is missing has no time."""
    if math.isnan(seconds):
        return MISSING
    for size, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def rewritten(page: str, text: str, opening: str = BEGIN) -> str:
    """Return the page with the text between the markers replaced."""
    before, begin, rest = page.partition(opening)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the page has no lines {opening!r} and {END!r}")
    return f"{before}{opening}\n{text}\n{END}{after}"


def with_section(page: str, title: str, text: str) -> str:
    """Return the page with one section between the markers replaced, or added as their last."""
    before, begin, rest = page.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has no lines {BEGIN!r} and {END!r}")
    head, *sections = re.split(r"^(?=## )", inside, flags=re.MULTILINE)
    heading = f"## {title}\n"
    if not any(section.startswith(heading) for section in sections):
        before_it = [head, *sections]
        before_it[-1] += "\n"
        head, *sections = [*before_it, heading]
    for k, section in enumerate(sections):
        if section.startswith(heading):
            last = k == len(sections) - 1
            sections[k] = f"{heading}\n{text}\n" + ("" if last else "\n")
    return f"{before}{begin}{head}{''.join(sections)}{end}{after}"
