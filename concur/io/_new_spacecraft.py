"""A folder with a spacecraft: a hull with the arm of a URDF file, a path of its hand, a task."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from concur.control import Servo
from concur.errors import ConcurError, DescriptionError, InertiaError
from concur.io._new_files import rendered, toml_key, trouble_of
from concur.io._robot import load
from concur.io._urdf_suggest import suggest_sidecar
from concur.outputs import Output
from concur.reduction import reduce
from concur.robot import Body, Mechanism
from concur.robot.joints import Prismatic

PREFIX = "arm_"

TOOLS = ("tcp", "grasp", "tool0", "tool", "flange", "hand", "ee", "end_effector", "tip")
"""Words in names of frames that tools hold on to, the best first."""

GEAR, TORQUE, ROTOR = 100.0, 20.0, "2e-5"
"""Gear of each motor, largest torque at the joint, N m, and inertia of the rotor, kg m^2."""

FINGERS = "finger|grip|jaw|knuckle|thumb"
"""Words in names of parts of grippers."""

TRAVEL = 0.12
"""Travel of a joint that slides, m, below which it is one of a gripper."""

WAY = 0.12
"""Length of the path, in parts of the distance of the hand from the base of the arm."""

STEP, REST, END = 0.01, 10.0, 12.0
"""Times of the path, s: of a row, of its rest, and of its end."""

POSTURES = 200
"""Configurations of which the one farthest from singular ones is taken."""

OUTSIDE = 0.3
"""Height of the hand above the base of the arm, at least, in parts of the highest joint's."""

LOAD = 0.15
"""Largest unknown load, in parts of the mass of the arm."""


@dataclass(frozen=True)
class Chain:
    """The arm of a file: its joints up to the gripper, the frame of its hand, and the gripper."""

    joints: tuple[str, ...]
    hand: str
    held: Mapping[str, float]


def chain_of(robot: Mechanism) -> Chain:
    """Find the arm in a tree: the longest chain, up to the gripper.

    A gripper begins where fingers branch off, or with a joint that `_grips`. Its joints are held in
    the middle of their travel, as are those beside the chain.
    """
    moving = [i for i, body in enumerate(robot.bodies) if body.joint.nv and i]
    below = {i: [k for k in moving if i in robot.path(k)[:-1]] for i in range(len(robot.bodies))}
    at, joints = 0, list[int]()
    while ahead := [k for k in below[at] if _next(robot, at, k)]:
        best = max(ahead, key=lambda k: len(below[k]))
        fingers = len(ahead) > 1 and len(below[best]) < 2
        if joints and (fingers or _grips(robot.bodies[best])):
            break
        joints.append(best)
        at = best
    held = {
        robot.bodies[k].joint_label: _middle(robot, k)
        for k in moving
        if k not in joints and robot.bodies[k].name not in robot.following
    }
    return Chain(tuple(robot.bodies[k].joint_label for k in joints), _tool(robot, at), held)


def _grips(body: Body) -> bool:
    """Whether a body is a finger or a jaw: by its name, that of its joint, or its short travel."""
    low, high = body.limits[0]
    slides = isinstance(body.joint, Prismatic) and high - low < TRAVEL
    return slides or bool(re.search(FINGERS, f"{body.name} {body.joint_label}", re.IGNORECASE))


def _next(robot: Mechanism, at: int, k: int) -> bool:
    """Whether the joint `k` is the first one that moves behind the body `at`."""
    path = robot.path(k)
    between = path[path.index(at) + 1 : -1]
    return not any(robot.bodies[i].joint.nv for i in between)


def _middle(robot: Mechanism, k: int) -> float:
    low, high = robot.bodies[k].limits[0]
    return round((low + high) / 2.0, 6) if np.isfinite([low, high]).all() else 0.0


def _tool(robot: Mechanism, at: int) -> str:
    """Frame of the hand: of those that move with the last body the one with the best name."""
    names = [robot.bodies[i].name for i in robot.welded(at)]
    ranks = {
        name: min((k for k, word in enumerate(TOOLS) if word in name.lower()), default=len(TOOLS))
        for name in names
    }
    return min(reversed(names), key=ranks.__getitem__)


def new_spacecraft(source: Path, folder: Path, name: str) -> str:
    """Write the files of a spacecraft with the arm of a URDF file, and a task that passes."""
    given = tomllib.loads(suggest_sidecar(source)[1])
    if given.get("wheels"):
        raise DescriptionError(
            str(source),
            expected="an arm",
            came="a robot with wheels",
            cure="Write `concur new urdf` for a robot that drives.",
        )
    shutil.copyfile(source, folder / "arm.urdf")
    facts: dict[str, Any] = {"given": {key: given.get(key) for key in ("ignore", "repair")}}
    facts |= {"name": name, "prefix": PREFIX, "locked": ()}

    def write(file: str) -> None:
        text = re.sub(r"\n{3,}", "\n\n", rendered("spacecraft", file, **facts)).rstrip() + "\n"
        (folder / file).write_text(text, encoding="utf-8")

    write("arm.toml")
    arm = load(folder / "arm.urdf")
    chain = chain_of(arm)
    if len(chain.joints) < 3:
        raise DescriptionError(
            str(source),
            expected="an arm of at least three joints, one behind the other",
            came=", ".join(chain.joints) or "no joint that moves",
            cure="Write `concur new urdf` for another robot.",
        )
    facts["locked"] = [(toml_key(joint), value) for joint, value in chain.held.items()]
    write("arm.toml")
    facts["joints"] = [_motor(arm, joint) for joint in chain.joints]
    write("robot.toml")
    try:
        robot = load(folder / "robot.toml")
    except InertiaError:  # a link that is lighter than the rotor it would carry
        facts["joints"] = [{**joint, "reflected": True} for joint in facts["joints"]]
        write("robot.toml")
        robot = load(folder / "robot.toml")
    hand, why = PREFIX + chain.hand, "no configuration is regular"
    groups = ("R3xSO3", "R3") if len(chain.joints) >= 6 else ("R3",)
    for group in groups:
        output = Output("hand", hand, group)
        try:
            servo = Servo(reduce(robot), [output], 16.0, 8.0)
            postures = _postures(robot, chain, PREFIX + arm.base.name)
            q = max(postures, key=partial(_mobility, servo))
        except ConcurError as error:
            why = str(error).replace(str(folder), name)
            continue
        carrier = robot.bodies[_carrier(robot, hand)]
        facts |= {
            "group": group,
            "hand": json.dumps(hand),
            "carrier": toml_key(carrier.name),
            "load": float(f"{LOAD * arm.total_mass:.1g}"),
            "posture": [
                (toml_key(PREFIX + joint), _angle(robot, q, joint)) for joint in chain.joints
            ],
        }
        write("task.toml")
        for rows in _paths(servo, q, robot.pose(q, PREFIX + arm.base.name)[:3, 3]):
            head = "t,x,y,z,qx,qy,qz,qw"[: 7 if group == "R3" else None]
            np.savetxt(folder / "hand.csv", rows, "%.5f", ",", header=head, comments="")
            try:
                why = trouble_of(folder / "task.toml")
            except ConcurError as error:
                why = str(error).replace(str(folder), name)
            if not why:
                return robot.name
    raise DescriptionError(
        str(source),
        expected="an arm whose hand follows a short path",
        came=why,
        cure="Check the file by `concur check`; limits of travel may be too narrow.",
    )


def _motor(arm: Mechanism, joint: str) -> dict[str, Any]:
    """Numbers of the motor of a joint; no more torque than the joint bears."""
    limit = min(TORQUE, *arm.bodies[arm.joints[joint]].torque_limit)
    at_motor = float(f"{limit / GEAR:.3g}")
    name = json.dumps(PREFIX + joint)
    behind = f"{at_motor * GEAR:g}"
    facts = {"name": name, "rotor": ROTOR, "torque": f"{at_motor:g}", "behind": behind}
    return facts | {"reflected": False}


def _angle(robot: Mechanism, q: np.ndarray, joint: str) -> float:
    return round(float(q[robot.q_spans[robot.joints[PREFIX + joint]]][0]), 3)


def _postures(robot: Mechanism, chain: Chain, foot: str) -> list[np.ndarray]:
    """Configurations of the arm within its limits, with the hull at the origin.

    Of those in which all joints are on the outer side of its foot, if there are any.
    """
    rng, found = np.random.default_rng(1), list[np.ndarray]()
    indices = [robot.joints[PREFIX + joint] for joint in chain.joints]
    base = robot.pose(robot.neutral(), foot)
    outside = []
    for _ in range(POSTURES):
        q = np.array(robot.neutral(), dtype=float)
        for index in indices:
            low, high = np.clip(robot.bodies[index].limits[0], -2.5, 2.5)
            middle, half = (low + high) / 2.0, (high - low) / 2.0
            q[robot.q_spans[index]] = middle + half * rng.uniform(-0.7, 0.7)
        names = [*(robot.bodies[i].name for i in indices[1:]), PREFIX + chain.hand]
        places = [robot.pose(q, name)[:3, 3] - base[:3, 3] for name in names]
        heights = np.array(places) @ base[:3, 2]
        found.append(q)
        outside += [q] * bool(heights.min() > 0.0 and heights[-1] > OUTSIDE * heights.max())
    return outside or found


def _mobility(servo: Servo, q: np.ndarray) -> float:
    """Least motion of the hand for joint velocities of one length: none at the edge of the reach.

    The margin of the law weighs joints by their inertia, which gears make alike.
    """
    scaled = servo.margins.scales[0][:, None] * servo.decoupling(q)
    return float(np.linalg.svd(scaled, compute_uv=False)[-1])


def _carrier(robot: Mechanism, body: str) -> int:
    """Body with a mass that moves with a body as one, the nearest above it."""
    index = robot.index(body)
    while not robot.bodies[index].inertia.mass and robot.parents[index] is not None:
        index = robot.parents[index] or 0
    return index


def _paths(servo: Servo, q: np.ndarray, foot: np.ndarray) -> Iterator[np.ndarray]:
    """Rows of paths of the hand from a configuration: lines from rest to rest."""
    start = np.asarray(servo.output(q))
    inward = foot - start[:3]
    reach = np.linalg.norm(inward)
    aside = np.cross(inward / reach, [0.0, 0.0, 1.0])
    t = np.arange(0.0, END + STEP / 2.0, STEP)
    s = np.clip(t / REST, 0.0, 1.0)
    s = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
    for direction in (inward / reach + aside, inward / reach - aside, inward / reach, aside):
        rows = np.tile(start, (len(t), 1))
        rows[:, :3] += np.outer(s, WAY * reach * direction / np.linalg.norm(direction))
        yield np.column_stack([t, rows])
