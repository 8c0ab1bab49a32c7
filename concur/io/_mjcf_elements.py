"""Parts of compiled MJCF models: read, listed or refused, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from concur.errors import shown
from concur.io._unread import Part, Unread

_COUPLING = 2
_COEFFICIENT = 1
_BALL = 1
_ON_JOINTS = (0, 1)
_ON_TENDON = 3
"""Numbers of MuJoCo's equality constraint of joints, of a joint in a tendon, of balls, and of
transmissions to joints and tendons."""

_FLAGS = {
    "constraint": "constraints that are switched off",
    "equality": "couplings that are switched off",
    "limit": "limits that are switched off",
    "clampctrl": "limits of controls that are switched off",
    "actuation": "actuators that are switched off",
}
"""Flags that switch off what the robot has."""


def is_disabled(model: Any, name: str) -> bool:
    """Whether a flag of the model switches something off."""
    import mujoco

    bit = getattr(mujoco.mjtDisableBit, f"mjDSBL_{name.upper()}")
    return bool(model.opt.disableflags & int(bit))


Owners = Callable[[Any], Iterable[str]]

_KINDS = {
    "body": ("body", "nbody"),
    "dof": ("joint", "nv"),
    "jnt": ("joint", "njnt"),
    "tendon": ("tendon", "ntendon"),
    "actuator": ("actuator", "nu"),
}
"""Kinds of parts and numbers of their rows, by the start of the names of arrays."""


def _with(*quantities: str) -> Owners:
    """Parts of all kinds for which one of some quantities is not zero."""

    def owners(model: Any) -> Iterator[str]:
        for start, (kind, rows) in _KINDS.items():
            count, found = getattr(model, rows), set[int]()
            for quantity in quantities:  # versions of MuJoCo lack some
                array = np.asarray(getattr(model, f"{start}_{quantity}", np.zeros(count)))
                found |= set(np.flatnonzero(array.reshape(count, -1).any(axis=1) if count else 0))
            chosen = {int(model.dof_jntid[k]) for k in found} if start == "dof" else found
            yield from (_named(model, kind, int(k)) for k in sorted(chosen))

    return owners


OF_MOTORS = {"armature": "rotor", "damping": "viscous", "frictionloss": "coulomb"}
"""Numbers of joints and tendons, and what they are of the motor that moves these."""


def motor_joints(model: Any) -> dict[int, dict[str, Any]]:
    """Hinges and slides that an actuator moves directly, and no tendon: numbers of their motors."""
    driven = {int(model.actuator_trnid[k, 0]) for k in _acting(model, *_ON_JOINTS)}
    led = {int(j) for j, kind in zip(model.wrap_objid, model.wrap_type, strict=True) if kind == 1}
    hinges = [j for j in sorted(driven - led) if model.jnt_type[j] > _BALL]
    return {j: _numbers(model, "dof", int(model.jnt_dofadr[j])) for j in hinges}


def motor_tendons(model: Any) -> dict[int, dict[str, Any]]:
    """Tendons that one actuator moves: numbers of their motors."""
    moved = [int(model.actuator_trnid[k, 0]) for k in _acting(model, _ON_TENDON)]
    return {t: _numbers(model, "tendon", t) for t in sorted(set(moved)) if moved.count(t) == 1}


def _numbers(model: Any, start: str, k: int) -> dict[str, Any]:
    """Numbers of a motor by field, without damping that is a polynomial of the speed."""
    polynomial = getattr(model, f"{start}_dampingpoly", None)
    curved = polynomial is not None and np.any(polynomial[k])
    found = dict[str, Any]()
    for quantity, field in OF_MOTORS.items():
        array = getattr(model, f"{start}_{quantity}", None)  # versions of MuJoCo lack some
        if array is not None and array[k] and not (curved and quantity == "damping"):
            found[field] = float(array[k])
    return found


def _acting(model: Any, *kinds: int) -> Iterator[int]:
    """Actuators of some kinds of transmission."""
    return (k for k in range(model.nu) if int(model.actuator_trntype[k]) in kinds)


def _unmotored(model: Any) -> Iterator[str]:
    """Parts with an `armature` that is not the rotor of a motor."""
    read = {_named(model, "joint", j) for j, of in motor_joints(model).items() if "rotor" in of}
    read |= {_named(model, "tendon", t) for t, of in motor_tendons(model).items() if "rotor" in of}
    yield from (name for name in _with("armature")(model) if name not in read)


def spring_joints(model: Any) -> list[int]:
    """Joints with a spring that is read: hinges and slides alone on a body, not on the base."""
    polynomial = np.asarray(getattr(model, "jnt_stiffnesspoly", np.zeros((model.njnt, 1))))
    found = []
    for j in map(int, np.flatnonzero(model.jnt_stiffness)):
        body = int(model.jnt_bodyid[j])
        alone = model.body_jntnum[body] == 1 and model.jnt_type[j] > _BALL
        straight = not np.any(polynomial.reshape(model.njnt, -1)[j])
        if alone and straight and model.body_parentid[body] != 0:
            found.append(j)
    return found


def _unread_springs(model: Any) -> Iterator[str]:
    """Parts with springs that are not read."""
    left = list(_with("stiffness", "stiffnesspoly")(model))
    for j in spring_joints(model):
        left.remove(_named(model, "joint", j))  # joints without names have an entry each
    yield from left


def _named(model: Any, kind: str, k: int) -> str:
    name = str(getattr(model, kind)(k).name)
    return f"{kind} `{shown(name)}`" if name else kind


def _some(present: object) -> list[str]:
    """One owner without a name, if something is present."""
    return [""] if bool(present) else []


def _contacts(model: Any) -> list[str]:
    shapes = np.any(model.geom_contype) or np.any(model.geom_conaffinity) or model.npair
    return _some(shapes and not is_disabled(model, "contact"))


def _switched_off(model: Any) -> Iterator[str]:
    """Actuators of groups that are switched off."""
    groups = int(model.opt.disableactuator)
    for k in range(model.nu):
        if groups >> max(int(model.actuator_group[k]), 0) & 1:
            yield _named(model, "actuator", k)


def _inactive(model: Any) -> Iterator[str]:
    """Couplings of two joints that are not active at the start."""
    for k in np.flatnonzero((model.eq_type == _COUPLING) & (model.eq_active0 == 0)):
        yield f"coupling of {_named(model, 'joint', int(model.eq_obj1id[k]))}"


def _ranges(model: Any) -> Iterator[str]:
    """Tendons and balls with limits."""
    for kind, chosen in (
        ("tendon", model.tendon_limited),
        ("joint", (model.jnt_type == _BALL) & (model.jnt_limited != 0)),
    ):
        yield from (_named(model, kind, int(k)) for k in np.flatnonzero(chosen))


def _controlled(model: Any) -> Iterator[str]:
    """Keyframes with controls or activations, which are no part of a state here."""
    for k in range(model.nkey):
        if np.any(model.key_ctrl[k]) or np.any(model.key_act[k]):
            yield _named(model, "key", k)


_LOOPS = "constraints other than couplings of two joints, as of closed loops"

RULES: tuple[tuple[str, bool, str, Owners], ...] = (
    (
        *("equality", True, _LOOPS),
        lambda m: _some(np.any(m.eq_type != _COUPLING) or np.any(m.eq_obj2id < 0)),
    ),
    (
        *("spatial", True, "tendons that are led through space"),
        lambda m: _some(np.any(m.wrap_type != _COEFFICIENT)),
    ),
    ("gravcomp", True, "gravity compensation", _with("gravcomp")),
    ("wind", True, "wind", lambda m: _some(np.any(m.opt.wind))),
    ("density", True, "forces of a fluid", lambda m: _some(m.opt.density)),
    ("viscosity", True, "forces of a fluid", lambda m: _some(m.opt.viscosity)),
    ("actuatorgroupdisable", True, "actuators that are switched off", _switched_off),
    ("active", False, "couplings that are switched off", _inactive),
    (
        "mocap",
        True,
        "bodies that the simulation moves",
        lambda m: _some(np.any(m.body_mocapid >= 0)),
    ),
    ("armature", True, "the inertia of rotors", _unmotored),
    ("stiffness", True, "springs", _unread_springs),
    *(
        (f"flag {name}", True, meaning, lambda m, name=name: _some(is_disabled(m, name)))
        for name, meaning in _FLAGS.items()
    ),
    ("damping", False, "damping", _with("damping", "dampingpoly")),
    ("frictionloss", False, "dry friction", _with("frictionloss")),
    ("range", False, "limits of tendons and ball joints", _ranges),
    (
        *("actuator", False, "laws of actuators: each is a force or torque here"),
        _with("gaintype", "biastype", "dyntype"),
    ),
    ("geom", False, "contacts", _contacts),
    ("sensor", False, "sensors", lambda m: _some(m.nsensor)),
    ("keyframe", False, "controls and activations of stored states", _controlled),
)
"""Element, whether it is refused, its meaning, and where a model has it."""


def read_friction(
    model: Any,
    found: Unread,
    joints: Iterable[int],
    tendons: Iterable[int],
    damped: Iterable[int] = (),
) -> None:
    """Take friction that is that of motors, and damping of springs, from the parts not read."""
    names = {_named(model, "joint", j): motor_joints(model)[j] for j in joints}
    names |= {_named(model, "tendon", t): motor_tendons(model)[t] for t in tendons}
    for j in damped:
        names.setdefault(_named(model, "joint", j), {})["viscous"] = True
    of_motors = {"damping": "viscous", "frictionloss": "coulomb"}
    found.parts = [
        part
        for part in found.parts
        if of_motors.get(part.element, "") not in names.get(part.owner, {})
    ]


def unread_mjcf(model: Any, found: Unread) -> None:
    """Add the parts of a compiled model that the robot lacks."""
    for element, refused, meaning, owners in RULES:
        if element == "armature" and element in found.allowed:
            owners = _with(element)  # the armature of driven joints is left out too
        if element == "stiffness" and element in found.allowed:
            owners = _with(element, "stiffnesspoly")  # so are the springs of hinges and slides
        found.parts += [Part(element, owner, meaning, refused) for owner in owners(model)]
