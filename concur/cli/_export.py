"""`concur export`: the law of a task as code for a controller."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from concur.cli._answer import Answer, Reply
from concur.cli._app import WRITTEN, Overwrite, TaskFile, command
from concur.cli._folder import results

if TYPE_CHECKING:
    from concur.control import CFolder


@command(
    "Campaigns and controllers",
    "the control law as C code or as an FMU",
    "concur export examples/rover_arm.toml --out out/rover_arm/c",
    WRITTEN,
)
def export(
    reply: Reply,
    task: TaskFile,
    target: str = "c",
    out: Path | None = None,
    name: str | None = None,
    precision: str = "double",
    speed_limit: float = 1000.0,
    fmi: str = "3.0",
    with_reference: bool = False,
    law: str | None = None,
    overwrite: Overwrite = False,
) -> Answer:
    """Export the control law of a task as C code or as an FMU.

    The C code comes with a test program and a README with instructions to compile, test and use it.
    An fmu is a functional mock-up unit (FMU) for co-simulation in other simulators.

    Parameters
    ----------
    target : str
        c: C99 without libraries; fmu: a functional mock-up unit.
    out : path, optional
        Folder of the files; default out/<name of the file>/<target>.
    name : str, optional
        Prefix of all generated names; default: the robot's name.
    precision : str
        double; or single, for controllers without double precision.
    speed_limit : float
        Velocity above which C code rejects a state, in m/s or rad/s.
    fmi : str
        FMI version of an fmu, 3.0 or 2.0.
    with_reference : bool
        The reference is inside: the time is an input.
    law : str, optional
        Another law than that of the task: a name of its [[laws]], or a kind with options.
    """
    from concur.io import load_task
    from concur.tables import located

    folder = out or Path("out") / task.stem / target
    with results(folder, "export", overwrite) as kept:
        given = load_task(task)
        with located(task, ""):
            given = given if law is None else given.with_law(law)
            servo = given.law
        reference = given.reference if with_reference else None
        with reply.progress("exporting"):
            made = servo.export(kept.staging, target, name, precision, speed_limit, fmi, reference)
        own: dict[str, Any] = {"task": given.name, "target": target}
        if isinstance(made, Path):
            files, title, lines = kept.publish([made]), made.stem, []
        else:
            files, title, lines = kept.publish(made.files), made.name, _lines(made, folder)
            own |= {"states": made.states, "error": made.error and made.error.largest}
        kept.end("written")
    return Answer(
        status="written", name=title, robot=given.robot.name, files=files, own=own, shown=lines
    )


def _lines(made: CFolder, folder: Path) -> list[str]:
    """Precision of the code, and how to test it."""
    name, error, precision = made.name, made.error, []
    if error is not None:
        size = f"about {error.largest:.1e} of the largest number, over {error.states} states"
        precision = [f"single precision: error {size}"]
    return [
        *precision,
        f"test it with {made.states} states:",
        f"  cd {folder} && cc -std=c99 -O2 {name}.c replay.c -o replay -lm && ./replay",
    ]
