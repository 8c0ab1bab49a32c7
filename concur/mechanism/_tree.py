"""The tree of bodies: names, order, coordinates, and the configuration space."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, EvaluatedMethods, Vector, attitude_error, evaluated, finite_floats
from concur.errors import (
    ConcurError,
    DescriptionError,
    UnknownNameError,
    entries,
    shown,
)
from concur.mechanism._body import Body
from concur.mechanism._drive import Drive, Mimic
from concur.mechanism._pose import vector
from concur.mechanism._steering import Linkage, Steering, linkages
from concur.mechanism._wheel import Wheel
from concur.mechanism.joints import Free, Joint, Planar, Sliding

COUPLED = 1e-6
"""Largest error of a joint that follows another, rad and m, and relative beyond one."""

JointMap: TypeAlias = Callable[[Joint, Array, Array], Array]


@dataclass(frozen=True)
class Tree(EvaluatedMethods):
    """Bodies in a tree with their wheels and actuators, and its configuration space.

    Parameters
    ----------
    name : str
        Name of the robot.
    bodies : sequence of Body
        The bodies in any order; exactly one has no parent: the base. They are kept with
        parents before children.
    wheels : sequence of Wheel
        Rolling contacts with a plane or a sphere.
    gravity : sequence of float
        Acceleration of gravity in the inertial frame, shape (3,), m/s^2.
    actuated : sequence of str, optional
        Names of the bodies whose joints have a motor each; default all but the base, the joints
        of `drives` and those that follow others.
    drives : sequence of Drive
        Motors on several joints, and thrusters.
    mimics : sequence of Mimic
        Joints that follow others.
    steering : sequence of Steering
        Steered wheels whose axles meet those of two others in one point.

    Raises
    ------
    DescriptionError
        If names repeat, the parents form no tree, the base is actuated, a joint of `drives` is
        actuated too, joints follow each other in a cycle, or a wheel cannot follow its guides.
    UnknownNameError
        If a parent, a wheel's body, an actuator, or a joint of a drive does not exist.
    """

    name: str
    bodies: Sequence[Body]
    wheels: Sequence[Wheel] = ()
    gravity: Sequence[float] = (0.0, 0.0, 0.0)
    actuated: Sequence[str] | None = None
    drives: Sequence[Drive] = ()
    mimics: Sequence[Mimic] = ()
    steering: Sequence[Steering] = ()
    _index: dict[str, int] = field(init=False, repr=False, compare=False)
    _starts: tuple[tuple[int, int], ...] = field(init=False, repr=False, compare=False)
    _linkages: tuple[Linkage, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        where = f"robot `{self.name}`"
        parts: dict[str, tuple[Any, ...]] = {}
        kinds = ("bodies", Body), ("wheels", Wheel), ("drives", Drive), ("mimics", Mimic)
        for attribute, kind in (*kinds, ("steering", Steering)):
            values = getattr(self, attribute)
            found = entries(values, kind)
            if found is None:
                raise DescriptionError(
                    f"{where}, `{attribute}`",
                    expected=f"a list of {kind.__name__}",
                    came=f"{type(values).__name__} {shown(values)}",
                    cure=f"Write [{kind.__name__}(...), ...].",
                )
            parts[attribute] = found
        bodies = _ordered(where, parts["bodies"])
        index = {body.name: i for i, body in enumerate(bodies)}
        starts, iq, iv = [], 0, 0
        for body in bodies:
            starts.append((iq, iv))
            iq, iv = iq + body.joint.nq, iv + body.joint.nv
        starts.append((iq, iv))
        gravity = vector(self.gravity, 3, f"{where}, `gravity`")
        for attribute, value in (
            ("bodies", bodies),
            ("wheels", parts["wheels"]),
            ("drives", parts["drives"]),
            ("steering", parts["steering"]),
            ("gravity", gravity),
            ("_index", index),
            ("_starts", tuple(starts)),
        ):
            object.__setattr__(self, attribute, value)
        for wheel in self.wheels:
            self.index(wheel.body)
            if wheel.support is not None and wheel.support.body is not None:
                self.index(wheel.support.body)
        object.__setattr__(self, "mimics", _mimics(where, bodies, parts["mimics"]))
        found = linkages(where, bodies, self.wheels, self.steering)
        object.__setattr__(self, "_linkages", found)
        self._check_linkages(where)
        geared = self._check_drives(where)
        object.__setattr__(self, "actuated", self._check_actuated(where, geared))

    def _check_linkages(self, where: str) -> None:
        """Refuse wheels that follow guides, and are coupled by `mimics` too."""
        for mimic in self.mimics:
            for linkage in self._linkages:
                if linkage.joint in (mimic.body, mimic.of):
                    raise DescriptionError(
                        f"{where}, mimic `{mimic.body}`",
                        expected="joints without a wheel that follows guides",
                        came=f"`{linkage.joint}`: {linkage.text}",
                        cure="Remove the coupling, or couple the steering joints of the guides.",
                    )

    def _check_drives(self, where: str) -> dict[str, str]:
        """Check the drives; by body, the drive that moves its joint."""
        names = self.freedom_names
        bodies = {self.freedom_names[i]: b.name for b in self.bodies for i in self.freedoms(b.name)}
        geared: dict[str, str] = {}
        drives = [drive.name for drive in self.drives]
        for drive in self.drives:
            place = f"{where}, drive `{drive.name}`"
            own = drive.name in (drive.joints or ())  # a gear on one joint may have its name
            if drives.count(drive.name) > 1 or (drive.name in names and not own):
                raise DescriptionError(
                    place,
                    expected="a name that no joint and no other drive has",
                    came=f"`{drive.name}` twice",
                    cure="Rename the drive.",
                )
            if drive.body is not None:
                self.index(drive.body)
            for name in drive.joints or ():
                if name not in names:
                    raise unknown_name(f"{place}, `joints`", "joint", name, names)
                if bodies[name] == self.base.name and self._floats:
                    raise DescriptionError(
                        f"{place}, `joints`",
                        expected="joints other than the base",
                        came=f"the base `{self.base.name}`",
                        cure="A floating base has no motor: describe a thruster by `body` and "
                        "`wrench`.",
                    )
                geared[bodies[name]] = drive.name
        return geared

    @property
    def _floats(self) -> bool:
        """Whether the base is one that no motor can move."""
        return bool(self.wheels) or isinstance(self.base.joint, Free)

    def _check_actuated(self, where: str, geared: Mapping[str, str]) -> tuple[str, ...]:
        base = self.bodies[0].name
        if self.actuated is None:
            passive = {*geared, *self.following}
            passive |= {self.bodies[i].name for i in self.platforms}
            return tuple(b.name for b in self.bodies[1:] if b.joint.nv and b.name not in passive)
        names = None if isinstance(self.actuated, str) else entries(self.actuated, str)
        if names is None:
            raise DescriptionError(
                f"{where}, `actuated`",
                expected="a list of body names",
                came=f"{type(self.actuated).__name__} {shown(self.actuated)}",
                cure='Write ["left", "right"].',
            )
        for name in names:
            body = self.bodies[self.index(name)]
            if name == base and self._floats:
                raise DescriptionError(
                    f"{where}, `actuated`",
                    expected="joints other than the base",
                    came=f"the base `{base}`",
                    cure="A floating base is unactuated: its pose follows from the wheels or "
                    "from momentum. Remove it from the list.",
                )
            if self.index(name) in self.platforms:
                raise DescriptionError(
                    f"{where}, `actuated`",
                    expected="joints other than those of bodies that stand on wheels",
                    came=f"`{name}`",
                    cure="Its pose follows from the wheels. Remove it from the list.",
                )
            if name in geared:
                raise DescriptionError(
                    f"{where}, `actuated`",
                    expected="joints without a drive",
                    came=f"`{name}`, which the drive `{geared[name]}` moves",
                    cure="Remove it from the list, or give its own motor as a drive too.",
                )
            if body.joint.nv == 0:
                raise DescriptionError(
                    f"{where}, `actuated`",
                    expected="joints that can move",
                    came=f"the fixed joint of `{name}`",
                    cure="Remove it from the list.",
                )
        if len(set(names)) != len(names):
            raise DescriptionError(
                f"{where}, `actuated`",
                expected="each joint once",
                came=", ".join(names),
                cure="Remove the repeated name.",
            )
        return tuple(sorted(names, key=self.index))

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

    def beyond_support(self, wheel: Wheel) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bodies that move a wheel and its support relative to each other.

        Parameters
        ----------
        wheel : Wheel
            One of `wheels`, with a `support`.

        Returns
        -------
        wheel_path, support_path : tuple of int
            Indices of the bodies from the last one that carries both, which is not included, to
            the wheel and to the support.
        """
        path = self.path(self.index(wheel.body))
        on = wheel.support.body if wheel.support else None
        other = () if on is None else self.path(self.index(on))
        common = sum(i in other for i in path)
        return path[common:], other[common:]

    def platform(self, wheel: Wheel) -> int:
        """Body that moves on the surface on which a wheel rolls.

        Parameters
        ----------
        wheel : Wheel
            One of `wheels`.

        Returns
        -------
        int
            Index of the first body between the base and the wheel, both included, whose joint is
            planar or sliding; the base without such. With a `support` the first body that moves
            relative to it.
        """
        if wheel.support is not None:
            own, other = self.beyond_support(wheel)
            return (*own, *other, 0)[0]
        path = self.path(self.index(wheel.body))
        return next((i for i in path if isinstance(self.bodies[i].joint, Planar | Sliding)), 0)

    @property
    def platforms(self) -> tuple[int, ...]:
        """Bodies that stand on wheels, in order."""
        return tuple(sorted({self.platform(wheel) for wheel in self.wheels}))

    @property
    def below_platforms(self) -> tuple[str, ...]:
        """Bodies between those that stand on wheels and the wheels, the wheels included."""
        found = set[int]()
        for wheel in self.wheels:
            path = self.path(self.index(wheel.body))
            if wheel.support is not None:
                path = tuple(i for half in self.beyond_support(wheel) for i in half)
            start = path.index(self.platform(wheel)) if self.platform(wheel) in path else -1
            found |= set(path[start + 1 :])
        return tuple(self.bodies[i].name for i in sorted(found - set(self.platforms)))

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
    def actuated_freedoms(self) -> tuple[int, ...]:
        """Indices in v of the driven freedoms."""
        return tuple(self.freedoms(*(self.actuated or ())))

    @property
    def nu(self) -> int:
        """Number of controls: driven freedoms in `actuated`, then `drives`."""
        return len(self.actuated_freedoms) + len(self.drives)

    @property
    def control_names(self) -> tuple[str, ...]:
        """Name of each control, (nu,): of the freedom that it drives alone, or of the drive."""
        names = self.freedom_names
        alone = [names[i] for i in self.actuated_freedoms]
        return (*alone, *(drive.name for drive in self.drives))

    @property
    def control_units(self) -> tuple[str, ...]:
        """Unit of each control, N or N m, (nu,).

        That of a motor on several joints is N if all of them slide, that of a thruster N unless
        its wrench is a moment.
        """
        each = self.effort_units
        units = [each[i] for i in self.actuated_freedoms]
        of_joint = dict(zip(self.freedom_names, each, strict=True))
        for drive in self.drives:
            if drive.joints is None:
                forces = any(drive.at_origin[:3])
            else:
                forces = all(of_joint[name] == "N" for name in drive.joints)
            units.append("N" if forces else "N m")
        return tuple(units)

    @property
    def control_limits(self) -> np.ndarray:
        """Largest force or torque of each control, shape (nu,), N and N m; infinite without one.

        A drive without a limit has that of its joints, divided by the ratio, if no other drive
        moves them.
        """
        each = self.torque_limits
        limits = [each[i] for i in self.actuated_freedoms]
        of_joint = dict(zip(self.freedom_names, each, strict=True))
        for drive in self.drives:
            limit = drive.torque_limit
            if limit == np.inf and drive.joints is not None:
                others = {n for d in self.drives if d is not drive for n in d.joints or ()}
                if not others & drive.joints.keys():
                    limit = min(of_joint[n] / abs(ratio) for n, ratio in drive.joints.items())
            limits.append(limit)
        return np.array(limits, dtype=float)

    @property
    def driven_freedoms(self) -> tuple[int, ...]:
        """Indices in v of the freedoms that a control moves, alone or with others.

        A thruster moves the freedoms of its body's joint along which its wrench acts.
        """
        found = set(self.actuated_freedoms)
        for drive in self.drives:
            found |= {self.freedom_names.index(name) for name in drive.joints or ()}
            if drive.body is not None:
                acting = self.bodies[self.index(drive.body)].joint.basis.T @ drive.at_origin
                found |= {self.v_slice(drive.body).start + int(i) for i in np.flatnonzero(acting)}
        return tuple(sorted(found))

    @property
    def driven_bodies(self) -> tuple[str, ...]:
        """Bodies whose joints a control moves, alone or with others."""
        driven = set(self.driven_freedoms)
        return tuple(b.name for b in self.bodies if driven.intersection(self.freedoms(b.name)))

    @property
    def thrusters(self) -> tuple[Drive, ...]:
        """Drives that act on a body, not on joints."""
        return tuple(drive for drive in self.drives if drive.joints is None)

    @property
    def following(self) -> dict[str, str]:
        """Bodies whose joints follow others, and what they follow: of `mimics`, then `steering`."""
        found = {
            mimic.body: f"{mimic.multiplier:g} times the coordinate of `{mimic.of}` plus "
            f"{mimic.offset:g}"
            for mimic in self.mimics
        }
        return found | {linkage.joint: linkage.text for linkage in self._linkages}

    @property
    def followers(self) -> tuple[int, ...]:
        """Indices in v of the velocities of joints that follow others."""
        return tuple(self.freedoms(*self.following))

    @property
    def steering_joints(self) -> tuple[tuple[list[str], str], ...]:
        """Bodies on the steering joints of guides, and on the joint that follows, of `steering`."""
        return tuple(
            ([axle.joint for axle in found.axles[:2] if axle.joint is not None], found.joint)
            for found in self._linkages
        )

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

    def neutral(self) -> np.ndarray:
        """Configuration in which every joint is at its identity, or follows one that is.

        Returns
        -------
        numpy.ndarray
            Shape (nq,).
        """
        return self.coupled(self._identities())

    def _identities(self) -> np.ndarray:
        """Coordinates of the joints' identities, (nq,)."""
        return np.concatenate([body.joint.neutral for body in self.bodies])

    def coupled(self, q: np.ndarray) -> np.ndarray:
        """Give joints that follow others the coordinates that belong to them.

        Parameters
        ----------
        q : numpy.ndarray
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray
            The configuration with ``q = multiplier q_other + offset`` for each of `mimics`, and
            with each wheel of `steering` at its angle, on the branch that is within a quarter turn
            of zero where the guides are at zero, (nq,).
        """
        q = self._geared(q)
        return np.asarray(self._steered(q, False)) if self._linkages else q

    def _geared(self, q: np.ndarray) -> np.ndarray:
        q = q.copy()
        for mimic in self.mimics:  # each after the joint that it follows
            q[self.q_slice(mimic.body)] = (
                mimic.multiplier * q[self.q_slice(mimic.of)] + mimic.offset
            )
        return q

    @evaluated("(nq)->(nq)")
    def _steered(self, q: Vector, nearest: bool) -> Vector:
        """Turn wheels that follow guides: to the nearest angle that fits, or to the branch's."""
        q = ca.SX(q)
        for linkage in self._linkages:
            value, (_, _, slope) = linkage.condition(self._angles(linkage, q))
            # The determinant is value cos + slope sin after a turn; a line has no direction.
            step = ca.atan2(-value, slope)
            if nearest:
                step = ca.atan2(-2.0 * value * slope, slope**2 - value**2) / 2.0
            q[self.q_slice(linkage.joint)] += step
        return q

    def _angles(self, linkage: Linkage, q: Array) -> list[Array]:
        """Steering angles of the axles of a linkage."""
        joints = [axle.joint for axle in linkage.axles]
        return [0.0 if name is None else q[self.q_slice(name)] for name in joints]

    def steering_rows(self, q: Vector) -> Array:
        """Derivative of the conditions of wheels that follow guides: rows @ v = 0.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        casadi.SX
            Shape (steering, nv), without unit.
        """
        rows = ca.SX(len(self._linkages), self.nv)
        for k, linkage in enumerate(self._linkages):
            slopes = linkage.condition(self._angles(linkage, q))[1]
            for axle, slope in zip(linkage.axles, slopes, strict=True):
                if axle.joint is not None:
                    rows[k, self.v_slice(axle.joint)] += slope
        return ca.sparsify(rows)

    def lost_steering(self, q: np.ndarray, below: float) -> str:
        """Describe why steering angles of wheels that follow guides are not determined.

        Parameters
        ----------
        q : numpy.ndarray
            Configuration, shape (nq,).
        below : float
            Distance, without unit, from a singular configuration that counts as singular.

        Returns
        -------
        str
            Clauses that name the wheels; empty if all angles are determined.
        """
        found = [
            linkage.lost([float(np.sum(angle)) for angle in self._angles(linkage, q)])
            for linkage in self._linkages
        ]
        return " and ".join(dict.fromkeys(text for distance, text in found if distance < below))

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a configuration joint by joint.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Shape (nq,).
        """
        return self.coupled(np.concatenate([body.joint.random(rng) for body in self.bodies]))

    @cached_property
    def quaternions(self) -> Mapping[int, str]:
        """Where the quaternions start in q, and the bodies whose joints they turn."""
        found = {}
        for body in self.bodies:
            at = body.joint.quaternion_at
            if at is not None:
                found[self.q_slice(body.name).start + at] = body.name
        return found

    def check_configuration(self, q: ArrayLike, where: str = "configuration") -> np.ndarray:
        """Check a configuration and normalise its quaternions.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        where : str
            Place named in errors.

        Returns
        -------
        numpy.ndarray
            The configuration with unit quaternions and coupled joints, shape (nq,).

        Raises
        ------
        ShapeError
            If the count is wrong or a quaternion's norm is not near one.
        NonFiniteError
            If a number is NaN or infinite.
        DescriptionError
            If a joint that follows others is off by more than 1e-6 rad or m.
        """
        where = f"robot `{self.name}`, {where}"
        array = finite_floats(q, where, (self.nq,)).copy()
        error = attitude_error(where, "q", array, self.quaternions)
        if error is not None:
            raise error
        for start in self.quaternions:
            array[start : start + 4] /= np.linalg.norm(array[start : start + 4])
        if not self.following:
            return array
        coupled = self._geared(array)
        if self._linkages:
            coupled = np.asarray(self._steered(coupled, True))
        for body, other in self.following.items():
            span = self.q_slice(body)
            came, due = float(array[span][0]), float(coupled[span][0])
            if abs(came - due) > COUPLED * max(1.0, abs(due)):
                raise DescriptionError(
                    f"{where}, joint of `{body}`",
                    expected=f"{due:.9g}: {other}",
                    came=f"{came:.9g}",
                    cure="Leave the joint out, or give it this coordinate: it follows.",
                )
        return coupled

    @evaluated("(nq),(nv)->(nq)")
    def rate(self, q: Vector, v: Vector) -> Vector:
        """Time derivative of the configuration for a velocity."""
        return self._joint_by_joint(lambda joint, q, v: joint.rate(q, v), q, v)

    @evaluated("(nq),(nv)->(nq)")
    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Move each joint by the exponential of a displacement."""
        return self._joint_by_joint(lambda joint, q, dv: joint.integrate(q, dv), q, dv)

    @evaluated("(nq),(nq)->(nv)")
    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """Displacement from one configuration to another, m and rad: inverse of `integrate`."""
        parts = []
        for i, body in enumerate(self.bodies):
            span = slice(self._starts[i][0], self._starts[i + 1][0])
            parts.append(body.joint.difference(q0[span], q1[span]))
        return ca.vertcat(*parts)

    @evaluated("(nv),(nv)->(nv)")
    def dexp_inverse(self, dv: Vector, v: Vector) -> Vector:
        """Rate of the displacement dv that makes the joints move with v, (2.1.4) inverted."""
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

    @evaluated("(nq)->(nq)")
    def normalize(self, coordinates: Vector) -> Vector:
        """Bring quaternions back to unit norm, and wheels that follow guides to their angles.

        Parameters
        ----------
        coordinates : array_like
            Configuration whose quaternions may be of any norm but zero, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (nq,).
        """
        parts = []
        for i, body in enumerate(self.bodies):
            part = coordinates[self._starts[i][0] : self._starts[i + 1][0]]
            at = body.joint.quaternion_at
            if at is not None:
                unit = part[at : at + 4] / ca.sqrt(ca.sumsqr(part[at : at + 4]))
                part = ca.vertcat(part[:at], unit, part[at + 4 :])
            parts.append(part)
        unit = ca.vertcat(*parts)
        return self._steered(unit, True) if self._linkages else unit

    def _joint_by_joint(self, act: JointMap, q: Vector, v: Vector) -> Array:
        parts = []
        for i, body in enumerate(self.bodies):
            (iq, iv), (jq, jv) = self._starts[i], self._starts[i + 1]
            parts.append(act(body.joint, q[iq:jq], v[iv:jv]))
        return ca.vertcat(*parts)

    def _blockwise(self, act: JointMap, a: Array, b: Array) -> Array:
        parts = []
        for i, body in enumerate(self.bodies):
            span = slice(self._starts[i][1], self._starts[i + 1][1])
            parts.append(act(body.joint, a[span], b[span]))
        return ca.vertcat(*parts)


def _mimics(where: str, bodies: Sequence[Body], mimics: Sequence[Mimic]) -> tuple[Mimic, ...]:
    """Check joints that follow others; each comes after the one that it follows."""
    names = [body.name for body in bodies]
    followers = [mimic.body for mimic in mimics]
    for mimic in mimics:
        place = f"{where}, mimic `{mimic.body}`"
        for attribute in ("body", "of"):
            name = getattr(mimic, attribute)
            if name not in names:
                raise unknown_name(f"{place}, `{attribute}`", "body", name, names)
            joint = bodies[names.index(name)].joint
            if joint.nv != 1 or name == names[0]:
                base = "the base" if name == names[0] else f"with {joint.nv}"
                raise DescriptionError(
                    f"{place}, `{attribute}`",
                    expected="a joint with one coordinate, not that of the base",
                    came=f"`{name}`, {base}",
                    cure="Couple joints of type Revolute, Prismatic or Helical.",
                )
        if followers.count(mimic.body) > 1:
            raise DescriptionError(
                place,
                expected="a joint that follows one other",
                came=f"{followers.count(mimic.body)} that it follows",
                cure="Keep one of them.",
            )
    ordered, waiting = list[Mimic](), list(mimics)
    while waiting:
        pending = {mimic.body for mimic in waiting}
        ready = next((mimic for mimic in waiting if mimic.of not in pending), None)
        if ready is None:
            raise DescriptionError(
                f"{where}, `mimics`",
                expected="a joint at the start of each chain that follows no other",
                came=f"a cycle of {', '.join(f'`{mimic.body}`' for mimic in waiting)}",
                cure="Remove one of the couplings.",
            )
        ordered.append(ready)
        waiting.remove(ready)
    return tuple(ordered)


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
