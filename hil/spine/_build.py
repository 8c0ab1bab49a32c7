"""The loop of a rig in C: its files in a folder, and their compilation."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hil._concur import CompilationError, find_compiler
from hil.drives.in_c import drives_in_c
from hil.errors import RigError
from hil.record.in_c import rows_in_c
from hil.spine._export import CODE, CYCLE, FLAGS, export_rig
from hil.spine._tables import timing

if TYPE_CHECKING:
    from hil.record.rows import Layout
    from hil.settings import Rig

HEADERS = "frames.h", "exchange.h", "record.h", "shared.h", "loop.h", "emulated.h"
LOOP = "frames.c", "exchange.c", "record.c", "loop.c"
"""Files of the loop, and their headers."""

PROGRAMS = {"process.c": "loop", "emulated.c": "emulate"}
"""Files of processes, and their programs."""

LIBRARY = "librig.so"
"""The loop as a library."""


def has_compiler() -> bool:
    """Whether the loop in C can be built here."""
    return find_compiler() is not None and sys.platform.startswith("linux")


def build(rig: Rig, folder: Path, layout: Layout, where: str, programs: bool) -> None:
    """Write and compile the loop of a rig: as a library, or as processes with emulated drives."""
    compiler = find_compiler()
    if compiler is None or not has_compiler():
        raise RigError(
            where,
            expected="Linux with a C compiler",
            came=f"{sys.platform}, {'no compiler' if compiler is None else 'a compiler'}",
            cure="Install gcc or clang. The loop in Python runs without: its statistics in the "
            "result of `concur-rig drive --emulate` show the rate that it holds.",
        )
    exported = export_rig(rig, folder)
    sources = [*LOOP, *PROGRAMS] if programs else [*LOOP]
    for name in (*HEADERS, *sources):
        shutil.copyfile(CODE / name, folder / name)
    (folder / "rows.h").write_text(rows_in_c(layout), encoding="ascii")
    (folder / "drives.h").write_text(drives_in_c(rig), encoding="ascii")
    (folder / "timing.h").write_text(timing(rig), encoding="ascii")
    graphs = [path.name for path in exported.files if path.name.startswith("graphs")]
    objects = [_object(name) for name in (*CYCLE, *LOOP, *graphs)]
    try:
        compiler.run([*exported.flags, "-fPIC", "-c", *graphs], folder)
        compiler.run([*FLAGS, "-fPIC", "-c", *CYCLE, *sources], folder)
        if programs:
            for name, program in PROGRAMS.items():
                compiler.run([_object(name), *objects, "-lm", "-o", program], folder)
        else:
            compiler.run(["-shared", *objects, "-lm", "-o", LIBRARY], folder)
    except CompilationError as error:
        raise RigError(
            where,
            expected="a C compiler for Linux",
            came=str(error),
            cure="Set CONCUR_CC to another compiler.",
        ) from error


def _object(name: str) -> str:
    return name.replace(".c", ".o")
