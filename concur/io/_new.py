"""Folders with a robot and a task that run, to be changed."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from concur.control import Servo
from concur.errors import ConcurError, DescriptionError, UnknownNameError
from concur.files import writing
from concur.io._new_files import rendered, template, toml_key, trouble_of
from concur.io._new_spacecraft import new_spacecraft
from concur.io._robot import load
from concur.io._urdf_suggest import suggest_sidecar
from concur.outputs import Output
from concur.reduction import ReducedModel, reduce
from concur.robot import Mechanism, robot_size

KINDS = {
    "rover": "",
    "floater": "",
    "spacecraft": "the URDF file of its arm",
    "urdf": "the URDF file of the robot",
}
"""Kinds of folders, and the file that a kind is made from."""

POSTURES = 30
"""Configurations of which the one farthest from singular ones is taken."""

LEAST_MARGIN = 0.03
"""Decoupling margin of that configuration below which the outputs are not used."""

STEP = 0.06
"""Displacement of the hand along each axis, in parts of the robot's size."""

AHEAD = 0.3
"""Distance of the tracked point of a rover from its base frame, m."""

WAY = 0.5
"""Distance that a rover drives, m."""

GROUPS = {
    "R2": "horizontal position of a point",
    "R3": "position of a point",
    "R3xSO3": "position and orientation",
}


def new_folder(kind: str, folder: Path, source: Path | None = None) -> str:
    """Write a folder with a robot and a task that run, with a comment for each line.

    Parameters
    ----------
    kind : str
        "rover", "floater", "spacecraft" for a hull with the arm of a file, or "urdf" for a robot
        from a file.
    folder : pathlib.Path
        Folder to make; its name is that of the robot.
    source : pathlib.Path, optional
        With "spacecraft": the URDF file of the arm; its posture, and a short path of the hand in
        hand.csv, are found by simulation. With "urdf": the URDF file. The sidecar is that of
        `suggest_sidecar`, and the task is found by simulation: outputs of base and hand that move
        along lines.

    Returns
    -------
    str
        Name of the robot.

    Raises
    ------
    DescriptionError
        If the folder exists or has no valid name, or no simple task passes; nothing is left.
    ConcurError
        If there is no such kind, or its source is missing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from concur.io import new_folder
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     new_folder("rover", Path(folder) / "my_rover")
    'my_rover'
    """
    if kind not in KINDS:
        raise UnknownNameError(
            "concur new",
            expected=f"a kind of robot: {', '.join(KINDS)}",
            came=repr(kind),
            cure="Write for example: concur new rover my_rover.",
        )
    _check_name(folder)
    if (source is None) is bool(KINDS[kind]):
        raise ConcurError(
            "option `--from`",
            expected=KINDS[kind] or f"no file with {kind}",
            came="no file" if source is None else str(source),
            cure=f"Write for example: concur new {kind if KINDS[kind] else 'urdf'} {folder} "
            "--from robot.urdf.",
        )
    if source is not None and source.suffix.lower() != ".urdf":
        raise DescriptionError(
            str(source),
            expected="a URDF file (.urdf)",
            came="another file",
            cure="Expand a .xacro file with the program xacro first.",
        )
    with writing(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".concur-", dir=folder.parent))
        try:
            name = folder.name
            if source is not None and kind == "spacecraft":
                name = new_spacecraft(source, staging, name)
            elif source is not None:
                name = _from_urdf(source, staging, name)
            else:
                for file in ("robot.toml", "task.toml"):
                    text = template(kind, file).replace("$NAME", name)
                    (staging / file).write_text(text, encoding="utf-8")
            os.umask(mask := os.umask(0))
            staging.chmod(0o777 & ~mask)
            os.rename(staging, folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return name


def _check_name(folder: Path) -> None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", folder.name):
        raise DescriptionError(
            "concur new",
            expected="a name of letters, digits, _ and -, with a letter first",
            came=repr(folder.name),
            cure="Write for example: concur new rover my_rover.",
        )
    if os.path.lexists(folder):
        raise DescriptionError(
            str(folder),
            expected="the name of a new folder",
            came="a file or folder that exists",
            cure="Choose another name, or remove it first.",
        )


def _from_urdf(source: Path, folder: Path, name: str) -> str:
    """Copy a URDF file, suggest its sidecar, and write a task that passes."""
    suggest_sidecar(source)  # errors name the file of the user
    shutil.copyfile(source, folder / "robot.urdf")
    side, text = suggest_sidecar(folder / "robot.urdf")
    side.write_text(text, encoding="utf-8")
    robot = load(folder / "robot.urdf")
    model = reduce(robot)
    why = "no outputs with a regular decoupling matrix"
    for text in _tasks(robot, model, name):
        (folder / "task.toml").write_text(text, encoding="utf-8")
        try:
            trouble = trouble_of(folder / "task.toml")
        except ConcurError as error:
            trouble = str(error).replace(str(folder), name)
        if not trouble:
            return robot.name
        why = trouble
    raise DescriptionError(
        str(source),
        expected="a robot for which a simple task passes",
        came=why,
        cure="Write the sidecar with `concur check FILE --suggest`, correct it, and write a task "
        "(docs/files.md).",
    )


def _tasks(robot: Mechanism, model: ReducedModel, name: str) -> Iterator[str]:
    """Texts of tasks that may pass, the most demanding outputs first."""
    for outputs in _outputs(robot, model):
        try:
            servo = Servo(model, outputs, 4.0, 4.0)
        except ConcurError:  # singular in every configuration
            continue
        q = max(_postures(robot), key=servo.margin)
        if servo.margin(q) < LEAST_MARGIN:
            continue
        for direction in ((1.0, 0.0, -1.0), (-1.0, 0.0, -1.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0)):
            yield _text(robot, servo, q, np.array(direction), name)


def _outputs(robot: Mechanism, model: ReducedModel) -> Iterator[list[Output]]:
    wheels = {wheel.body for wheel in robot.wheels}
    joints = {body.name for body in robot.bodies if set(robot.freedoms(body.name)) & {*model.shape}}
    joints -= wheels

    def motors(body: str) -> int:
        path = robot.path(robot.index(body))
        return sum(robot.bodies[i].name in joints for i in path)

    hand = max((body.name for body in robot.bodies), key=motors)
    base = []
    if robot.wheels:
        base = [Output("base", robot.base.name, "R2", point=(AHEAD, 0.0, 0.0))]
    for group in ("R3xSO3", "R3"):
        # The origin of the last body can lie on its axis; its far end hardly does.
        com = robot.bodies[robot.index(hand)].inertia.com
        for point in ((0.0, 0.0, 0.0), tuple(round(2.0 * float(x), 3) for x in com)):
            found = [*base, Output("hand", hand, group, point=point)]
            if motors(hand) and sum(output.dim for output in found) <= model.ns:
                yield found
    if base and model.ns >= 2:
        yield base


def _postures(robot: Mechanism) -> Iterator[np.ndarray]:
    """The neutral configuration, and others with joints within limits and the base where it was."""
    rng, following = np.random.default_rng(1), {mimic.body for mimic in robot.mimics}
    for k in range(POSTURES):
        q = np.array(robot.neutral(), dtype=float)
        for body in robot.bodies[1:]:
            if not k or body.joint.nq != 1 or body.name in following:
                continue
            low, high = max(body.limits[0][0], -1.5), min(body.limits[0][1], 1.5)
            if low < high:
                angle = low + (high - low) * rng.uniform(0.1, 0.9)
                q[robot.q_slice(body.name)] = round(angle, 3)
        for mimic in robot.mimics:
            own, other = (robot.q_slice(name) for name in (mimic.body, mimic.of))
            q[own] = mimic.multiplier * q[other] + mimic.offset
        yield q


def _text(robot: Mechanism, servo: Servo, q: np.ndarray, direction: np.ndarray, name: str) -> str:
    """Task whose outputs move along lines from a configuration."""
    size = robot_size(robot)
    way = np.array([WAY, 0.0, 0.0]) if robot.wheels else np.zeros(3)
    starts, at, shown = np.asarray(servo.output(q)), 0, []
    for output in servo.outputs:
        count = output.lie.pose_size
        start, at = starts[at : at + count], at + count
        end, offset = start.copy(), np.zeros(output.dim)
        linear = 2 if output.group == "R2" else 3
        end[:linear] += way[:linear]
        offset[0] = 0.03
        if output.name == "hand":
            end[:3] += STEP * size * direction
            offset[0] = 0.5 * STEP * size
        shown.append(
            {
                "name": output.name,
                "body": json.dumps(output.body),
                "group": output.group,
                "point": list(output.point) if any(output.point) else None,
                "why": "ahead of the axle: the axle cannot move sideways"
                if output.name == "base"
                else "in the frame of the body",
                **{"start": _list(start), "end": _list(end), "offset": _list(offset)},
            }
        )
    wheels = {wheel.body for wheel in robot.wheels}
    posture = [
        (toml_key(body.joint_label), round(float(q[robot.q_slice(body.name)][0]), 7))
        for body in robot.bodies[1:]
        if body.joint.nq == 1 and body.name not in wheels
    ]
    names = [output.name for output in servo.outputs]
    text = rendered(
        "urdf",
        "task.toml",
        name=name,
        base="base" in names,
        hand="hand" in names,
        floats=servo.model.takes_momentum,
        outputs=shown,
        groups=GROUPS,
        posture=posture,
        size=servo.size,
        ns=servo.ns,
        method="rk4" if robot.base.joint.nq == robot.base.joint.nv else "rkmk4",
    )
    return re.sub(r"\n{3,}", "\n\n", text)


def _list(values: np.ndarray) -> list[float]:
    """Numbers as they are written, with seven digits after the point."""
    return [round(float(x), 7) + 0.0 for x in values]
