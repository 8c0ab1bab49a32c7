"""The cycle of a rig as C99: fixed code, tables of the rig, and the graphs of estimator and law."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from hil._concur import compiler_flags, concur_version, folder_named, sources, tracking_law, writing
from hil.errors import RigError
from hil.settings import Rig
from hil.spine._tables import graphs, sizes, tables
from hil.state.estimator import Estimator

CODE = Path(__file__).with_name("c")
"""Code that is the same for all rigs."""

CYCLE = "rig.c", "residual.c"
"""Files of the cycle, compiled with `FLAGS`."""

FLAGS = "-O2", "-std=c99", "-ffp-contract=off"
"""Flags for the code of the cycle, without contraction of its operations."""


@dataclass(frozen=True)
class CycleFolder:
    """C code of the cycle of a rig.

    Parameters
    ----------
    rig : str
        Name of the rig.
    files : tuple of Path
        The files.
    flags : tuple of str
        Flags for the graphs, with which Python compiles them for this machine.
    """

    rig: str
    files: tuple[Path, ...]
    flags: tuple[str, ...]

    passed = True

    def as_dict(self) -> dict[str, Any]:
        """Result for JSON.

        Returns
        -------
        dict
            Numbers and texts.
        """
        return {"rig": self.rig, "files": [str(path) for path in self.files]}

    def show(self, console: Any) -> None:
        """Print the files.

        Parameters
        ----------
        console : rich.console.Console
            Prints.
        """
        console.print(f"cycle of {self.rig} in C99:", markup=False, highlight=False)
        for path in self.files:
            console.print(f"  {path}", markup=False, highlight=False, soft_wrap=True)


def export_rig(rig: Rig, directory: str | PathLike[str]) -> CycleFolder:
    """Write the cycle of a rig in C99: estimator, law, guard and stop.

    Parameters
    ----------
    rig : Rig
        The rig.
    directory : path
        Folder of the files.

    Returns
    -------
    CycleFolder
        The files.

    Raises
    ------
    RigError
        If the state of the rig does not follow from its motors alone, or the files cannot be
        written.
    """
    where = f"export of rig `{rig.name}`"
    if rig.pose is not None:
        raise RigError(
            where,
            expected="a rig without `[pose]`: the cycle in C takes reports of drives alone",
            came="a source of poses",
            cure="Remove `[pose]`; the base then follows from the motors.",
        )
    law = tracking_law(rig.task.law, f"{where}, law")
    if getattr(law.model.system, "following", None):
        raise RigError(
            where,
            expected="a robot without joints that follow others",
            came="`mimics` or `steering` in the robot file",
            cure="Run this rig with `concur-rig drive`.",
        )
    functions = graphs(rig, law, Estimator(rig, law, compiled=False))
    code = sources(functions)
    names = ["graphs.c", *(f"graphs_{k}.c" for k in range(1, len(code.files)))]
    files = {
        name: (CODE / name).read_text(encoding="ascii") for name in ("rig.h", "residual.h", *CYCLE)
    }
    files["sizes.h"] = sizes(rig, law, functions)
    files["tables.h"] = tables(rig, law, functions, code.names)
    files |= dict(zip(names, code.files, strict=True))
    files["CMakeLists.txt"] = _cmake(names, compiler_flags(code))
    files["README.md"] = _readme(rig, names, compiler_flags(code))
    folder = folder_named(directory, where)
    with writing(folder, where, RigError):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_bytes(text.encode("ascii", "replace"))
    return CycleFolder(rig.name, tuple(folder / name for name in files), compiler_flags(code))


def _cmake(graph_files: list[str], flags: tuple[str, ...]) -> str:
    return f"""cmake_minimum_required(VERSION 3.10)
project(rig C)
add_library(rig STATIC {" ".join([*CYCLE, *graph_files])})
target_include_directories(rig PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
set_source_files_properties({" ".join(CYCLE)} PROPERTIES COMPILE_OPTIONS "{";".join(FLAGS)}")
set_source_files_properties({" ".join(graph_files)}
                            PROPERTIES COMPILE_OPTIONS "{";".join(flags)}")
target_link_libraries(rig PUBLIC m)
"""


def _readme(rig: Rig, graph_files: list[str], flags: tuple[str, ...]) -> str:
    axes = "\n".join(
        f"| {k} | {axis.name} | {axis.torque_limit:g} | {axis.speed_limit:g} |"
        for k, axis in enumerate(rig.axes)
    )
    rate = f"{rig.loop.rate:g} Hz"
    return f"""# Cycle of the rig {rig.name}

Written by concur {concur_version}. `rig_step` is one cycle of `concur-rig drive` at {rate}:
observers of the motors, lift, law, residuals of the axes with their causes, guard, policies for
late cycles and missing reports, and the stop with its latch. It allocates nothing, reads no clock,
and gives the torques of the loop in Python, to the last bit where both use the same machine code
of the graphs.

| index | axis | limit, N m (N) | speed, rad/s (m/s) |
| --- | --- | --- | --- |
{axes}

```c
static rig_memory memory;
static rig_input input = {{.late = -1}};
static rig_output output;
rig_init(&memory, 0); /* armed, at the start of the task */
for (;;) {{
  /* wait for the deadline, request and read reports, fill in `input` */
  rig_step(&memory, &input, &output);
  /* send output.torque if output.action is not RIG_OFF; else take power from the drives */
}}
```

Set `input.run` to start the law; it starts in the first cycle in which `output.ready` is set. Set
`input.stop` for a reason from outside, such as `RIG_OPERATOR`. After a stop the cycle brakes, or
holds, as the policies of the rig demand; then the action is `RIG_OFF` until `rig_init`.

If your loop may be delayed between the step and the commands, call `rig_check` in between: it stops
with `RIG_LATE` if a report has become too old.

Your loop has to do what the loop in Python does around the cycle: check units, prove the watchdog
of every drive before the first torque, take frames of other hosts as `RIG_FOREIGN`, and stop at
the operator's word.

    cc {" ".join(FLAGS)} -c {" ".join(CYCLE)}
    cc {" ".join(flags)} -c {" ".join(graph_files)}
"""
