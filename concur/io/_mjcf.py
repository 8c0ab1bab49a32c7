"""Reader of robots from MJCF files, through the compiled model of MuJoCo."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy.spatial.transform import Rotation

from concur.errors import ConcurError, DescriptionError, install_command, shown
from concur.files import copy_of, is_file, read_text
from concur.interop import Link, chain
from concur.io._mjcf_elements import (
    is_disabled,
    motor_joints,
    motor_tendons,
    read_friction,
    spring_joints,
    unread_mjcf,
)
from concur.io._mjcf_states import keyframes, site_frames
from concur.io._names import blame, free_name
from concur.io._sidecar import Sidecar
from concur.io._unread import Unread
from concur.robot import Body, Inertia, Mechanism, Mimic, Motor, Pose, Spring, joints
from concur.tables import (
    LARGEST,
    LARGEST_TOML,
    MOST_BODIES,
    build,
    fault,
    file_named,
    located,
    read_toml,
    show,
    unknown,
)

_BASES = {"free": joints.Free, "planar": joints.Planar, "fixed": joints.Fixed}
_REPLACED = (joints.Free, joints.Planar, joints.PlanarPrismatic, joints.Fixed)
_FREE, _BALL, _SLIDE = 0, 1, 2
_COUPLING = 2
_JOINT, _IN_PARENT, _TENDON, _SITE = 0, 1, 3, 4
_COEFFICIENT = 1
"""Numbers of MuJoCo's kinds of joints, of its equality constraint of joints, of what actuators act
on, and of a joint in a tendon."""

_STILL = (0.0, 0.0, 0.0)
"""Shaft of a rotor that has its reflected inertia only."""

_COPIES = re.compile(r"<\s*(replicate|composite|flexcomp|flex|plugin)\b")


@dataclass
class _Joint:
    """A joint of the model: kind, axis and anchor in its body (m), limits, largest effort."""

    name: str
    named: bool
    link: Link
    anchor: np.ndarray
    limits: tuple[float, float]
    effort: list[float] | None = None  # one per freedom; None without an actuator
    geared: bool = False  # moved by an actuator through a tendon
    moved: float = 0.0  # coordinate in the reference configuration: `ref`


@dataclass
class _File:
    """A compiled model with its file."""

    path: Path
    model: Any

    def refuse(self, place: str, expected: str, came: str, cure: str) -> NoReturn:
        raise DescriptionError(
            ", ".join(part for part in (str(self.path), place) if part),
            expected=expected,
            came=came,
            cure=cure,
            file=str(self.path),
        )

    def name(self, kind: str, index: int) -> str:
        """Name of a body or joint; a number if it has none."""
        name = str(getattr(self.model, kind)(index).name)
        if len(name) > 255 or not name.isprintable() or (name and not name.strip()):
            expected = "a name of at most 255 characters, without control characters"
            self.refuse(f"{kind} {index}", expected, show(name), "Rename it.")
        return name or f"{kind}{index}"


@dataclass
class _Robot:
    """Bodies read so far, the body that each joint moves, and the driven bodies.

    By number in the model, `names` are names of bodies, `shifts` origins of their frames (m).
    """

    bodies: list[Body] = field(default_factory=list)
    carrier: dict[str, str] = field(default_factory=dict)
    driven: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    shifts: dict[int, np.ndarray] = field(default_factory=lambda: {0: np.zeros(3)})

    def label(self, body: str) -> str:
        """Name of the joint of a body."""
        return next(own.joint_label for own in self.bodies if own.name == body)


def load_mjcf(path: str | PathLike[str], sidecar: str | PathLike[str] | None) -> Mechanism:
    """Read a robot from an MJCF file; parameters and errors as of `load`."""
    path = file_named(path)
    side = path.with_suffix(".toml") if sidecar is None else file_named(sidecar)
    given = sidecar is not None or is_file(side)
    table = build(Sidecar, read_toml(side) if given else {}, side)
    file = _File(path, _compiled(path))
    _check_contents(file)
    unread = Unread(path, table.ignore)
    unread_mjcf(file.model, unread)
    unread.close(side)
    owned = _joints(file)
    every = [joint for j in sorted(owned) for joint in owned[j]]
    found = _read(file, owned, table, side)
    taken = {name for body in found.bodies for name in (body.name, body.joint_label)}
    frames, beside = site_frames(file.model, file.name, found.names, found.shifts, taken)
    of_sites = Unread(path, (), beside).close(side)
    found.bodies += frames
    carried: dict[str, list[int]] = {}
    for j, joint in enumerate(every):
        if joint.name in found.carrier:
            carried.setdefault(found.carrier[joint.name], []).append(j)
    with located(path, ""):
        states = keyframes(file.model, file.name, found.bodies, carried)
    driven: list[str] | None = found.driven
    if table.actuated is not None:
        movers = found.carrier | {b.joint_label: b.name for b in found.bodies if b.joint.nv}
        for name in table.actuated:
            if name not in movers:
                raise unknown(side, "", "actuated", "a joint that moves", name, movers)
        driven = list(dict.fromkeys(movers[name] for name in table.actuated))
    elif not file.model.nu:
        base = found.bodies[0].joint
        driven = [b.name for b in found.bodies if b.joint.nv] if base.nv == 1 else None
    weightless = is_disabled(file.model, "gravity")
    gravity = table.gravity or (file.model.opt.gravity * (not weightless)).tolist()
    title = table.name or file.model.names.partition(b"\0")[0].decode("utf-8", "replace")
    if not title.strip() or len(title) > 255 or not title.isprintable():
        file.refuse("", "a name of the model", show(title), 'Write <mujoco model="...">.')
    mimics = _mimics(file, found, every)
    if driven is not None:
        driven = [name for name in driven if name not in [mimic.body for mimic in mimics]]
    with located(path, ""):
        motors, tendons = _motors(file, found, every)
        if "armature" in table.ignore:
            motors = [replace(motor, rotor=0.0, shaft=None) for motor in motors]
        alone = _of_joints(file, found, every, driven or [], "armature" in table.ignore)
        motors += alone.values()
        springs = [] if "stiffness" in table.ignore else _springs(file, found, every, alone)
        damped = [j for j in spring_joints(file.model) if springs and j not in alone]
        read_friction(file.model, unread, alone, tendons, damped)
        listed = unread.close(side) + of_sites
    if driven is not None:
        moved = {name for motor in motors for name in motor.ratios}
        driven = [n for n in map(found.label, driven) if n not in moved]
    parts = table.wheels, gravity, driven, motors, mimics, table.steering, table.supports or {}
    try:
        return Mechanism(title, found.bodies, *parts, [*springs, *table.springs], listed, states)
    except ConcurError as error:
        with located(side if table.wheels or table.springs else path, *blame(error, vars(table))):
            raise


def _compiled(path: Path) -> Any:
    """Compile the file by MuJoCo."""
    text = read_text(path, "an MJCF file", "Check the path.", largest=LARGEST_TOML)

    def refuse(came: str, cure: str, line: int | None = None) -> NoReturn:
        raise DescriptionError(
            f"{path}, line {line}" if line else str(path),
            expected="an MJCF file that MuJoCo compiles",
            came=came,
            cure=cure,
            file=str(path),
            line=line,
        )

    plain = re.sub(r"<!--.*?(-->|\Z)|<\?.*?\?>", "", text, flags=re.DOTALL)
    first = re.search(r"<\s*([^\s/>]*)", plain)
    if first is None or first[1] != "mujoco":
        cure = "A URDF file has the ending .urdf." if first and first[1] == "robot" else ""
        refuse("no element <mujoco>", cure or "Give the path of an MJCF file.")
    copies = _COPIES.search(plain)
    if copies is not None:
        refuse(f"<{copies[1]}>", "Write the bodies one by one; flexible bodies are no robots.")
    try:
        import mujoco
    except ImportError:
        raise DescriptionError(
            str(path),
            expected="the package mujoco, which compiles MJCF files",
            came="an environment without it",
            cure=f"Install the extra: {install_command('mjcf')}.",
            file=str(path),
        ) from None
    # Without a handler MuJoCo writes warnings to a file in the working directory.
    before, messages = mujoco.get_mju_user_warning(), list[str]()
    mujoco.set_mju_user_warning(messages.append)
    try:
        model = mujoco.MjModel.from_xml_path(str(copy_of(path)))
    except (ValueError, mujoco.FatalError) as error:
        message = " ".join(str(error).split())
        line = re.search(r"\bline (\d+)", message)
        came = f"`{shown(re.sub(r'^(XML )?Error: ', '', message), 200)}`"
        refuse(came, "Correct the file.", int(line[1]) if line else None)
    finally:
        mujoco.set_mju_user_warning(before)
    if any("NaN" in message for message in messages):
        refuse("a number that is NaN", "Correct the number.")
    return model


def _check_contents(file: _File) -> None:
    """Refuse models that are too large, and bodies that bend."""
    model = file.model
    if model.nbody > MOST_BODIES:
        cure = "Merge bodies that do not move."
        file.refuse("", f"at most {MOST_BODIES} bodies", f"{model.nbody}", cure)
    if model.nflex:
        file.refuse("", "a model without flexible bodies", f"{model.nflex}", "Remove them.")
    names = ("body_pos", "body_ipos", "body_mass", "body_inertia", "jnt_pos", "qpos0")
    arrays = [getattr(model, name) for name in names]
    worst = max(float(np.abs(array).max(initial=0.0)) for array in arrays)
    if not worst <= LARGEST:
        file.refuse("", "numbers within 1e9, SI units", f"{worst:g}", "Check the units.")


def _joints(file: _File) -> dict[int, list[_Joint]]:
    """Joints by body, outermost first, with their actuators."""
    model = file.model
    owned: dict[int, list[_Joint]] = {}
    every: list[_Joint] = []
    for j in range(model.njnt):
        kind, body = int(model.jnt_type[j]), int(model.jnt_bodyid[j])
        name, axis = file.name("joint", j), model.jnt_axis[j].copy()
        named = bool(model.joint(j).name)
        limits, moved, anchor = (-math.inf, math.inf), 0.0, model.jnt_pos[j].copy()
        if kind == _FREE:
            link, anchor = Link("", "free"), np.zeros(3)
        elif kind == _BALL:
            link = Link("", "ball")
        else:
            link = Link("", "slide" if kind == _SLIDE else "hinge", tuple(axis.tolist()))
            moved = float(model.qpos0[model.jnt_qposadr[j]])
            if kind == _SLIDE:
                anchor = owned[body][-1].anchor if body in owned else np.zeros(3)
            if model.jnt_limited[j]:
                low, high = (float(x) for x in model.jnt_range[j])
                limits = tuple(  # type: ignore[assignment]
                    math.copysign(math.inf, x) if abs(x) > LARGEST else x for x in (low, high)
                )
        every.append(_Joint(name, named, link, anchor, limits, moved=moved))
        owned.setdefault(body, []).append(every[-1])
    names = [joint.name for joint in every]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        file.refuse("", "each joint name once", f"`{twice}` twice", "Name all joints.")
    for k in np.flatnonzero(model.actuator_trntype == _TENDON):
        for j in _coefficients(model, int(model.actuator_trnid[k, 0])):
            every[j].geared = True
    for k in np.flatnonzero(~np.isin(model.actuator_trntype, (_TENDON, _SITE))):
        _add_actuator(file, every, int(k))
    for j, joint in enumerate(every):
        if model.jnt_actfrclimited[j] and (joint.effort is not None or joint.geared):
            most = _either_way(model.jnt_actfrcrange[j])
            joint.effort = [min(most, x) for x in joint.effort or [math.inf]]
    return owned


def _coefficients(model: Any, tendon: int) -> dict[int, float]:
    """Joints of a fixed tendon, each with the sum of its coefficients."""
    start = int(model.tendon_adr[tendon])
    span = slice(start, start + int(model.tendon_num[tendon]))
    found: dict[int, float] = {}
    wraps = model.wrap_type[span], model.wrap_objid[span], model.wrap_prm[span]
    for kind, j, ratio in zip(*wraps, strict=True):
        if kind == _COEFFICIENT:
            found[int(j)] = found.get(int(j), 0.0) + float(ratio)
    return {j: ratio for j, ratio in found.items() if ratio}


def _either_way(bounds: np.ndarray) -> float:
    """Largest effort that is available both ways; of a motor that only pulls, its largest."""
    low, high = sorted(float(x) for x in bounds)
    return min(-low, high) if low < 0.0 < high else max(abs(low), abs(high))


def _largest(model: Any, k: int) -> float:
    """Largest effort of an actuator: its range, or that of the control of a motor."""
    most = math.inf
    if model.actuator_forcelimited[k]:
        most = _either_way(model.actuator_forcerange[k])
    fixed = int(model.actuator_gaintype[k]) == 0 and int(model.actuator_biastype[k]) == 0
    if fixed and model.actuator_ctrllimited[k]:
        gain = float(model.actuator_gainprm[k, 0])
        most = min(most, _either_way(model.actuator_ctrlrange[k] * gain))
    return most


def _add_actuator(file: _File, every: list[_Joint], k: int) -> None:
    """Add an actuator to its joint; several on one joint add up."""
    model = file.model
    kind, gear = int(model.actuator_trntype[k]), model.actuator_gear[k]
    joint = every[int(model.actuator_trnid[k, 0])] if kind in (_JOINT, _IN_PARENT) else None
    if joint is None or joint.link.kind == "free":
        _refuse_actuator(file, k)
    if joint.geared:
        return  # `_motors` reads it
    most, size = _largest(model, k), 3 if joint.link.kind == "ball" else 1
    joint.effort = joint.effort or [0.0] * size
    for axis in range(size):
        share = abs(float(gear[axis]))
        if share:
            joint.effort[axis] += most * share


def _refuse_actuator(file: _File, k: int) -> NoReturn:
    place = f"actuator {k} `{shown(file.model.actuator(k).name)}`"
    expected = "an actuator of a hinge, slide or ball joint, a fixed tendon, or a site on a body"
    file.refuse(place, expected, "another actuator", "Remove it.")


def _motors(file: _File, found: _Robot, every: list[_Joint]) -> tuple[list[Motor], list[int]]:
    """Actuators of tendons, of joints that a tendon moves too, and of sites; tendons with one."""
    model, motors, labels = file.model, [], {body.joint_label for body in found.bodies}
    of_tendons = motor_tendons(model)
    for k in range(model.nu):
        kind, at, gear = (
            int(model.actuator_trntype[k]),
            model.actuator_trnid[k],
            model.actuator_gear[k],
        )
        name, most = file.name("actuator", k), _largest(model, k)
        if kind == _SITE:
            body = int(model.site_bodyid[at[0]])
            if at[1] >= 0 or body not in found.names:
                _refuse_actuator(file, k)
            turn = Pose(rotation=tuple(np.roll(model.site_quat[at[0]], -1).tolist()))
            wrench = np.ravel(gear.reshape(2, 3) @ turn.rotation_matrix.T).tolist()
            point = (model.site_pos[at[0]] - found.shifts[body]).tolist()
            body_name = found.names[body]
            motors.append(Motor(name, body=body_name, wrench=wrench, point=point, torque=most))
        elif kind == _TENDON or every[int(at[0])].geared:
            ratios = _coefficients(model, at[0]) if kind == _TENDON else {int(at[0]): 1.0}
            # A base of the sidecar may replace a joint; a tendon may be led through space.
            if not ratios or any(every[j].name not in found.carrier for j in ratios):
                _refuse_actuator(file, k)
            moved = {j: found.label(found.carrier[every[j].name]) for j in ratios}
            joints = {moved[j]: ratio * float(gear[0]) for j, ratio in ratios.items()}
            if name in labels and name not in joints:
                name = free_name(name, labels)
            numbers = of_tendons.get(int(at[0]), {}) if kind == _TENDON else {}
            ratio = abs(float(gear[0]))
            numbers = {n: x / ratio ** (1 if n == "coulomb" else 2) for n, x in numbers.items()}
            shaft = _STILL if "rotor" in numbers else None
            motors.append(Motor(name, joints, shaft=shaft, torque=most, **numbers))
    return motors, list(of_tendons)


def _of_joints(
    file: _File, found: _Robot, every: list[_Joint], driven: Sequence[str], still: bool
) -> dict[int, Motor]:
    """Motors of joints with `armature`, the reflected inertia of a rotor, or with friction."""
    motors = dict[int, Motor]()
    bodies = {body.name: body for body in found.bodies}
    for j, numbers in motor_joints(file.model).items():
        if still:
            numbers.pop("rotor", None)
        name = found.carrier.get(every[j].name, "")
        if not numbers:
            continue
        if name not in driven or bodies[name].joint.nv != 1:
            if "rotor" not in numbers:
                continue  # its friction is listed
            file.refuse(
                f"joint `{every[j].name}`",
                "`armature` of joints that have a motor each",
                "a joint that another one of the sidecar replaces, or without a motor",
                'Leave the inertia of its rotor out: ignore = ["armature"] and no armature here.',
            )
        label, shaft = bodies[name].joint_label, _STILL if "rotor" in numbers else None
        motors[j] = Motor(label, label, shaft=shaft, **numbers)
    return motors


def _read(file: _File, owned: dict[int, list[_Joint]], table: Sidecar, side: Path) -> _Robot:
    """Make the bodies, parents first; bodies fixed to the world that carry no joint are left."""
    model, found = file.model, _Robot()
    carrying = {0}
    for i in reversed(range(1, model.nbody)):
        if i in owned or i in carrying:
            carrying |= {i, int(model.body_parentid[i])}
    kept = {i for i in range(1, model.nbody) if i in carrying or model.body_weldid[i]}
    if not owned:
        file.refuse("", "a robot with joints", "a model without joints", "Add the joints.")
    tops = [i for i in sorted(kept) if not model.body_parentid[i]]
    names = found.names = {i: file.name("body", i) for i in kept}
    if len(tops) > 1 or "world" in names.values():
        found.bodies.append(Body("world", joints.Fixed()))
        names[0] = "world"
    if table.base is not None and 0 in names:
        cure = "Remove this field."
        expected, came = "no base: several bodies are fixed to the world", show(table.base)
        raise fault(side, "", "base", expected=expected, came=came, cure=cure)
    taken = set(names.values()) | {"world"}
    if len(taken) < len(names):
        file.refuse("", "each body name once", "one twice", "Name all bodies.")
    for i in sorted(kept):
        above = int(model.body_parentid[i])
        base = table.base if above == 0 else None
        own = [] if base else owned.get(i, [])
        if base and not _replaceable(owned.get(i, [])):
            expected = "no base: a joint of the file connects it to the world"
            cure = "Remove this field."
            raise fault(side, "", "base", expected=expected, came=show(base), cure=cure)
        with located(file.path, f"body `{names[i]}`"):
            _add_bodies(file, found, i, own, taken, base)
    known = {body.joint_name for body in found.bodies if body.joint_name}
    taken |= known
    for k, body in enumerate(found.bodies):
        if body.joint_name is None and body.name in known:  # the name of another joint
            found.bodies[k] = replace(body, joint_name=free_name(body.name, taken))
            taken.add(found.bodies[k].joint_label)
    return found


def _replaceable(own: list[_Joint]) -> bool:
    """Whether a base of the sidecar can replace the joints of the file."""
    joint = _as_one(own)
    return not own or own[0].link.kind == "free" or isinstance(joint, _REPLACED)


def _add_bodies(
    file: _File,
    found: _Robot,
    i: int,
    own: list[_Joint],
    taken: set[str],
    base: str | None,
) -> None:
    """Add a body with its joints; massless bodies are between several joints."""
    model, names, shifts = file.model, found.names, found.shifts
    name = names[i]
    above = int(model.body_parentid[i])
    parent = names.get(above)
    rotation = tuple(np.roll(model.body_quat[i], -1).tolist())
    anchor = own[0].anchor if own else np.zeros(3)
    place = Pose((0.0, 0.0, 0.0), rotation)
    first = model.body_pos[i] + place.rotation_matrix @ anchor - shifts[above]
    place = Pose(tuple(first.tolist()), rotation)
    shifts[i] = own[-1].anchor if own else np.zeros(3)
    inertia = _inertia(file, i, shifts[i])
    if base is not None or not own:
        joint: joints.Joint = _BASES[base]() if base else joints.Fixed()
        found.bodies.append(Body(name, joint, parent, place, inertia))
        return
    if own[0].link.kind == "free":
        # Its coordinates are the pose in the world.
        named = {"joint_name": own[0].name} if own[0].named else {}
        found.bodies.append(Body(name, joints.Free(), parent, Pose(), inertia, **named))
        found.carrier[own[0].name] = name
        return
    whole = _as_one(own)
    groups = [own] if whole is not None else [[joint] for joint in own]
    before = anchor
    for group in groups:
        last = group is groups[-1]
        label = name if last else _free_name(group[0].name, name, taken)
        if group is not groups[0]:
            place = Pose(tuple((group[0].anchor - before).tolist()))
        before = group[0].anchor
        place = _referred(place, group[0])
        joint = whole or _simple(group[0].link)
        efforts = [x for part in group for x in part.effort or ()]
        whole_effort = len(efforts) == joint.nv and all(efforts)
        driven = whole_effort and not group[0].geared
        if efforts and not whole_effort:
            expected = "an actuator for each freedom of a ball joint, or none"
            file.refuse(f"joint `{group[0].name}`", expected, "some", "Add or remove actuators.")
        limits: dict[str, Any] = {}
        if len(group) == 1 and group[0].named:
            limits["joint_name"] = group[0].name
        if joint.quaternion_at is None:
            limits["limits"] = [part.limits for part in group]
        if efforts:
            limits["torque_limit"] = efforts
        if driven:
            found.driven.append(label)
        if last:
            body = Body(label, joint, parent, place, inertia, **limits)
        else:
            body = Body(label, joint, parent, place, **limits)
        found.bodies.append(body)
        found.carrier |= dict.fromkeys((part.name for part in group), label)
        parent = label


def _free_name(joint: str, body: str, taken: set[str]) -> str:
    """Name of a body between joints."""
    for name in (joint, f"{body}_{joint}", *(f"{body}_{k}" for k in range(len(taken) + 1))):
        if name not in taken:
            break
    taken.add(name)
    return name


def _referred(place: Pose, joint: _Joint) -> Pose:
    """Placement with which a joint is in the reference configuration at its coordinate `ref`."""
    if not joint.moved:
        return place
    back, turn = -joint.moved * np.array(joint.link.axis), Rotation.from_quat(place.rotation)
    if joint.link.kind == "slide":
        return Pose(tuple((place.translation + turn.apply(back)).tolist()), place.rotation)
    rotation = (turn * Rotation.from_rotvec(back)).as_quat()
    return Pose(place.translation, tuple(rotation.tolist()))


def _simple(link: Link) -> joints.Joint:
    if link.kind == "ball":
        return joints.Spherical()
    return joints.Prismatic(link.axis) if link.kind == "slide" else joints.Revolute(link.axis)


def _as_one(own: list[_Joint]) -> joints.Joint | None:
    """Joint of several freedoms that moves as these do, if all or none of them are driven.

    Motors of slides push along fixed axes, those of a planar or free joint along axes of its body.
    """
    driven = {bool(joint.effort) for joint in own}
    placed = any(joint.moved or np.any(joint.anchor) or joint.geared for joint in own)
    if len(own) < 2 or placed or len(driven) > 1:
        return None
    axes = [joint.link.axis for joint in own]
    turning = driven == {False}
    candidates: list[joints.Joint] = [joints.Cartesian(), *[joints.Free()] * turning]
    if own[-1].link.kind == "hinge":
        candidates.append(joints.Cylindrical(axes[-1]))
        kinds = (joints.Planar, joints.PlanarPrismatic)
        candidates += [kind(axes[-1]) for kind in kinds if turning]
    elif np.linalg.norm(normal := np.cross(axes[0], axes[1])) > 0.5:
        candidates.append(joints.Sliding(tuple(normal.tolist())))
    for joint in candidates:
        links = chain(joint)
        same = [link.kind for link in links] == [part.link.kind for part in own]
        bounded = any(map(math.isfinite, (x for part in own for x in part.limits)))
        if same and np.allclose([link.axis for link in links], axes, 0.0, 1e-9):
            return None if bounded and joint.quaternion_at is not None else joint
    return None


def _springs(
    file: _File, found: _Robot, every: list[_Joint], driven: Mapping[int, Motor]
) -> list[Spring]:
    """Springs of joints; damping of a driven joint is the friction of its motor."""
    model, springs = file.model, []
    for j in spring_joints(model):
        damping = getattr(model, "dof_damping", np.zeros(model.nv))[model.jnt_dofadr[j]]
        label = found.label(found.carrier[every[j].name])
        rest = float(model.qpos_spring[model.jnt_qposadr[j]])
        kept = 0.0 if j in driven else float(damping)
        springs.append(Spring(label, float(model.jnt_stiffness[j]), kept, rest))
    return springs


def _mimics(file: _File, found: _Robot, every: list[_Joint]) -> list[Mimic]:
    """Couplings of two joints with one freedom each, q1 = offset + multiplier q2."""
    model, mimics = file.model, []
    sizes = {body.name: body.joint.nv for body in found.bodies}
    for k in range(model.neq):
        ids = int(model.eq_obj1id[k]), int(model.eq_obj2id[k])
        if not model.eq_active0[k] or model.eq_type[k] != _COUPLING or ids[1] < 0:
            continue
        follower, other = (every[index] for index in ids)
        ends = [found.carrier.get(joint.name, "") for joint in (follower, other)]
        offset, multiplier, *higher = (float(x) for x in model.eq_data[k, :5])
        if any(higher) or [sizes.get(end) for end in ends] != [1, 1]:
            expected = "a linear coupling of two joints with one freedom each"
            cure = "Write polycoef with two numbers, and one joint in each body."
            file.refuse(f"coupling of `{follower.name}`", expected, "another coupling", cure)
        # MuJoCo couples displacements from the coordinates of the reference configuration.
        offset += follower.moved - multiplier * other.moved
        mimics.append(Mimic(ends[0], ends[1], multiplier, offset))
    return mimics


def _inertia(file: _File, i: int, shift: np.ndarray) -> Inertia:
    """Inertia of a body about its centre of mass, in axes of the body."""
    model, mass = file.model, float(file.model.body_mass[i])
    if not mass and not model.body_inertia[i].any():
        return Inertia(0.0)
    turn = Pose(rotation=tuple(np.roll(model.body_iquat[i], -1).tolist())).rotation_matrix
    tensor = turn @ np.diag(model.body_inertia[i]) @ turn.T
    com = tuple((model.body_ipos[i] - shift).tolist())
    return Inertia(mass, com, tuple(map(tuple, 0.5 * (tensor + tensor.T))))
