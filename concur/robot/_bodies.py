"""Bodies in a tree: names, order, coordinates, and the product of the joints' groups."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeVar

import casadi as ca
import numpy as np

from concur.codegen import Array, EvaluatedMethods, Vector, evaluated
from concur.errors import ConcurError, DescriptionError, UnknownNameError, entries, shown
from concur.robot._body import Body
from concur.robot._numbers import RobotNumbers
from concur.robot.joints import Joint

T = TypeVar("T")
JointMap: TypeAlias = Callable[[Joint, Array, Array], Array]


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
    """

    name: str
    bodies: Sequence[Body]
    _index: dict[str, int] = field(init=False, repr=False, compare=False)
    _starts: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        bodies = _ordered(self._where, self._entries("bodies", Body))
        starts, iq, iv = [], 0, 0
        for body in bodies:
            starts.append((iq, iv))
            iq, iv = iq + body.joint.nq, iv + body.joint.nv
        starts.append((iq, iv))
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "_index", {body.name: i for i, body in enumerate(bodies)})
        object.__setattr__(self, "_starts", tuple(starts))

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

    @property
    def numbers(self) -> RobotNumbers | None:
        """Expressions in place of the numbers of the description, of a `SymbolicRobot` only."""
        return None

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
        if self.numbers is not None:
            raise ConcurError(
                f"{asked} of `{self.name}`",
                expected="a robot that contains numbers only",
                came="one with expressions in place of its numbers",
                cure="Call it with the robot of one world, from Plant.rebuilt(world).",
            )
        return self.bodies

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self._starts[-1][0]

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return self._starts[-1][1]

    @property
    def base(self) -> Body:
        """The body without parent."""
        return self.bodies[0]

    @property
    def total_mass(self) -> float:
        """Sum of the masses, kg."""
        return sum(body.inertia.mass for body in self.bodies)

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

    def index(self, body: str) -> int:
        """Place of a body in `bodies`.

        Parameters
        ----------
        body : str
            Name of the body.

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
            raise unknown_name(f"robot `{self.name}`", "body", body, self._index) from None

    def parent_index(self, index: int) -> int | None:
        """Index of the parent of a body, none for the base.

        Parameters
        ----------
        index : int
            Index of the body.

        Returns
        -------
        int or None
            Index of its parent.
        """
        parent = self.bodies[index].parent
        return None if parent is None else self._index[parent]

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
        path = [index]
        while (parent := self.parent_index(path[-1])) is not None:
            path.append(parent)
        return tuple(reversed(path))

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
        for k, body in enumerate(self.bodies):
            parent = self.parent_index(k)
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
        i = self.index(body)
        return slice(self._starts[i][0], self._starts[i + 1][0])

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
        i = self.index(body)
        return slice(self._starts[i][1], self._starts[i + 1][1])

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

    @property
    def freedom_names(self) -> tuple[str, ...]:
        """Name of each velocity coordinate: the body's, with the freedom if it has several."""
        return tuple(
            body.name if body.joint.nv == 1 else f"{body.name}[{freedom}]"
            for body in self.bodies
            for freedom in body.joint.freedom_names
        )

    @property
    def effort_units(self) -> tuple[str, ...]:
        """Unit of the force or torque along each velocity coordinate."""
        return tuple(unit for body in self.bodies for unit in body.joint.effort_units)

    def _identities(self) -> np.ndarray:
        """Coordinates of the joints' identities, (nq,)."""
        return np.concatenate([body.joint.neutral for body in self.bodies])

    @cached_property
    def quaternions(self) -> Mapping[int, str]:
        """Where the quaternions start in q, and the bodies whose joints they turn."""
        found = {}
        for body in self.bodies:
            at = body.joint.quaternion_at
            if at is not None:
                found[self.q_slice(body.name).start + at] = body.name
        return found

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
        return self._joint_by_joint(lambda joint, q, v: joint.rate(q, v), q, v)

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
        return self._joint_by_joint(lambda joint, q, dv: joint.integrate(q, dv), q, dv)

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
        parts = []
        for i, body in enumerate(self.bodies):
            span = slice(self._starts[i][0], self._starts[i + 1][0])
            parts.append(body.joint.difference(q0[span, :], q1[span, :]))
        return ca.vertcat(*parts)

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
        return self._blockwise(lambda joint, a, b: joint.dexp_inverse(a, b), dv, v)

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
        return self._blockwise(lambda joint, x, y: joint.bracket(x, y), a, b)

    def _joint_by_joint(self, act: JointMap, q: Vector, v: Vector) -> Array:
        parts = []
        for i, body in enumerate(self.bodies):
            (iq, iv), (jq, jv) = self._starts[i], self._starts[i + 1]
            parts.append(act(body.joint, q[iq:jq, :], v[iv:jv, :]))
        return ca.vertcat(*parts)

    def _blockwise(self, act: JointMap, a: Array, b: Array) -> Array:
        parts = []
        for i, body in enumerate(self.bodies):
            span = slice(self._starts[i][1], self._starts[i + 1][1])
            parts.append(act(body.joint, a[span, :], b[span, :]))
        return ca.vertcat(*parts)


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
    if not bodies:
        raise DescriptionError(
            where, expected="at least one body", came="no bodies", cure="Add the base."
        )
    names = [body.name for body in bodies]
    for name in names:
        if names.count(name) > 1:
            raise DescriptionError(
                f"{where}, body `{name}`",
                expected="each name once",
                came=f"{names.count(name)} bodies of this name",
                cure="Rename all but one.",
            )
    roots = [body.name for body in bodies if body.parent is None]
    for body in bodies:
        if body.parent is not None and body.parent not in names:
            raise unknown_name(f"{where}, body `{body.name}`, `parent`", "body", body.parent, names)
    if len(roots) > 1:
        raise DescriptionError(
            f"{where}, `parent`",
            expected="one body without parent: the base",
            came=", ".join(roots) or "none: the parents form a cycle",
            cure="Give every other body the name of its parent.",
        )
    placed: list[Body] = []
    waiting = list(bodies)
    while waiting:
        done = {body.name for body in placed}
        ready = next((b for b in waiting if b.parent is None or b.parent in done), None)
        if ready is None:
            cycle = _cycle(waiting)
            raise DescriptionError(
                f"{where}, `parent`",
                expected="parents that lead to the base",
                came="the cycle " + " -> ".join(cycle),
                cure="Change one of these parents.",
                cycle=cycle,
            )
        placed.append(ready)
        waiting.remove(ready)
    return tuple(placed)


def _cycle(bodies: Sequence[Body]) -> list[str]:
    parent = {body.name: body.parent for body in bodies}
    trail = [bodies[0].name]
    while parent[trail[-1]] not in trail:
        trail.append(str(parent[trail[-1]]))
    return [*trail[trail.index(str(parent[trail[-1]])) :], str(parent[trail[-1]])]
