"""A tree of bodies with wheels, motors and couplings, and its configuration space."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import casadi as ca
import numpy as np
from annotated_types import Len
from numpy.typing import ArrayLike

from concur.codegen import Array, Vector, attitude_error, evaluated, finite_floats, unit_span
from concur.errors import DescriptionError, shown
from concur.robot._bodies import BodyTree
from concur.robot._massless import Cable, find_cables
from concur.robot._motor import Mimic, Motor, actuated_bodies, check_motors, ordered_mimics
from concur.robot._numbers import Terms, named_numbers
from concur.robot._pose import vector
from concur.robot._rotor import check_rotors
from concur.robot._size import extent, length_scale
from concur.robot._spring import Spring, check_springs
from concur.robot._steering import Linkage, Steering, linkages
from concur.robot._wheel import Wheel
from concur.robot.joints import Free, Planar, Revolute, Sliding, Spherical
from concur.tables import MOST_BODIES, Expected, Vector3

COUPLED = 1e-6
"""Largest error of a joint that follows another, rad and m, and relative beyond one."""

Supports = Annotated[
    Mapping[str, Vector3],
    Len(0, MOST_BODIES),
    Expected(f"a table of points such as caster = [0.5, 0, 0], at most {MOST_BODIES}"),
]


@dataclass(frozen=True)
class Tree(BodyTree):
    """Bodies in a tree with their wheels and actuators, and its configuration space.

    Parameters
    ----------
    name : str
        Name of the robot.
    bodies : sequence of Body
        The bodies in any order; exactly one has no parent: the base. They are kept with
        parents before children.
    wheels : sequence of Wheel
        Rolling contacts with a plane or a sphere. Default: none.
    gravity : sequence of float
        Acceleration of free fall in the inertial frame, shape (3,), m/s^2.
    actuated : sequence of str, optional
        Names of the joints with a motor each. Default: all but the base, the joints
        of `motors` and those that follow others.
    motors : sequence of Motor
        Motors on several joints, and thrusters. Default: none.
    mimics : sequence of Mimic
        Joints that follow others. Default: none.
    steering : sequence of Steering
        Steered wheels whose axles meet those of two others in one point. Default: none.
    supports : mapping of str to sequence of float
        Frictionless supports beside the wheels, such as `caster = [0.5, 0.0, 0.0]`: by name the
        point of contact in the frame of the base, shape (3,), m. Its height does not matter. They
        carry load in plants whose wheels slip and in MuJoCo. Default: none.
    springs : sequence of Spring
        Springs and dampers of joints, and between points of two bodies. Default: none.

    Raises
    ------
    DescriptionError
        If names repeat, the parents form no tree, the base is actuated, a joint of `motors` is
        actuated too, joints follow each other in a cycle, a wheel cannot follow its guides, or a
        support has the name of a wheel.
    UnknownNameError
        If a parent, a wheel's body, an actuator, or a joint of a motor does not exist.
    """

    wheels: Sequence[Wheel] = ()
    gravity: Vector3 = (0.0, 0.0, 0.0)
    actuated: Sequence[str] | None = None
    motors: Sequence[Motor] = ()
    mimics: Sequence[Mimic] = ()
    steering: Sequence[Steering] = ()
    supports: Supports = field(default_factory=dict, hash=False)
    springs: Sequence[Spring] = ()
    linkages: tuple[Linkage, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        where = self._where
        wheels = self._entries("wheels", Wheel)
        for wheel in wheels:
            self.index(wheel.body, f"wheel `{wheel.body}`, `body`")
            if wheel.support is not None and wheel.support.body is not None:
                self.index(wheel.support.body, f"wheel `{wheel.body}`, `support`")
        steering = self._entries("steering", Steering)
        if not all(self.bodies[self._index[wheel.body]].joint.nv for wheel in wheels):
            named, wheels = wheels, tuple(self._on_joint(wheel) for wheel in wheels)
            on = {old.body: new.body for old, new in zip(named, wheels, strict=True)}
            steering = tuple(
                replace(
                    steered,
                    wheel=on.get(steered.wheel, steered.wheel),
                    guides=tuple(on.get(name, name) for name in steered.guides),
                )
                for steered in steering
            )
        self._keep(
            wheels=wheels,
            motors=self._entries("motors", Motor),
            mimics=ordered_mimics(where, self.bodies, self._entries("mimics", Mimic)),
            steering=steering,
            gravity=vector(self.gravity, 3, f"{where}, `gravity`"),
            supports=self._checked_supports(where),
            springs=self._entries("springs", Spring),
        )
        check_springs(where, self, self.springs)
        steered = linkages(where, self.bodies, wheels, steering) if steering else ()
        self._keep(linkages=steered)
        self._check_couplings(where)
        floats = bool(wheels) or isinstance(self.base.joint, Free)
        geared = check_motors(where, self, self.motors, floats) if self.motors else {}
        if any(motor.rotor for motor in self.motors):
            check_rotors(where, self, self.motors)
        passive = {*geared, *self.following, *(self.bodies[i].name for i in self.platforms)}
        alone = tuple(
            b.joint_label for b in self.bodies[1:] if b.joint.nv and b.name not in passive
        )
        if self.actuated is not None:
            alone = actuated_bodies(where, self, self.actuated, geared, self.platforms, floats)
        self._keep(actuated=tuple(sorted(alone, key=self.joints.__getitem__)))

    def _on_joint(self, wheel: Wheel) -> Wheel:
        """The wheel on the body that turns, if its body is a frame that is fixed to that one."""
        index, pose = self._index[wheel.body], np.eye(4)
        while not self.bodies[index].joint.nv and (parent := self.parents[index]) is not None:
            index, pose = parent, self.bodies[index].placement.matrix @ pose
        carrier = self.bodies[index]
        turns = isinstance(carrier.joint, Revolute | Spherical)
        if carrier.name == wheel.body or wheel.support or wheel.kind == "slider" or not turns:
            return wheel
        axis = None if wheel.axis is None else tuple((pose[:3, :3] @ wheel.axis).tolist())
        center = tuple((pose @ [*wheel.center, 1.0])[:3].tolist())
        return replace(wheel, body=carrier.name, center=center, axis=axis)

    def _checked_supports(self, where: str) -> dict[str, tuple[float, ...]]:
        """Points of the supports, none of which has the name of a wheel."""
        if not isinstance(self.supports, Mapping):
            raise DescriptionError(
                f"{where}, `supports`",
                expected="points by name",
                came=shown(self.supports),
                cure='Write {"caster": (0.5, 0.0, 0.0)}.',
            )
        for name in self.supports:
            if not isinstance(name, str) or name in [wheel.body for wheel in self.wheels]:
                raise DescriptionError(
                    f"{where}, `supports`",
                    expected="names that no wheel has",
                    came=shown(name),
                    cure="Rename the support.",
                )
        return {
            name: vector(at, 3, f"{where}, support `{shown(name)}`")
            for name, at in self.supports.items()
        }

    def _check_couplings(self, where: str) -> None:
        """Refuse wheels that follow guides, and are coupled by `mimics` too."""
        for mimic in self.mimics:
            for linkage in self.linkages:
                if linkage.joint in (mimic.body, mimic.of):
                    raise DescriptionError(
                        f"{where}, mimic `{mimic.body}`",
                        expected="joints without a wheel that follows guides",
                        came=f"`{linkage.joint}`: {linkage.text}",
                        cure="Remove the coupling, or couple the steering joints of the guides.",
                    )

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in super().__getstate__().items() if key != "terms"}

    @cached_property
    def size(self) -> float:
        """Length with which radians and metres of the robot are compared, m."""
        return length_scale(self, self.wheels)

    @cached_property
    def extent(self) -> float:
        """Largest distance of joint frames, or diameter of a wheel, m; zero if all coincide."""
        return extent(self, self.wheels)

    @cached_property
    def terms(self) -> Terms:
        """Numbers as the recursions use them."""
        parts = self.wheels, self.motors, self.linkages, self.springs
        return Terms.of(self, self.size, self.tensors, *parts)

    @cached_property
    def numbers(self) -> Mapping[str, np.ndarray]:
        """Numbers of the description by name, SI units.

        A name is that of a body, a motor or a spring, and a field: `hand.inertia.mass`,
        `hand.placement.translation`, `left_wheel.radius`, `differential.ratio`, `elbow.stiffness`.
        """
        return named_numbers(self)

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
        path = self.paths[self._index[wheel.body]]
        on = wheel.support.body if wheel.support else None
        other = () if on is None else self.paths[self._index[on]]
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
            return next((i for i in (*own, *other) if self.bodies[i].joint.nv), 0)
        path = self.paths[self._index[wheel.body]]
        return next((i for i in path if isinstance(self.bodies[i].joint, Planar | Sliding)), 0)

    @cached_property
    def platforms(self) -> tuple[int, ...]:
        """Bodies that stand on wheels, in order."""
        return tuple(sorted({self.platform(wheel) for wheel in self.wheels}))

    @cached_property
    def below_platforms(self) -> tuple[str, ...]:
        """Bodies between those that stand on wheels and the wheels, the wheels included."""
        found = set[int]()
        for wheel in self.wheels:
            path, platform = self.paths[self._index[wheel.body]], self.platform(wheel)
            if wheel.support is not None:
                path = tuple(i for half in self.beyond_support(wheel) for i in half)
            start = path.index(platform) if platform in path else -1
            found |= set(path[start + 1 :])
        return tuple(self.bodies[i].name for i in sorted(found - set(self.platforms)))

    @cached_property
    def actuated_freedoms(self) -> tuple[int, ...]:
        """Indices in v of the driven freedoms."""
        spans = [self.v_spans[self.joints[name]] for name in self.actuated or ()]
        return tuple(i for span in spans for i in range(span.start, span.stop))

    @cached_property
    def nu(self) -> int:
        """Number of controls: driven freedoms in `actuated`, then `motors`."""
        return len(self.actuated_freedoms) + len(self.motors)

    @cached_property
    def control_names(self) -> tuple[str, ...]:
        """Name of each control, (nu,): of the freedom that it motors alone, or of the motor."""
        names = self.freedom_names
        alone = [names[i] for i in self.actuated_freedoms]
        return (*alone, *(motor.name for motor in self.motors))

    @cached_property
    def control_units(self) -> tuple[str, ...]:
        """Unit of each control, N or N m, (nu,).

        That of a motor is N if it is linear, with a gear of 1 and joints that slide, that of a
        thruster N unless its wrench is a moment.
        """
        each = self.effort_units
        units = [each[i] for i in self.actuated_freedoms]
        of_joint = dict(zip(self.freedom_names, each, strict=True))
        for motor in self.motors:
            if not motor.ratios:
                forces = any(motor.at_origin[:3])
            else:
                forces = abs(motor.gear) == 1.0
                forces &= all(of_joint[name] == "N" for name in motor.ratios)
            units.append("N" if forces else "N m")
        return tuple(units)

    @cached_property
    def control_limits(self) -> np.ndarray:
        """Largest force or torque of each control, shape (nu,), N and N m; infinite without one.

        A motor without a limit has that of its joints, divided by the ratio, if no other motor
        moves them.
        """
        each = self.torque_limits
        limits = [each[i] for i in self.actuated_freedoms]
        of_joint = dict(zip(self.freedom_names, each, strict=True))
        for motor in self.motors:
            limit = motor.torque
            if limit == np.inf and motor.ratios:
                others = {n for m in self.motors if m is not motor for n in m.ratios}
                if not others & motor.ratios.keys():
                    limit = min(of_joint[n] / abs(ratio) for n, ratio in motor.ratios.items())
            limits.append(limit)
        return np.array(limits, dtype=float)

    @cached_property
    def speed_limits(self) -> np.ndarray:
        """Largest speed of each freedom, shape (nv,), m/s and rad/s; infinite without a limit.

        A motor with one joint limits that of the joint.
        """
        limits = super().speed_limits
        for motor in self.motors:
            if len(motor.ratios) == 1:
                (name,) = motor.ratios
                at = self.freedom_names.index(name)
                limits[at] = min(limits[at], motor.speed / motor.reduction)
        return limits

    @cached_property
    def motor_speeds(self) -> dict[str, tuple[float, np.ndarray]]:
        """By motor with several joints: its largest speed, and its ratios as a row, (nv,)."""
        found = {}
        for motor in self.motors:
            if len(motor.ratios) > 1 and motor.speed < math.inf:
                row = np.zeros(self.nv)
                row[[self.freedom_names.index(name) for name in motor.ratios]] = [
                    *motor.ratios.values()
                ]
                found[motor.name] = motor.speed, row
        return found

    @cached_property
    def driven_freedoms(self) -> tuple[int, ...]:
        """Indices in v of the freedoms that a control moves, alone or with others.

        A thruster moves the freedoms of its body's joint along which its wrench acts.
        """
        found = set(self.actuated_freedoms)
        for motor in self.motors:
            found |= {self.freedom_names.index(name) for name in motor.ratios}
            if motor.body is not None:
                i = self._index[motor.body]
                acting = self.bodies[i].joint.basis.T @ motor.at_origin
                found |= {self.v_spans[i].start + int(k) for k in np.flatnonzero(acting)}
        return tuple(sorted(found))

    @cached_property
    def driven_bodies(self) -> tuple[str, ...]:
        """Bodies whose joints a control moves, alone or with others."""
        driven = set(self.driven_freedoms)
        spans = zip(self.bodies, self.v_spans, strict=True)
        return tuple(b.name for b, at in spans if driven.intersection(range(at.start, at.stop)))

    @cached_property
    def cables(self) -> dict[str, Cable]:
        """Links on cables, by body: those on ball joints whose spin moves no mass."""
        thrust = [motor.body for motor in self.motors if motor.body is not None]
        rolling = {i for wheel in self.wheels for i in self.paths[self._index[wheel.body]]}
        pushed = {*self.driven_bodies, *thrust, *(self.bodies[i].name for i in rolling)}
        return find_cables(self, pushed)

    @cached_property
    def tensors(self) -> np.ndarray:
        """Inertia tensors about the centres of mass, in body axes, shape (bodies, 3, 3), kg m^2.

        A link on a cable has a moment about its line, so that its spin, which is divided out, has
        an inertia.
        """
        tensors = np.array([body.inertia.tensor for body in self.bodies])
        for name, cable in self.cables.items():
            tensors[self.index(name)] += cable.moment * np.outer(cable.axis, cable.axis)
        return tensors

    @cached_property
    def inertia_matrices(self) -> np.ndarray:
        """Spatial inertias in body axes, shape (bodies, 6, 6): the matrices I of body twists."""
        matrices = np.array([body.inertia.matrix for body in self.bodies])
        described = np.array([body.inertia.tensor for body in self.bodies])
        matrices[:, 3:, 3:] += self.tensors - described
        return matrices

    @property
    def thrusters(self) -> tuple[Motor, ...]:
        """Motors that act on a body, not on joints."""
        return tuple(motor for motor in self.motors if not motor.ratios)

    @cached_property
    def following(self) -> dict[str, str]:
        """Bodies whose joints follow others, and what they follow: of `mimics`, then `steering`."""
        found = {
            mimic.body: f"{mimic.multiplier:g} times the coordinate of `{self.label(mimic.of)}` "
            f"plus {mimic.offset:g}"
            for mimic in self.mimics
        }
        return found | {linkage.joint: linkage.text for linkage in self.linkages}

    @cached_property
    def followers(self) -> tuple[int, ...]:
        """Indices in v of the velocities of joints that follow others."""
        return tuple(self.freedoms(*self.following))

    @property
    def steering_joints(self) -> tuple[tuple[list[str], str], ...]:
        """Bodies on the steering joints of guides, and on the joint that follows, of `steering`."""
        return tuple(
            ([axle.joint for axle in found.axles[:2] if axle.joint is not None], found.joint)
            for found in self.linkages
        )

    def neutral(self) -> np.ndarray:
        """Configuration in which every joint is at its identity, or follows one that is.

        Returns
        -------
        numpy.ndarray
            Shape (nq,).
        """
        return self.coupled(self._identities())

    def coupled(self, q: np.ndarray, given: Collection[str] = ()) -> np.ndarray:
        """Give joints that follow others the coordinates that belong to them.

        Parameters
        ----------
        q : numpy.ndarray
            Configuration, shape (nq,).
        given : collection of str
            Joints that keep their coordinates.

        Returns
        -------
        numpy.ndarray
            The configuration with ``q = multiplier q_other + offset`` for each of `mimics`, and
            with each wheel of `steering` at its angle, on the branch that is within a quarter turn
            of zero where the guides are at zero, (nq,).
        """
        if not self.following:
            return q
        found = self._geared(q)
        found = np.asarray(self._steered(found, False)) if self.linkages else found
        for name in given:
            span = self.q_spans[self.joints[name]]
            found[span] = q[span]
        return found

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
        for linkage in self.terms.linkages:
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

    @property
    def coupling_names(self) -> tuple[str, ...]:
        """Name of each constraint of joints that follow others: of `mimics`, then `steering`."""
        names = [
            f"mimic `{self.label(mimic.body)}`: following {self.label(mimic.of)}"
            for mimic in self.mimics
        ]
        names += [
            f"steering `{s.wheel}`: following {' and '.join(s.guides)}" for s in self.steering
        ]
        return tuple(names)

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
        rows = ca.SX(len(self.linkages), self.nv)
        for k, linkage in enumerate(self.terms.linkages):
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
            for linkage in self.linkages
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
        drawn = np.concatenate([body.joint.random(rng) for body in self.bodies])
        return self.coupled(drawn) if self.following else drawn

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
        for span in map(unit_span, self.quaternions):
            array[span] /= np.linalg.norm(array[span])
        if not self.following:
            return array
        coupled = self._geared(array)
        if self.linkages:
            coupled = np.asarray(self._steered(coupled, True))
        for body, other in self.following.items():
            span = self.q_slice(body)
            came, due = float(array[span][0]), float(coupled[span][0])
            if abs(came - due) > COUPLED * max(1.0, abs(due)):
                raise DescriptionError(
                    f"{where}, joint of `{self.label(body)}`",
                    expected=f"{round(due, 12) + 0.0:.9g}: {other}",
                    came=f"{came:.9g}",
                    cure="Give it this coordinate, as robot.coupled(q) does: it follows.",
                )
        return coupled

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
        for body, span in zip(self.bodies, self.q_spans, strict=True):
            part = coordinates[span, :]
            at = body.joint.quaternion_at
            if at is not None:
                unit = part[at : at + 4] / ca.sqrt(ca.sumsqr(part[at : at + 4]))
                part = ca.vertcat(part[:at], unit, part[at + 4 :])
            parts.append(part)
        unit = ca.vertcat(*parts)
        return self._steered(unit, True) if self.linkages else unit
