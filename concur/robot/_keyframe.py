"""Stored states of a robot, by names of its joints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from concur.codegen import finite_floats
from concur.errors import DescriptionError
from concur.robot._bodies import BodyTree, unknown_name
from concur.tables import Expected, NumberOrList

Joints = Annotated[Mapping[str, NumberOrList], Expected("a table of joints")]
Freedoms = Annotated[Mapping[str, float], Expected("a table of velocities")]


@dataclass(frozen=True)
class Keyframe:
    """A stored state of a robot, such as its home position.

    Parameters
    ----------
    q : mapping of str to float or sequence of float
        Configurations by joint, m and rad: a number for a joint with one coordinate, else a list.
        Default: neutral.
    v : mapping of str to float
        Velocities by freedom, m/s and rad/s. Default: zero.

    Examples
    --------
    >>> import concur as cc
    >>> cc.robot.Keyframe({"elbow": 0.5}).q
    {'elbow': 0.5}
    """

    q: Joints = field(default_factory=dict, hash=False)
    v: Freedoms = field(default_factory=dict, hash=False)

    def of(self, tree: BodyTree, where: str) -> tuple[np.ndarray, np.ndarray]:
        """Configuration (nq,) and velocity (nv,) of a robot; names and sizes must fit."""
        q, v, seen = tree._identities(), np.zeros(tree.nv), dict[int, str]()
        for name, value in self.q.items():
            if name not in tree.joints:
                raise unknown_name(f"{where}, `q`", "joint", name, tree.joint_names)
            index, place = tree.joints[name], f"{where}, `q`, joint `{name}`"
            if index in seen:
                cure = "Keep the name of the joint."
                came = f"`{seen[index]}` and `{name}`"
                raise DescriptionError(place, expected="each joint once", came=came, cure=cure)
            seen[index], span = name, tree.q_spans[index]
            q[span] = finite_floats(np.atleast_1d(np.array(value)), place, q[span].shape)
        for name, rate in self.v.items():
            if name not in tree.freedom_names:
                raise unknown_name(f"{where}, `v`", "velocity", name, tree.freedom_names)
            v[tree.freedom_names.index(name)] = finite_floats(rate, f"{where}, `v` of `{name}`", ())
        return q, v

    def renamed(self, prefix: str) -> Keyframe:
        """The state of a robot whose names have a prefix."""
        q, v = ({prefix + name: x for name, x in part.items()} for part in (self.q, self.v))
        return Keyframe(q, v)
