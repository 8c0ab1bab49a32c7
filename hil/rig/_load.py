"""Reading of rig files."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from hil._concur import (
    OPERATING,
    DescriptionError,
    Table,
    check,
    copy_of,
    fault,
    is_file,
    is_task_proof,
    load_task,
    missing_file,
    read_json,
    read_toml,
)
from hil.drives import drive_files, drive_kinds, import_drives
from hil.drives.mit_models import mit_ranges
from hil.errors import RigFileError
from hil.rig._checks import check_kinds, check_rig, sorted_axes
from hil.rig._schema import AxisTable, RigTable
from hil.rig.busload import refuse_overload
from hil.settings import (
    Axis,
    BusSettings,
    EmulatorSettings,
    EstimatorSettings,
    LoopSettings,
    OperatorSettings,
    Policies,
    Policy,
    PoseSettings,
    RecorderSettings,
    Rig,
)

HOLDING = 5.0
"""Default ratio of stiffness to damping of a holding stop, 1/s."""


def load_rig(path: str | PathLike[str], *, allowed: Container[Path] | None = None) -> Rig:
    """Read a rig from a TOML file.

    Parameters
    ----------
    path : path
        The file. Its fields are ``name``; ``task``, a task file; ``certificate`` and ``proof``
        (optional), files; ``drive_modules`` (optional), Python files that are imported to register
        kinds of drives; a table ``[[axes]]`` for each control of the task's robot with the fields
        of `Axis`; ``[bus]``, ``[loop]``, ``[policies]``, ``[operator]``, ``[pose]``,
        ``[estimator]``, ``[recorder]`` and ``[emulator]`` with the fields of the classes of the
        same name. Names of files are relative to the folder of the rig file. Missing fields take
        the defaults of these classes; without ``[pose]`` there is no external pose.
    allowed : container of Path, optional
        Files of ``drive_modules`` that may be run, with links resolved; default: all.

    Returns
    -------
    Rig
        The rig, with its task loaded and its axes in the order of the robot's controls; axes of
        MIT drives have their ranges.

    Raises
    ------
    RigFileError
        If the file cannot be read, a field is missing, unknown, of the wrong type or out of
        range, fields contradict each other, or a file of ``drive_modules`` cannot be imported.
    BusLoadError
        If the frames of all axes exceed the capacity of the bus.
    DescriptionError
        If the task cannot be read; names the task's file.

    Examples
    --------
    >>> import hil
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> rig.name, rig.loop.rate
    ('rover on CiA 402 drives', 250.0)
    """
    with _as_rig_errors(path):
        data = read_toml(path)
        if "outputs" in data and "axes" not in data:
            raise fault(
                path,
                "",
                "",
                expected="a rig file",
                came="a task file (it has `outputs`)",
                cure="Pass the rig file, which names this task in its field `task`.",
            )
        table = check(RigTable, data, path)
        file = Path(path)
        task = load_task(_beside(file, "task", table.task, "a task file"))
        modules = drive_files(table.drive_modules or (), file)
        refused = [m for m in modules if allowed is not None and m.resolve() not in allowed]
        if refused:
            raise fault(
                path,
                "",
                "drive_modules",
                expected="only Python files whose code is allowed to run",
                came=", ".join(map(str, refused)),
                cure="Allow their code only if you would run it yourself.",
            )
        import_drives(modules, file)
        axes = sorted_axes(table, task, str(path))
        check_kinds(axes, drive_kinds(), str(path))
        rig = Rig(
            name=table.name,
            path=file,
            task=task,
            axes=tuple(map(_axis, axes)),
            bus=BusSettings(**table.bus.given()),
            certificate=None
            if table.certificate is None
            else _certificate(file, table.certificate),
            proof=None if table.proof is None else _proof(file, table.proof),
            drive_modules=modules,
            **_parts(table),
        )
        check_rig(rig)
    refuse_overload(rig)
    return rig


@contextmanager
def _as_rig_errors(path: str | PathLike[str]) -> Iterator[None]:
    """Convert errors in the rig file to `RigFileError`; errors in other files pass unchanged."""
    try:
        yield
    except DescriptionError as error:
        if error.data.get("file", str(path)) != str(path):
            raise
        raise RigFileError(
            error.where,
            expected=error.expected,
            came=error.came,
            cure=error.cure,
            **error.data,
        ) from None


def _beside(file: Path, field: str, name: str, kind: str) -> Path:
    found = copy_of(file.parent / name)
    if not is_file(found):
        raise missing_file(file, "", field, kind, found)
    return found


def _certificate(file: Path, name: str) -> Path:
    """Find the certificate, and reject a file of another kind."""
    kind = "a certificate"
    found = _beside(file, "certificate", name, kind)
    try:
        document = read_json(found, kind, "Check the name.")
    except DescriptionError as error:
        came, cure = f"{found}: {error.came}", error.cure
    else:
        if isinstance(document, dict) and document.get("format") == OPERATING:
            return found
        came = f"{found}, a file of another kind"
        cure = "Name the operating.json that `concur certify` writes for the rig's task."
    raise fault(file, "", "certificate", expected=kind, came=came, cure=cure)


def _proof(file: Path, name: str) -> Path:
    """Find the proof of the task, and reject a file of another kind."""
    kind = "the proof of a task"
    found = _beside(file, "proof", name, kind)
    if is_task_proof(found):
        return found
    came = f"{found}, a file of another kind"
    cure = "Name the proof.json that `concur prove` writes for the rig's task."
    raise fault(file, "", "proof", expected=kind, came=came, cure=cure)


def _parts(table: RigTable) -> dict[str, Any]:
    """Build the settings that have a separate table in the file."""
    kinds: dict[str, Any] = {
        "loop": LoopSettings,
        "policies": Policies,
        "operator": OperatorSettings,
        "pose": PoseSettings,
        "estimator": EstimatorSettings,
        "recorder": RecorderSettings,
        "emulator": EmulatorSettings,
    }
    parts: dict[str, Any] = {}
    for name, kind in kinds.items():
        part: Table | None = getattr(table, name)
        if part is None:
            continue
        values = part.given()
        for field_name in ("on_late", "on_missing"):
            if field_name in values:
                values[field_name] = Policy[values[field_name].upper()]
        if "start_error" in values:
            values.setdefault("largest_error", 2.0 * values["start_error"])
        if "directory" in values:
            values["directory"] = Path(values["directory"])
        if "faults" in values:
            values["faults"] = tuple(values["faults"])
        parts[name] = kind(**values)
    return parts


def _axis(table: AxisTable) -> Axis:
    values = table.given()
    if "position_limits" in values:
        values["position_limits"] = tuple(values["position_limits"])
    if "ranges" in values:
        values["ranges"] = {name: tuple(ends) for name, ends in values["ranges"].items()}
    values.setdefault("damping", table.torque_limit / table.speed_limit)
    values.setdefault("stiffness", HOLDING * values["damping"])
    axis = Axis(**values)
    return replace(axis, ranges=dict(mit_ranges(axis))) if axis.drive == "mit" else axis
