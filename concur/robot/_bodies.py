"""Bodies in a tree: names, order, coordinates, and the product of the joints' groups."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from concur.codegen import Array, EvaluatedMethods, Place, Vector, evaluated
from concur.errors import ConcurError, DescriptionError, UnknownNameError, entries, shown
from concur.robot._body import Body

T = TypeVar("T")


@dataclass(frozen=True)
class BodyTree(EvaluatedMethods):
    """Bodies in a tree, where their joints stand in q and v, and the joints' groups.

    Parameters
    ----------
    name : str
        Name of the robot.
    bodies : sequence of Body
        The bodies in any order; exactly one has no parent: the base. They are kept with
        parents before children.

    Raises
    ------
    DescriptionError
        If names repeat, or the parents form no tree.
    UnknownNameError
        If a parent does not exist.

    Attributes
    ----------
    joints : mapping of str to int
        Index of the body on each joint, by the name of the joint, and by that of the body where no
        joint has it: so users name joints.
    """

    name: str
    bodies: Sequence[Body]
    nq: int = field(init=False, repr=False, compare=False)
    nv: int = field(init=False, repr=False, compare=False)
    parents: tuple[int | None, ...] = field(init=False, repr=False, compare=False)
    paths: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    q_spans: tuple[slice, ...] = field(init=False, repr=False, compare=False)
    v_spans: tuple[slice, ...] = field(init=False, repr=False, compare=False)
    freedom_names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    effort_units: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _index: dict[str, int] = field(init=False, repr=False, compare=False)
    joints: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bodies = _ordered(self._where, self._entries("bodies", Body))
        joints = [body.joint for body in bodies]
        index = {body.name: i for i, body in enumerate(bodies)}
        parents = tuple(None if b.parent is None else index[b.parent] for b in bodies)
        paths: list[tuple[int, ...]] = []
        for i, parent in enumerate(parents):
            paths.append((i,) if parent is None else (*paths[parent], i))
        q_spans, v_spans = _spans([j.nq for j in joints]), _spans([j.nv for j in joints])
        names = tuple(n for body in bodies for n in body.of_each(body.joint.freedom_names))
        self._keep(
            bodies=bodies,
            nq=q_spans[-1].stop,
            nv=v_spans[-1].stop,
            parents=parents,
            paths=tuple(paths),
            q_spans=q_spans,
            v_spans=v_spans,
            freedom_names=names,
            effort_units=tuple(unit for joint in joints for unit in joint.effort_units),
            _index=index,
            joints=self._named_joints(bodies),
        )

    def _named_joints(self, bodies: Sequence[Body]) -> dict[str, int]:
        """Index of the body on each joint, by its name, and by the body's where no joint has it."""
        found: dict[str, int] = {}
        for i, body in enumerate(bodies):
            other = bodies[found.setdefault(body.joint_label, i)]
            if other is not body:
                raise DescriptionError(
                    f"{self._where}, body `{body.name}`, `joint_name`",
                    expected="each name of a joint once",
                    came=f"`{body.joint_label}`, the joint of `{other.name}` too",
                    cure="Give one of them another `joint_name`.",
                )
        return {body.name: i for i, body in enumerate(bodies)} | found

    def _keep(self, **values: Any) -> None:
        """Set attributes of this frozen object while it is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def _where(self) -> str:
        """Place of the robot in errors."""
        return f"robot `{self.name}`"

    def _entries(self, attribute: str, kind: type[T]) -> tuple[T, ...]:
        """Entries of an attribute, all of one kind."""
        values = getattr(self, attribute)
        found = entries(values, kind)
        if found is None:
            raise DescriptionError(
                f"{self._where}, `{attribute}`",
                expected=f"a list of {kind.__name__}",
                came=f"{type(values).__name__} {shown(values)}",
                cure=f"Write [{kind.__name__}(...), ...].",
            )
        return found

    def described(self, asked: str) -> Sequence[Body]:
        """The bodies, for a function that takes the numbers of their description.

        Parameters
        ----------
        asked : str
            Name of the function.

        Returns
        -------
        sequence of Body
            `bodies`.

        Raises
        ------
        ConcurError
            If expressions take the place of these numbers: the result would be the nominal one.
        """
        if not self._bound:
            raise ConcurError(
                f"{asked} of `{self.name}`",
                expected="a robot that contains numbers only",
                came="one with expressions in place of its numbers",
                cure="Call it with the robot of one world, from Plant.rebuilt(world).",
            )
        return self.bodies

    @property
    def base(self) -> Body:
        """The body without parent."""
        return self.bodies[0]

    @property
    def total_mass(self) -> float:
        """Sum of the masses, kg."""
        return sum(body.inertia.mass for body in self.bodies)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints that move, in the order of q."""
        return tuple(body.joint_label for body in self.bodies if body.joint.nv)

    @property
    def limits(self) -> np.ndarray:
        """Lower and upper bound of each configuration coordinate, shape (nq, 2), m and rad."""
        return np.array([pair for body in self.bodies for pair in body.limits]).reshape(-1, 2)

    @property
    def speed_limits(self) -> np.ndarray:
        """Largest speed of each freedom, shape (nv,), m/s and rad/s; infinite without a limit."""
        return np.array([x for body in self.bodies for x in body.speed_limit], dtype=float)

    @property
    def torque_limits(self) -> np.ndarray:
        """Largest torque at each freedom, shape (nv,), N and N m; infinite without a limit."""
        return np.array([x for body in self.bodies for x in body.torque_limit], dtype=float)

    def index(self, body: str, where: str = "") -> int:
        """Place of a body in `bodies`.

        Parameters
        ----------
        body : str
            Name of the body.
        where : str
            Place named in the error, below that of the robot.

        Returns
        -------
        int
            Its index.

        Raises
        ------
        UnknownNameError
            If there is no such body.
        """
        try:
            return self._index[body]
        except (KeyError, TypeError):
            place = ", ".join(filter(None, (f"robot `{self.name}`", where)))
            raise unknown_name(place, "body", body, self._index) from None

    def label(self, body: str) -> str:
        """Name of the joint of a body.

        Parameters
        ----------
        body : str
            Name of the body.

        Returns
        -------
        str
            Its `joint_name`, or the body's name.
        """
        return self.bodies[self.index(body)].joint_label

    def path(self, index: int) -> tuple[int, ...]:
        """Bodies from the base to a body, both included.

        Parameters
        ----------
        index : int
            Index of the body.

        Returns
        -------
        tuple of int
            Indices, base first.
        """
        return self.paths[index]

    def welded(self, index: int) -> dict[int, np.ndarray]:
        """Bodies that move with a body as one: itself, and others by joints that do not move.

        Parameters
        ----------
        index : int
            Index of the body.

        Returns
        -------
        dict of int to numpy.ndarray
            By index, the pose of each in the frame of the body, shape (4, 4).
        """
        found = {index: np.eye(4)}
        for k, (body, parent) in enumerate(zip(self.bodies, self.parents, strict=True)):
            if k > index and parent in found and not body.joint.nv:
                found[k] = found[parent] @ body.placement.matrix
        return found

    def q_slice(self, body: str) -> slice:
        """Where a joint's coordinates stand in q.

        Parameters
        ----------
        body : str
            Name of the body.

        Returns
        -------
        slice
            Range in q.
        """
        return self.q_spans[self.index(body)]

    def v_slice(self, body: str) -> slice:
        """Where a joint's velocities stand in v.

        Parameters
        ----------
        body : str
            Name of the body.

        Returns
        -------
        slice
            Range in v.
        """
        return self.v_spans[self.index(body)]

    def freedoms(self, *bodies: str) -> list[int]:
        """Indices in v of the velocities of some joints.

        Parameters
        ----------
        *bodies : str
            Names of the joints' bodies.

        Returns
        -------
        list of int
            Indices, joint by joint.
        """
        spans = [self.v_slice(body) for body in bodies]
        return [i for span in spans for i in range(span.start, span.stop)]

    def _identities(self) -> np.ndarray:
        """Coordinates of the joints' identities, (nq,)."""
        return np.concatenate([body.joint.neutral for body in self.bodies])

    @cached_property
    def quaternions(self) -> Mapping[Place, str]:
        """Where the quaternions start in q, and the bodies whose joints they turn."""
        return {
            span.start + body.joint.quaternion_at: body.name
            for body, span in zip(self.bodies, self.q_spans, strict=True)
            if body.joint.quaternion_at is not None
        }

    @evaluated("(nq),(nv)->(nq)")
    def rate(self, q: Vector, v: Vector) -> Vector:
        """Time derivative of the configuration for a velocity.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nq,).
        """
        return self._by_joint("rate", q, self.q_spans, v, self.v_spans)

    @evaluated("(nq),(nv)->(nq)")
    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Move each joint by the exponential of a displacement.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        dv : array_like
            Displacement in the bases of the joints, m and rad, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nq,).
        """
        return self._by_joint("integrate", q, self.q_spans, dv, self.v_spans)

    @evaluated("(nq),(nq)->(nv)")
    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """Displacement from one configuration to another, m and rad: inverse of `integrate`.

        Parameters
        ----------
        q0 : array_like
            Start configuration, shape (nq,).
        q1 : array_like
            Target configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return self._by_joint("difference", q0, self.q_spans, q1, self.q_spans)

    @evaluated("(nv),(nv)->(nv)")
    def dexp_inverse(self, dv: Vector, v: Vector) -> Vector:
        """Rate of the displacement dv that makes the joints move with v, (2.1.4) inverted.

        Parameters
        ----------
        dv : array_like
            Displacement in the bases of the joints, m and rad, shape (nv,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return self._by_joint("dexp_inverse", dv, self.v_spans, v, self.v_spans)

    @evaluated("(nv),(nv)->(nv)")
    def bracket(self, a: Vector, b: Vector) -> Vector:
        """Lie bracket on the product of the joint groups.

        Parameters
        ----------
        a, b : array_like
            Algebra elements in the joints' bases, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (nv,).
        """
        return self._by_joint("bracket", a, self.v_spans, b, self.v_spans)

    def _by_joint(
        self, act: str, a: Array, a_spans: Sequence[slice], b: Array, b_spans: Sequence[slice]
    ) -> Array:
        """Values of a method of each joint for its parts of two arrays."""
        parts = zip(self.bodies, a_spans, b_spans, strict=True)
        return ca.vertcat(*[getattr(body.joint, act)(a[i, :], b[j, :]) for body, i, j in parts])


def _spans(sizes: Sequence[int]) -> tuple[slice, ...]:
    """Ranges of these sizes, one after the other."""
    ends = list(accumulate(sizes))
    return tuple(slice(end - size, end) for end, size in zip(ends, sizes, strict=True))


def unknown_name(
    where: str, what: str, name: object, known: Sequence[str] | dict[str, int]
) -> ConcurError:
    """Build the error for a name that does not exist, with the nearest that does.

    Parameters
    ----------
    where : str
        Place of the fault.
    what : str
        Kind of thing that was named.
    name : object
        The name that came.
    known : sequence of str
        The names there are.

    Returns
    -------
    UnknownNameError
        The error, to be raised.
    """
    near = difflib.get_close_matches(shown(name, 255), list(known), n=1)
    return UnknownNameError(
        where,
        expected=f"{'an' if what[:1] in 'aeiou' else 'a'} {what} among {', '.join(known)}",
        came=f"'{name}'" if isinstance(name, str) else shown(name),
        cure=f"Did you mean {near[0]!r}?" if near else "Check the spelling.",
    )


def _ordered(where: str, bodies: tuple[Body, ...]) -> tuple[Body, ...]:
    """The bodies with parents before children, in the given order where this leaves a choice."""
    if not bodies:
        raise DescriptionError(
            where, expected="at least one body", came="no bodies", cure="Add the base."
        )
    parents = {body.name: body.parent for body in bodies}
    if len(parents) < len(bodies):
        name, count = Counter(body.name for body in bodies).most_common(1)[0]
        raise DescriptionError(
            f"{where}, body `{name}`, `name`",
            expected="each name once",
            came=f"{count} bodies of this name",
            cure="Rename all but one.",
        )
    for name, parent in parents.items():
        if parent is not None and parent not in parents:
            raise unknown_name(f"{where}, body `{name}`, `parent`", "body", parent, list(parents))
    roots = [name for name, parent in parents.items() if parent is None]
    if len(roots) > 1:
        raise DescriptionError(
            f"{where}, `parent`",
            expected="one body without parent: the base",
            came=", ".join(roots),
            cure="Give every other body the name of its parent.",
        )
    placed: dict[str | None, Body] = {}
    waiting = list(bodies)
    while waiting:
        ready = next((b for b in waiting if b.parent is None or b.parent in placed), None)
        if ready is None:
            trail, at = [waiting[0].name], str(waiting[0].parent)
            while at not in trail:
                trail, at = [*trail, at], str(parents[at])
            cycle = [*trail[trail.index(at) :], at]
            raise DescriptionError(
                f"{where}, `parent`",
                expected="parents that lead to the base",
                came="the cycle " + " -> ".join(cycle),
                cure="Change one of these parents.",
                cycle=cycle,
            )
        placed[ready.name] = ready
        waiting.remove(ready)
    return tuple(placed.values())
