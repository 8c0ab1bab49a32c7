"""Sites and keyframes of compiled MJCF models: frames and stored states of a robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from concur.interop import mujoco
from concur.io._names import free_name
from concur.io._unread import Part
from concur.robot import Body, Keyframe, Pose, Tree, joints
from concur.tables import MOST_BODIES

Name = Callable[[str, int], str]
"""Name of a part of the model, by kind and index; a number if it has none."""


def site_frames(
    model: Any, name: Name, owners: Mapping[int, str], shifts: Mapping[int, Any], taken: set[str]
) -> tuple[list[Body], list[Part]]:
    """Named sites as bodies without mass, and what the robot lacks or names otherwise.

    By number in the model, `owners` are names of bodies, `shifts` origins of their frames (m).
    """
    frames: list[Body] = []
    parts: list[Part] = []
    for k in range(model.nsite):
        if not model.site(k).name:
            continue
        own, body = name("site", k), int(model.site_bodyid[k])
        if body not in owners:
            parts.append(Part("site", f"`{own}`", "frames on bodies that the robot lacks"))
            continue
        label = free_name(own, taken)
        taken.add(label)
        if label != own:
            parts.append(Part("site", f"`{label}`", "frames with another name, which is taken"))
        place = tuple((model.site_pos[k] - shifts[body]).tolist())
        turn = tuple(np.roll(model.site_quat[k], -1).tolist())
        frames.append(Body(label, joints.Fixed(), owners[body], Pose(place, turn)))
    if len(frames) + len(owners) > MOST_BODIES:
        return [], [Part("site", "", f"frames of a robot with more than {MOST_BODIES} bodies")]
    return frames, parts


def keyframes(
    model: Any, name: Name, bodies: Sequence[Body], carried: Mapping[str, Sequence[int]]
) -> dict[str, Keyframe]:
    """Stored states by name; `carried` has the joints of the model that move each body.

    Joints of a base of the sidecar have no coordinates in the file and stay neutral.
    """
    if not model.nkey:
        return {}
    tree = Tree("keyframes", bodies)
    moving = [body for body in tree.bodies if body.joint.nv]
    order, found = mujoco(tree, [body.name for body in moving]), dict[str, Keyframe]()
    rest = order.to_q(tree.neutral()), np.zeros(order.nv)
    for k in range(model.nkey):
        position, velocity, at, start = *(part.copy() for part in rest), 0, 0
        for body in moving:
            mine = _state(model, k, carried.get(body.name, ()))
            ends = (
                at + order.parts[body.name].nq,
                start + order.parts[body.name].size(body.joint.nv),
            )
            if carried.get(body.name):
                position[at : ends[0]], velocity[start : ends[1]] = mine
            at, start = ends
        q = order.from_q(position)
        v = order.from_v(q, velocity)
        coordinates = {
            body.joint_label: own.tolist()
            if len(own := q[tree.q_slice(body.name)]) > 1
            else own[0].item()
            for body in moving
            if carried.get(body.name)
        }
        rates = {n: float(x) for n, x in zip(tree.freedom_names, v, strict=True) if x}
        found[name("key", k)] = Keyframe(coordinates, rates)
    return found


def _state(model: Any, k: int, joints: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities of some joints in a keyframe, quaternions of unit norm."""
    positions, velocities = [np.zeros(0)], [np.zeros(0)]
    for j in joints:
        size, freedoms = {0: (7, 6), 1: (4, 3)}.get(int(model.jnt_type[j]), (1, 1))
        at, start = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
        own = model.key_qpos[k, at : at + size].copy()
        if size > 1:  # as MuJoCo does, which takes zeros for no rotation
            norm = float(np.linalg.norm(own[-4:]))
            own[-4:] = own[-4:] / norm if norm > 1e-15 else [1.0, 0.0, 0.0, 0.0]
        positions.append(own)
        velocities.append(model.key_qvel[k, start : start + freedoms])
    return np.concatenate(positions), np.concatenate(velocities)
