"""Reading of rig files."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Annotated, ClassVar

from annotated_types import Len

from hil._concur import (
    OPERATING,
    DescriptionError,
    Expected,
    FileName,
    OneOrMore,
    Text,
    build,
    copy_of,
    fault,
    is_file,
    is_python,
    is_task_proof,
    load_task,
    missing_file,
    read_json,
    read_toml,
)
from hil._transmission import transmission_of
from hil.drives import drive_files, drive_kinds, import_drives
from hil.errors import RigFileError
from hil.rig._checks import axis_of, check_buses, check_kinds, check_rig, sorted_axes
from hil.rig.busload import refuse_overload
from hil.settings import (
    AxisTable,
    BusSettings,
    EmulatorSettings,
    EstimatorSettings,
    LoopSettings,
    OperatorSettings,
    Policies,
    PoseSettings,
    RecorderSettings,
    Rig,
)

_AXES = "at least one table [[axes]], at most 126"


@dataclass(frozen=True)
class RigFile:
    """A whole rig file.

    Parameters
    ----------
    name : str
        Name of the rig. Example: `"rover"`.
    task : str
        Task file, relative to this file; it names the robot, the outputs, gains and reference. A
        system without bodies has one in Python. Example: `"task.toml"`.
    bus : table or sequence
        Interface of the drives in python-can; a table for each of several buses.
    axes : sequence
        One table for each motor of the robot, in any order.
    drive_modules : sequence of str, optional
        Python files, relative to this file, that register custom kinds of drives; every program
        that reads the rig file runs them. Default: none. Example: `["micro_drive.py"]`.
    loop : table, optional
        Rate, priority and timing. Default: its defaults.
    policies : table, optional
        Responses to faults, and stops. Default: its defaults.
    operator : table, optional
        Heartbeats of a person. Default: its defaults.
    estimator : table, optional
        State estimation. Default: its defaults.
    recorder : table, optional
        Recording of the cycles. Default: its defaults.
    emulator : table, optional
        Imperfections of an emulated rig. Default: its defaults.
    pose : table, optional
        External source of the base's pose. Default: none.
    certificate : str, optional
        `operating.json` of `concur certify`, relative to this file; its torque bounds are shown
        beside the limits before driving. Other files are rejected. Default: none. Example:
        `"servo.certificate.json"`.
    proof : str, optional
        `proof.json` of `concur prove` for the task, relative to this file; it is shown before
        driving, and a rig that it is not about is not armed. Other files are rejected. Default:
        none. Example: `"proof.json"`.
    """

    _cures: ClassVar[Mapping[str, str]] = {
        "robot": "The task names the robot; name the task file in `task`.",
        "axis": "Write a table [[axes]] for each axis.",
        "drive_module": "Did you mean `drive_modules`?",
        "drives": "Write a table [[axes]] for each drive.",
    }

    name: Text
    task: FileName
    bus: Annotated[Sequence[BusSettings], OneOrMore(BusSettings)]
    # The largest number of nodes on a bus.
    axes: Annotated[Sequence[AxisTable], Len(1, 126), Expected(_AXES)]
    drive_modules: Annotated[Sequence[str], Expected("a list of names of Python files")] = ()
    loop: LoopSettings = field(default_factory=LoopSettings)
    policies: Policies = field(default_factory=Policies)
    operator: OperatorSettings = field(default_factory=OperatorSettings)
    estimator: EstimatorSettings = field(default_factory=EstimatorSettings)
    recorder: RecorderSettings = field(default_factory=RecorderSettings)
    emulator: EmulatorSettings = field(default_factory=EmulatorSettings)
    pose: PoseSettings | None = None
    certificate: FileName | None = None
    proof: FileName | None = None


def load_rig(path: str | PathLike[str], *, allowed: Container[Path] | None = None) -> Rig:
    """Read a rig from a TOML file.

    Parameters
    ----------
    path : path
        The file. Its fields are ``name``; ``task``, a task file; ``certificate`` and ``proof``
        (optional), files; ``drive_modules`` (optional), Python files that are imported to register
        kinds of drives; a table ``[[axes]]`` for each motor of the task's robot with the fields of
        `AxisTable`; ``[bus]``, or a table ``[[bus]]`` for each of several, with the fields of
        `BusSettings`; ``[loop]``, ``[policies]``, ``[operator]``, ``[pose]``, ``[estimator]``,
        ``[recorder]`` and ``[emulator]`` with the fields of the classes of the same name. Names of
        files are relative to the folder of the rig file. Missing fields take the defaults of these
        classes; without ``[pose]`` there is no external pose.
    allowed : container of Path, optional
        Files of ``drive_modules``, of a law of the task and of a task in Python that may be run,
        with links resolved; default: all.

    Returns
    -------
    Rig
        The rig, with its task loaded and its axes in the order of the robot's controls, and
        with the numbers of its motors; axes of MIT drives have their ranges.

    Raises
    ------
    RigFileError
        If the file cannot be read, a field is missing, unknown, of the wrong type or out of
        range, fields contradict each other, or a file of ``drive_modules`` cannot be imported.
    BusLoadError
        If the frames of the axes of a bus exceed its capacity.
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
        table = build(RigFile, data, path)
        file = Path(path)
        place = _beside(file, "task", table.task, "a task file")
        if is_python(place):
            _check_code([place], "task", path, allowed)
        task = load_task(place)
        modules = drive_files(table.drive_modules, file)
        _check_code(modules, "drive_modules", path, allowed)
        if task.law_file is not None:
            _check_code([copy_of(task.law_file)], "task", path, allowed)
        import_drives(modules, file)
        transmission = transmission_of(task.robot, str(path))
        check_buses(table.bus, table.axes, str(path))
        axes = sorted_axes(table.axes, task, str(path))
        given = {entry["name"]: entry for entry in data["axes"]}
        check_kinds(axes, given, drive_kinds(), str(path))
        rig = Rig(
            name=table.name,
            path=file,
            task=task,
            axes=tuple(axis_of(axis, task, transmission, str(path)) for axis in axes),
            buses=tuple(table.bus),
            loop=table.loop,
            policies=table.policies,
            operator=table.operator,
            estimator=table.estimator,
            recorder=table.recorder,
            emulator=table.emulator,
            pose=table.pose,
            certificate=table.certificate and _certificate(file, table.certificate),
            proof=table.proof and _proof(file, table.proof),
            drive_modules=modules,
        )
        check_rig(rig)
    refuse_overload(rig)
    return rig


def _check_code(
    files: Sequence[Path], field: str, path: str | PathLike[str], allowed: Container[Path] | None
) -> None:
    """Reject Python files whose code is not allowed to run, before it runs."""
    refused = [file for file in files if allowed is not None and file.resolve() not in allowed]
    if refused:
        raise fault(
            path,
            "",
            field,
            expected="only Python files whose code is allowed to run",
            came=", ".join(map(str, refused)),
            cure="Allow their code only if you would run it yourself.",
        )


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
