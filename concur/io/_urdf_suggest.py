"""Sidecar for a URDF file, suggested from its wheels, tried before it is written."""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

import numpy as np

from concur.errors import ConcurError, shown
from concur.io._sidecar import sidecar_of
from concur.io._unread import MOST_NAMES, Unread
from concur.io._urdf import load_urdf
from concur.io._urdf_elements import unread_urdf
from concur.io._urdf_repair import FIX, NAMES
from concur.io._urdf_tree import UrdfFile, heavy_links, read_urdf
from concur.io._urdf_wheels import (
    PARALLEL,
    TOUCHES,
    Hints,
    Rolling,
    axis_of,
    balls,
    chain,
    is_caster,
    looks_wheeled,
    rolling,
    sine,
)
from concur.io._urdf_xacro import Macros
from concur.reduction import reduce

FILL_IN = "# radius =   # FILL IN, m"
"""Line in place of the radius of a wheel that the file does not show."""

ROLLER = math.pi / 4.0
"""Angle of the rollers of mecanum wheels, rad; rollers of the front left wheel have -45 degrees."""


@dataclass
class _Drive:
    """How wheels drive a robot: its family, and entries of the sidecar."""

    family: str
    wheels: list[Rolling] = field(default_factory=list)
    kinds: dict[str, str] = field(default_factory=dict)  # lines of wheels by link
    passive: set[str] = field(default_factory=set)  # joints without a motor
    locked: dict[str, str] = field(default_factory=dict)  # joints that are held, with the reason
    drives: dict[str, dict[str, float]] = field(default_factory=dict)
    slider: tuple[np.ndarray, np.ndarray] | None = None  # centre and axis
    steering: list[tuple[str, str, str]] = field(default_factory=list)
    supports: dict[str, np.ndarray] = field(default_factory=dict)


def suggest_sidecar(
    path: str | PathLike[str],
    *,
    xacro: Mapping[str, str] | None = None,
    packages: Mapping[str, str | Path] | None = None,
) -> tuple[Path, str]:
    """Suggest the sidecar of a URDF file, with the reason of each entry in a comment.

    Wheels turn without end about axes parallel to the ground, the plane normal to z of the root
    link. Certain evidence is a plugin for wheels, the name of a wheel, or the lowest cylinder;
    where no joint has it, a wheel has three of: a round neighbour on a parallel axle, a round
    inertia, nothing that it carries, and a motor controlled in speed. A radius is that of the
    cylinder, of the plugin or of the mesh, else it has to be filled in.
    Places, axes, names and plugins decide the family: differential, skid, mecanum, omni, swerve or
    car. Casters become supports. Each suggestion is loaded and reduced, with a guess of missing
    radii, first as the file is, then with repairs, which the sidecar names. If this fails with the
    wheels, they are comments, with the error, and the base is planar.

    Parameters
    ----------
    path : path
        URDF file; a sidecar that it has is not read.
    xacro : mapping of str to str, optional
        As of `load`; they become part of the sidecar.
    packages : mapping of str to path, optional
        As of `load`; they become part of the sidecar.

    Returns
    -------
    path : pathlib.Path
        File where `load` finds a sidecar of this URDF file.
    text : str
        Text of a TOML file, with which `load` reads the robot.

    Raises
    ------
    ConcurError
        If the file cannot be loaded with any suggestion.
    """
    given, errors = Macros(xacro or {}, packages or {}), list[ConcurError]()
    with tempfile.TemporaryDirectory() as folder:
        side = Path(folder) / "suggested.toml"
        readings = _readings(path, side, given)
        wanted = next((own.wheels for own in readings if own.wheels), [])
        for text, wheels in _attempts(readings, given):
            side.write_text(_filled(text, wheels), encoding="utf-8")
            try:
                reduce(load_urdf(path, side, macros=given))
            except ConcurError as error:
                errors.append(error)
            else:
                break
        else:
            load_urdf(path, side, macros=given)  # an error of the file itself
            reason = " ".join(str(errors[0]).partition(": ")[2].split())
            text += f"\n# `concur check` rejects the robot with this file: {reason}\n"
    if wanted and not wheels:
        text += _as_comment(wanted, errors[0])
    return sidecar_of(readings[0].read.file), text


@dataclass(frozen=True)
class _Reading:
    """A file as it is read with some repairs, and the elements that the robot would lack."""

    read: UrdfFile
    repair: list[str]
    ignore: list[str]
    hints: Hints
    wheels: list[Rolling]


def _readings(path: str | PathLike[str], side: Path, given: Macros) -> list[_Reading]:
    """The file with more and more repairs, as far as they change it."""
    found: list[_Reading] = []
    side.write_text("")
    for asked in ((), FIX, NAMES):
        try:
            read = read_urdf(path, side, given, asked)
        except ConcurError:
            if asked is NAMES and not found:
                read_urdf(path, side, given)  # the error of the file as it is
                raise
            continue
        used = {own.fault for own in read.repairs}
        repair = [name for name in NAMES if name in used]
        if repair not in [before.repair for before in found]:
            unread = Unread(read.file)
            unread_urdf(read.root, unread, given)
            ignore = dict.fromkeys(part.element for part in unread.parts if part.refused)
            hints = Hints.of(read)
            found.append(_Reading(read, repair, list(ignore), hints, rolling(read, hints)))
    return found


def _attempts(readings: list[_Reading], given: Macros) -> Iterator[tuple[str, list[Rolling]]]:
    """Sidecars to be tried with their wheels; without wheels the base of a rover is no free one."""
    for own in readings:
        plain = [replace(wheel, steering="") for wheel in own.wheels]
        for wheels in (own.wheels, plain) if all(w.steering for w in own.wheels) else (own.wheels,):
            if wheels:
                yield _text(own, given, _drive(own.read, wheels, own.hints), ""), wheels
    for own in readings:
        wheeled = own.wheels or looks_wheeled(own.read, own.hints)
        for base in ("planar", "fixed") if wheeled else ("", "fixed"):
            yield _text(own, given, _Drive("none"), base), []


def _filled(text: str, wheels: list[Rolling]) -> str:
    """The text with a guess in place of each radius that has to be filled in."""
    for wheel in wheels:
        if wheel.guess:
            text = text.replace(f"{FILL_IN}: ", f"radius = {wheel.radius!r}  # ", 1)
    return text


def _drive(read: UrdfFile, wheels: list[Rolling], hints: Hints) -> _Drive:
    """The family of a drive, by axles, steering joints, names and plugins."""
    casters = [wheel for wheel in wheels if is_caster(wheel, read, hints)]
    if len(casters) == len(wheels):
        casters = []
    rest = [wheel for wheel in wheels if wheel not in casters]
    fixed = [wheel for wheel in rest if not wheel.steering]
    steered = [wheel for wheel in rest if wheel.steering]
    words = f"{hints.words} {read.root.element.get('name')} ".lower()
    words += " ".join(f"{wheel.link} {wheel.joint}" for wheel in rest).lower()
    if not rest:
        found = _Drive("none")
    elif steered:
        found = _steered(read, fixed, steered, hints)
    elif any(wheel.rollers for wheel in rest):
        found = _rollers(read, rest)
    elif "mecanum" in words and len(_axles(fixed)) > 1:
        found = _mecanum(fixed)
    elif "omni" in words or any(sine(w.axis, fixed[0].axis) > PARALLEL for w in fixed):
        found = _Drive(
            "omni", kinds={w.link: 'kind = "omni"  # rollers turn sideways' for w in fixed}
        )
    else:
        found = _parallel(fixed)
    found.wheels = rest
    for wheel in casters:
        ground = wheel.center - (0.0, 0.0, wheel.radius)
        found.supports[wheel.link] = ground
        found.locked |= dict.fromkeys((*wheel.carriers, wheel.joint), "a caster, now a support")
    for wheel in rest:
        found.locked |= dict.fromkeys(wheel.rollers, f"a roller of `{wheel.link}`")
        held = [name for name in wheel.carriers if name != wheel.steering]
        found.locked |= dict.fromkeys(held, f"moves the axle of `{wheel.link}`")
    if rest:
        found.supports |= balls(read, [*rest, *casters])
    return found


def _axles(wheels: list[Rolling]) -> list[list[Rolling]]:
    """Wheels that turn about one line, the largest group first."""
    axles: list[list[Rolling]] = []
    for wheel in wheels:
        for axle in axles:
            apart = np.cross(wheel.center - axle[0].center, axle[0].axis)
            same = sine(wheel.axis, axle[0].axis) <= PARALLEL
            if same and np.linalg.norm(apart) <= PARALLEL + TOUCHES * wheel.radius:
                axle.append(wheel)
                break
        else:
            axles.append([wheel])
    return sorted(axles, key=len, reverse=True)


def _sides(wheels: list[Rolling]) -> tuple[list[float], np.ndarray]:
    """Distance of each wheel along the axle of the first from the middle, and the middle."""
    middle = np.mean([wheel.center for wheel in wheels], axis=0)
    return [float((wheel.center - middle) @ wheels[0].axis) for wheel in wheels], middle


def _rollers(read: UrdfFile, wheels: list[Rolling]) -> _Drive:
    """Wheels whose rollers are joints: the angle is that of the lowest roller."""
    found = _Drive("omni")
    for wheel in [own for own in wheels if own.rollers]:
        poses = {name: chain(read, name)[0] for name in wheel.rollers}
        lowest = min(poses, key=lambda name: float(poses[name][2, 3]))
        axis = poses[lowest][:3, :3] @ axis_of(read.tree[lowest])
        angle = math.atan2(np.cross(wheel.axis, axis)[2], wheel.axis @ axis)
        angle -= math.pi * round(angle / math.pi)
        found.kinds[wheel.link] = 'kind = "omni"  # its rollers turn sideways'
        if abs(angle) < 0.9 * math.pi / 2.0:
            found.family = "mecanum"
            found.kinds[wheel.link] = f'kind = "mecanum"\nroller_angle = {angle!r}'
    return found


def _mecanum(wheels: list[Rolling]) -> _Drive:
    sides, middle = _sides(wheels)
    ahead = np.array([wheels[0].axis[1], -wheels[0].axis[0], 0.0])
    kinds = {}
    for wheel, side in zip(wheels, sides, strict=True):
        angle = math.copysign(ROLLER, -side * float((wheel.center - middle) @ ahead))
        kinds[wheel.link] = f'kind = "mecanum"\nroller_angle = {angle!r}  # the usual order'
    return _Drive("mecanum", kinds=kinds)


def _parallel(wheels: list[Rolling]) -> _Drive:
    """One axle, or several with the motors of each side together; else further axles skid."""
    axles = _axles(wheels)
    if len(axles) == 1:
        return _Drive("differential")
    sides, middle = _sides(wheels)
    both = [{s > 0.0 for w, s in zip(wheels, sides, strict=True) if w in axle} for axle in axles]
    skids = 'kind = "omni"  # skids sideways: another axle determines the direction'
    if any(len(own) < 2 for own in both):
        others = [wheel for axle in axles[1:] for wheel in axle]
        family = "differential" if len(axles[0]) > 1 else "single-track"
        kinds = {wheel.link: skids for wheel in others}
        return _Drive(family, kinds=kinds, passive={wheel.joint for wheel in others})
    skids = 'kind = "omni"  # skids sideways in curves'
    found = _Drive("skid", slider=(middle, wheels[0].axis))
    found.kinds = {wheel.link: skids for wheel in wheels}
    left = 1.0 if wheels[0].axis[1] > 0.0 else -1.0
    for name, sign in (("left", left), ("right", -left)):
        found.drives[name] = {
            w.joint: 1.0 if w.axis @ wheels[0].axis > 0.0 else -1.0
            for w, side in zip(wheels, sides, strict=True)
            if side * sign > 0.0
        }
    return found


def _steered(read: UrdfFile, fixed: list[Rolling], every: list[Rolling], hints: Hints) -> _Drive:
    """A car, whose axles meet on the line of its fixed axle, or modules that all turn."""
    axles = _axles(fixed)
    steered = [wheel for wheel in every if read.tree[wheel.steering].mimic is None] or every
    parallel = [wheel for wheel in every if wheel not in steered]
    if axles:
        found, guides = _Drive("car"), (axles[0][0], steered[0])
        skids = [wheel for axle in axles[1:] for wheel in axle]
        found.kinds = {w.link: 'kind = "omni"  # skids sideways in curves' for w in skids}
    else:
        found = _Drive("swerve" if len(steered) > 1 else "steered wheel")
        pairs = itertools.combinations(steered, 2)
        guides = max(
            pairs,
            key=lambda pair: round(float(np.linalg.norm(pair[0].center - pair[1].center)), 6),
            default=(steered[0], steered[0]),
        )
    names = (guides[0].link, guides[1].link)
    found.steering = [(w.link, *names) for w in steered if w not in guides]
    follows = 'kind = "omni"  # skids: the file steers it parallel to another wheel'
    found.kinds |= {wheel.link: follows for wheel in parallel}
    if not axles or len(every) > 2:  # each module has its motors
        return found
    found.passive = {w.steering for w in steered[1:]}
    driven = [w for w in every if w.joint in hints.driven]
    if not driven or any(w.joint in hints.driven for w in fixed):
        driven = axles[0]
    found.passive |= {w.joint for w in (*fixed, *every) if w not in driven}
    if len(driven) > 1:
        found.drives["differential"] = {
            w.joint: 1.0 if w.axis @ driven[0].axis > 0.0 else -1.0 for w in driven
        }
    return found


def _text(own: _Reading, given: Macros, drive: _Drive, base: str) -> str:
    read, wheels, tree = own.read, drive.wheels, own.read.tree
    head = f"# Suggested by `concur check {shown(read.file.name)} --suggest`: review every line."
    lines = [head, ""]
    for name, table in (("xacro", given.arguments), ("packages", given.packages)):
        if table:
            pairs = (f"{_toml(key)} = {_toml(str(table[key]))}" for key in table)
            lines.append(f"{name} = {{ {', '.join(pairs)} }}")
    for one in [own for own in read.repairs if own.fault in NAMES][:MOST_NAMES]:
        lines.append(f"# {one.place}: {one.change}")
    if own.repair:
        lines.append(f"repair = {_toml(own.repair)}")
    if own.ignore:
        lines.append(f"ignore = {_toml(own.ignore)}  # they change the motion; without them?")
    lines += _base(own, drive, base)
    geared = {name for gears in drive.drives.values() for name in gears}
    heavy = heavy_links(tree, read.links)
    moving = [
        name
        for name, joint in tree.items()
        if joint.joint.nv == 1 and joint.mimic is None and joint.child in heavy
        if name not in drive.passive | geared | drive.locked.keys()
    ]
    reason = "all joints that move independently"
    reason += ", but wheels that skid or follow" if drive.passive else ""
    reason += ", but those of drives" if geared else ""
    lines += [f"actuated = [  # {reason}", *(f"    {_toml(n)}," for n in moving), "]"]
    if drive.locked:
        lines += ["", "[locked]"]
    for name, why in drive.locked.items():
        low, high = tree[name].limits.get("limits", (-math.inf, math.inf))
        lines.append(f"{_toml(name)} = {float(np.clip(0.0, low, high))!r}  # {why}")
    if drive.supports:
        lines += ["", "[supports]  # casters, which roll in every direction"]
        lines += [f"{_toml(n)} = {_listed(at)}" for n, at in drive.supports.items()]
    for name, gears in drive.drives.items():
        pairs = (f"{_toml(joint)} = {ratio!r}" for joint, ratio in gears.items())
        lines += ["", "[[motors]]", f'name = "{name}"', f"joints = {{ {', '.join(pairs)} }}"]
    for wheel in wheels:
        lines += ["", *_wheel(wheel, drive.kinds.get(wheel.link, ""), wheels)]
    if drive.slider is not None:
        center, axis = drive.slider
        lines += ["", "# The robot turns about the middle of its axles: no side slip there."]
        lines += ["[[wheels]]", f"body = {_toml(read.top)}", "radius = 0.0", 'kind = "slider"']
        lines += [f"axis = {_listed(axis)}", f"center = {_listed(center)}"]
    for wheel_link, *guides in drive.steering:
        lines += ["", "[[steering]]", f"wheel = {_toml(wheel_link)}"]
        lines.append(f"guides = {_toml(guides)}")
    return "\n".join(lines) + "\n"


def _base(own: _Reading, drive: _Drive, base: str) -> list[str]:
    """Joint of the base and gravity; `base` is that of a robot whose wheels cannot be taken."""
    top = own.read.top
    fall = "gravity = [0.0, 0.0, -9.81]  # the z axis of the root link points upwards"
    count = f"{len(drive.wheels)} wheels roll on the ground: {drive.family} drive"
    if top == "world":
        return ["# No base: the root link `world` is the inertial frame.", fall]
    if drive.wheels:
        return [f'base = "planar"  # {count}', fall]
    if base and (own.wheels or looks_wheeled(own.read, own.hints)):
        return [f'base = "{base}"  # it has wheels, which no suggestion could take over', fall]
    if base:
        return [f'base = "{base}"  # a free base would have a motion without mass', fall]
    if top and not own.read.links[top].mass:
        return [f'base = "fixed"  # the root link `{top}` has no mass', fall]
    free = 'base = "free"  # no wheels were found, and the root link has mass'
    return [free, "# gravity = [0.0, 0.0, -9.81]  # zero by default, as of a spacecraft"]


def _toml(value: object) -> str:
    """A string or a list in TOML, which has no pairs of surrogates."""
    return json.dumps(value, ensure_ascii=False)


def _listed(vector: np.ndarray) -> str:
    return _toml([float(f"{x:.9g}") + 0.0 for x in vector])


def _wheel(wheel: Rolling, kind: str, wheels: list[Rolling]) -> list[str]:
    known = [w for w in wheels if not w.guess] or wheels
    ground = min(w.center[2] - w.radius for w in known)
    radius = wheel.center[2] - ground
    if abs(radius - wheel.radius) < 1e-9 or wheel.why.startswith("the plugin"):
        radius = wheel.radius
    axis = ", ".join(f"{x:.3g}" for x in wheel.axis + 0.0)
    entry = f"radius = {float(radius)!r}"
    entry += "" if radius == wheel.radius else "  # touches the ground"
    lines = [
        f"# `{wheel.joint}` turns without end, its axis ({axis}) is parallel to the ground,",
        f"# and {wheel.why}",
        "[[wheels]]",
        f"body = {_toml(wheel.link)}",
        f"{FILL_IN}: {wheel.guess}" if wheel.guess else entry,
    ]
    if np.any(wheel.offset):
        lines.append(f"center = {wheel.offset.tolist()}")
    return lines + kind.splitlines()


def _as_comment(wheels: list[Rolling], error: ConcurError) -> str:
    lines = [f"Wheels would be refused: {' '.join(str(error).partition(': ')[2].split())}"]
    for wheel in wheels:
        lines += [line.removeprefix("# ") for line in _wheel(wheel, "", wheels)]
    return "\n" + "".join(f"# {line}\n" for line in lines)
