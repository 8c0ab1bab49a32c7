"""Parts of compiled MJCF models: read, listed or refused, in one table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from concur.errors import shown
from concur.io._unread import Part, Unread

_COUPLING = 2
_COEFFICIENT = 1
_BALL = 1
"""Numbers of MuJoCo's equality constraint of joints, of a joint in a tendon, and of balls."""

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


def _owners(model: Any, kind: str, *names: str) -> list[str]:
    """Joints, bodies, tendons or actuators for which one of some arrays is not zero.

    Arrays that this version of MuJoCo lacks are zero.
    """
    arrays = [np.asarray(getattr(model, name)) for name in names if hasattr(model, name)]
    rows = [array.reshape(len(array), -1).any(axis=1) for array in arrays if len(array)]
    chosen = np.flatnonzero(np.any(rows, axis=0)) if rows else ()
    named = [str(getattr(model, kind)(int(i)).name) for i in chosen]
    return [f"{kind} `{shown(name)}`" if name else kind for name in named]


def _joints(model: Any, *names: str) -> list[str]:
    """Joints with a freedom for which one of some arrays is not zero."""
    arrays = [np.asarray(getattr(model, name)) for name in names if hasattr(model, name)]
    rows = [array.reshape(model.nv, -1).any(axis=1) for array in arrays if model.nv]
    chosen = np.unique(model.dof_jntid[np.any(rows, axis=0)]) if rows else ()
    named = [str(model.joint(int(j)).name) for j in chosen]
    return [f"joint `{shown(name)}`" if name else "joint" for name in named]


def _some(present: object) -> list[str]:
    """One owner without a name, if something is present."""
    return [""] if bool(present) else []


def _mocap(model: Any) -> list[str]:
    return _some(np.any(model.body_mocapid >= 0))


def _contacts(model: Any) -> list[str]:
    shapes = np.any(model.geom_contype) or np.any(model.geom_conaffinity) or model.npair
    return _some(shapes and not is_disabled(model, "contact"))


def _switched_off(model: Any) -> list[str]:
    """Actuators of groups that are switched off."""
    groups = int(model.opt.disableactuator)
    off = [k for k in range(model.nu) if groups >> max(int(model.actuator_group[k]), 0) & 1]
    return [f"actuator `{shown(str(model.actuator(k).name))}`" for k in off]


def _inactive(model: Any) -> list[str]:
    """Couplings of two joints that are not active at the start."""
    off = np.flatnonzero((model.eq_type == _COUPLING) & (model.eq_active0 == 0))
    return [f"coupling of `{shown(str(model.joint(int(model.eq_obj1id[k])).name))}`" for k in off]


def _balls(model: Any) -> list[str]:
    chosen = np.flatnonzero((model.jnt_type == _BALL) & (model.jnt_limited != 0))
    return [f"joint `{shown(str(model.joint(int(j)).name))}`" for j in chosen]


RULES: tuple[tuple[str, bool, str, Callable[[Any], Iterable[str]]], ...] = (
    (
        *("equality", True, "constraints other than couplings of two joints, as of closed loops"),
        lambda m: _some(np.any(m.eq_type != _COUPLING) or np.any(m.eq_obj2id < 0)),
    ),
    (
        *("spatial", True, "tendons that are led through space"),
        lambda m: _some(np.any(m.wrap_type != _COEFFICIENT)),
    ),
    ("gravcomp", True, "gravity compensation", lambda m: _owners(m, "body", "body_gravcomp")),
    ("wind", True, "wind", lambda m: _some(np.any(m.opt.wind))),
    ("density", True, "forces of a fluid", lambda m: _some(m.opt.density)),
    ("viscosity", True, "forces of a fluid", lambda m: _some(m.opt.viscosity)),
    ("actuatorgroupdisable", True, "actuators that are switched off", _switched_off),
    ("active", False, "couplings that are switched off", _inactive),
    ("mocap", True, "bodies that the simulation moves", _mocap),
    (
        *("armature", True, "the inertia of rotors"),
        lambda m: [
            *_joints(m, "dof_armature"),
            *_owners(m, "tendon", "tendon_armature"),
            *_owners(m, "actuator", "actuator_armature"),
        ],
    ),
    (
        *("stiffness", True, "springs"),
        lambda m: [
            *_owners(m, "joint", "jnt_stiffness", "jnt_stiffnesspoly"),
            *_owners(m, "tendon", "tendon_stiffness", "tendon_stiffnesspoly"),
        ],
    ),
    *(
        (f"flag {name}", True, meaning, lambda m, name=name: _some(is_disabled(m, name)))
        for name, meaning in _FLAGS.items()
    ),
    (
        *("damping", False, "damping"),
        lambda m: [
            *_joints(m, "dof_damping", "dof_dampingpoly"),
            *_owners(m, "tendon", "tendon_damping", "tendon_dampingpoly"),
            *_owners(m, "actuator", "actuator_damping", "actuator_dampingpoly"),
        ],
    ),
    (
        *("frictionloss", False, "dry friction"),
        lambda m: [
            *_joints(m, "dof_frictionloss"),
            *_owners(m, "tendon", "tendon_frictionloss"),
        ],
    ),
    (
        *("range", False, "limits of tendons and ball joints"),
        lambda m: [*_owners(m, "tendon", "tendon_limited"), *_balls(m)],
    ),
    (
        *("actuator", False, "laws of actuators: each is a force or torque here"),
        lambda m: _owners(
            m, "actuator", "actuator_gaintype", "actuator_biastype", "actuator_dyntype"
        ),
    ),
    ("geom", False, "contacts", _contacts),
    ("sensor", False, "sensors", lambda m: _some(m.nsensor)),
    ("keyframe", False, "stored states", lambda m: _some(m.nkey)),
)
"""Element, whether it is refused, its meaning, and where a model has it."""


def unread_mjcf(model: Any, found: Unread) -> None:
    """Add the parts of a compiled model that the robot lacks."""
    for element, refused, meaning, owners in RULES:
        found.parts += [Part(element, owner, meaning, refused) for owner in owners(model)]
