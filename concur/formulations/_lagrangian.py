"""Mechanical systems from their energies, by Boltzmann-Hamel's equations in any velocities.

With the velocities w of the factors, qdot = E(q) w, the momenta p = dL/dw and the bracket of the
factors' algebra, the forces along w are

    f = d/dt p - E^T dL/dq - ad_w^T p .

Velocities of another frame are u = A(q) w. The transposed frame takes the forces along u from
those along w, A^T f_u = f, which is (14) of Boltzmann-Hamel with its Hamel coefficients contracted:
no array of three indices occurs, and no coordinates of a group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import (
    Array,
    EvaluatedMethods,
    Matrix,
    Place,
    Scalar,
    Vector,
    evaluated,
    finite_floats,
)
from concur.errors import shown
from concur.formulations._arguments import (
    drawn_frames,
    force_unit,
    frame_matrix,
    input_rows,
    quadratic_energy,
    rotor_energy,
    rows_without_spin,
)
from concur.formulations._coordinates import pulled_back
from concur.formulations._expressions import SINGULAR, Row, Space, least_eigenvalue
from concur.formulations._factor import Factor
from concur.formulations._invariance import check_invariance, group_names
from concur.groups import s2
from concur.robot import JointPlace, Motor, unknown_name


@dataclass(frozen=True, init=False, repr=False)
class LagrangianSystem(EvaluatedMethods):
    """A mechanical system given by its energies, for `reduce`, `Plant` and all above them.

    The kinetic energy T(q, v) is quadratic in the velocities v, the potential energy V(q) any
    function of the configuration. Both are CasADi expressions of the symbols `q` and `v` of the
    factors. The equations are Boltzmann-Hamel's, (14) and (22), in the velocities of `frame`.

    Parameters
    ----------
    kinetic : casadi.SX
        Kinetic energy, J, shape (1, 1); or the mass matrix of the factors' velocities, (nv, nv).
    potential : casadi.SX or float
        Potential energy, J.
    factors : sequence of Factor
        Factors of the configuration space, in the order of q and v.
    frame : casadi.SX, or mapping of str to casadi.SX, optional
        Velocities in which the system is written: nv expressions A(q) v, by name; default those of
        the factors. They become the velocities of all methods.
    constraints : casadi.SX, or mapping of str to casadi.SX, optional
        Expressions C(q) v that are zero, holonomic or not; default none.
    inputs : mapping of str to casadi.SX, or sequence of str or Motor, optional
        Velocities to which the inputs are dual: an input u does the power u times its expression,
        D(q) v. Or names of velocities that have a motor each, or a `Motor` with ratios of
        velocities in its `joints`, whose limits count in verdicts and on a rig; default no inputs.
        The energy of a `rotor` is added to `kinetic`.
    name : str
        Name in messages and records.
    symmetry : str or sequence of str, optional
        Names of factors, no two-spheres, on whose configuration no energy and no input depends,
        such as "hull" in SE(3) without gravity, and along which no input acts: then `reduce` takes
        a constant momentum of theirs. Energies have to be written in the velocities v of the
        factors, which are those in body axes. Default: none.
    drawn : mapping of str to casadi.SX, optional
        Frames by name that the viewer and animations draw, in inertial axes: a position (3,), m, or
        a pose (4, 4). A bar leads to each from the one before, or in ``(expression, name)`` from
        the named one. Default: none, and no pictures.

    Raises
    ------
    DescriptionError
        If an argument is no CasADi expression, the kinetic energy is not quadratic, symmetric and
        positive definite, the potential energy depends on velocities, an expression is not linear,
        the frame is singular, the constraints depend on each other, or an energy or an input
        depends on a factor of the symmetry.
    ShapeError
        If an expression has another shape.
    UnknownNameError
        If an expression contains symbols of no factor, an input names no velocity, or the symmetry
        no factor.
    NonFiniteError
        If an expression has no value at a random configuration.

    See Also
    --------
    Factor : q and v of each factor.
    integrability : Whether the constraints are holonomic.

    Notes
    -----
    An expression with several rows makes one constraint, velocity or input of each. In a mapping,
    ``(expression, unit)`` gives the unit of the force; default "N m" if only angular velocities
    occur, else "N". Expressions are checked at random states, with a tolerance for rounding.

    References
    ----------
    Source 002, (38)-(40); source 003, (86)-(93), (96)-(113), (115)-(124), (136)-(142).

    Examples
    --------
    A pendulum on a cart:

    >>> import casadi as ca, concur as cc
    >>> from concur.formulations import Factor
    >>> cart, rod = Factor("cart", "R"), Factor("rod", "S2", neutral=(0.0, 0.0, -1.0))
    >>> bob = ca.vertcat(cart.v, 0, 0) + 0.5 * rod.qdot
    >>> kinetic = 2.0 * ca.sumsqr(cart.v) / 2 + 0.3 * ca.sumsqr(bob) / 2
    >>> system = cc.LagrangianSystem(
    ...     kinetic, 0.3 * 9.81 * 0.5 * rod.q[2], [cart, rod], inputs=["cart"]
    ... )
    >>> cc.reduce(system).ns
    4
    """

    _COMPILED: ClassVar[tuple[str, ...]] = ("mass_matrix", "bias")

    name: str
    factors: tuple[Factor, ...]
    freedom_names: tuple[str, ...]
    effort_units: tuple[str, ...]
    constraint_names: tuple[str, ...]
    control_names: tuple[str, ...]
    control_units: tuple[str, ...]
    actuated_freedoms: tuple[int, ...]
    spins: tuple[float, ...]
    motors: tuple[Motor, ...]
    symmetry: tuple[str, ...]
    drawn: tuple[tuple[str, str | None], ...]
    poses_text: str
    framed: bool
    text: str

    def __init__(
        self,
        kinetic: Any,
        potential: Any,
        factors: Sequence[Factor],
        frame: Any = None,
        constraints: Any = None,
        inputs: Any = None,
        name: str = "system",
        symmetry: str | Sequence[str] = (),
        drawn: Any = None,
    ) -> None:
        space = Space.of(f"system `{name}`", factors)
        energy = quadratic_energy(space, kinetic)
        height = space.scalar(potential, "`potential`")
        if ca.depends_on(height, space.v):
            expected, came = "an expression of configurations", "one that depends on velocities"
            cure = "Damping and other forces are no potential energy: make them inputs."
            raise space.refused("`potential`", expected, came, cure)
        plain = [row for f in space.factors for row in zip(f.freedom_names, f.turning, strict=True)]
        moving: list[Row] = [
            (label, space.v[k], "N m" if turns else "N") for k, (label, turns) in enumerate(plain)
        ]
        velocities = moving if frame is None else space.rows(frame, "`frame`", "velocity")
        basis = frame_matrix(space, velocities)
        held = [] if constraints is None else space.rows(constraints, "`constraints`", "constraint")
        driven, rows, motors = input_rows(space, velocities, inputs)
        energy = space.without_spin(energy + rotor_energy(rows, motors))
        spinless = [
            rows_without_spin(space, part, what)
            for part, what in ((held, "`constraints`"), (rows, "`inputs`"))
        ]
        graph = ca.Function(
            "lagrangian",
            [space.q, space.v],
            [energy, height, basis, *spinless],
            ["q", "v"],
            ["kinetic", "potential", "frame", "constraints", "inputs"],
        )
        shown_frames, places = drawn_frames(space, drawn)
        poses = ca.Function("poses", [space.q], places)
        values: dict[str, Any] = {
            "name": str(name),
            "drawn": shown_frames,
            "poses_text": poses.serialize(),
            "factors": space.factors,
            "freedom_names": tuple(label for label, _, _ in velocities),
            "effort_units": tuple(force_unit(space, row) for row in velocities),
            "constraint_names": tuple(label for label, _, _ in held),
            "control_names": tuple(label for label, _, _ in rows),
            "control_units": tuple(force_unit(space, row) for row in rows),
            "actuated_freedoms": driven,
            "motors": motors,
            "spins": (0.0,) * sum(factor.spherical for factor in space.factors),
            "symmetry": group_names(
                space, symmetry, framed=frame is not None, constrained=bool(held)
            ),
            "framed": frame is not None,
            "text": graph.serialize(),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)
        object.__setattr__(self, "spins", _checked_mass(self, space, graph))
        _check_constraints(self, space)
        if self.symmetry:
            check_invariance(space, graph, self.symmetry)

    def __repr__(self) -> str:
        spaces = " x ".join(factor.group for factor in self.factors)
        return (
            f"<LagrangianSystem {shown(self.name)} on {shown(spaces)}: {self.nv} velocities, "
            f"{self.nf} constraints, {self.nu} inputs>"
        )

    @cached_property
    def graph(self) -> ca.Function:
        """Function of (q, v), v along the factors, to energies and matrices A, C and D."""
        return ca.Function.deserialize(self.text)

    @cached_property
    def forces(self) -> ca.Function:
        """Forces along the factors' velocities v, of (q, v, vdot), without spin."""
        q, v = ca.SX.sym("q", self.nq), ca.SX.sym("v", self.nv)
        vdot = ca.SX.sym("vdot", self.nv)
        kinetic, potential, *_ = self.graph(q, v)
        rate = self._each(lambda f, q, v: f.rate(q, v), q, v)
        momenta = ca.gradient(kinetic, v)
        changes = ca.jtimes(momenta, ca.vertcat(q, v), ca.vertcat(rate, vdot))
        pulls = ca.jtimes(rate, v, ca.gradient(kinetic - potential, q), True)
        other = ca.SX.sym("other", self.nv)
        turned = self._each(lambda f, a, b: f.bracket(a, b), v, other, algebra=True)
        carried = ca.jtimes(turned, other, momenta, True)
        found = ca.densify(ca.substitute(changes - pulls - carried, other, v))
        return ca.Function("forces", [q, v, vdot], [found], {"cse": True})

    def in_coordinates(
        self,
        factors: Sequence[Factor],
        configuration: Any,
        inputs: Any = None,
        name: str | None = None,
    ) -> LagrangianSystem:
        """The same system in other coordinates, such as those that motors measure.

        Parameters
        ----------
        factors : sequence of Factor
            The other coordinates.
        configuration : casadi.SX
            Configuration of this system by `q` of these factors, shape (nq,). Where its rank is
            lower the other system is singular.
        inputs : mapping of str to casadi.SX, or sequence of str or Motor, optional
            Inputs in the velocities of these factors, such as a `Motor` for each; needed if this
            system has motors, default its inputs. The energy of its rotors is kept.
        name : str, optional
            Name of the other system; default this one's.

        Returns
        -------
        LagrangianSystem
            In the velocities of `factors`. A factor of the same name and group that the map leaves
            as it is keeps its velocities, and its place in `symmetry`.

        Raises
        ------
        ConcurError
            If the map gives no configurations, `inputs` lack where this system has motors or repeat
            their rotors, or as of `LagrangianSystem`.

        Examples
        --------
        A pendulum in the angles of its gimbal:

        >>> import casadi as ca, concur as cc
        >>> from concur.formulations import Factor
        >>> rod = Factor("rod", "S2", neutral=(0.0, 0.0, -1.0))
        >>> free = cc.LagrangianSystem(0.3 * ca.sumsqr(rod.qdot), 5.0 * rod.q[2], [rod])
        >>> roll, pitch = Factor("roll", "SO2"), Factor("pitch", "SO2")
        >>> a, b = roll.q, pitch.q
        >>> held = free.in_coordinates(
        ...     [roll, pitch],
        ...     ca.vertcat(-ca.sin(b), ca.sin(a) * ca.cos(b), -ca.cos(a) * ca.cos(b)),
        ...     inputs=["roll", "pitch"],
        ... )
        >>> held.nv, held.control_names
        (2, ('roll', 'pitch'))
        """
        own = name or self.name
        space = Space.of(f"system `{own}`", factors)
        arguments = pulled_back(self, space, configuration)
        if inputs is None and self.motors:
            expected, came = "inputs in the velocities of the factors", "motors of others"
            cure = "Give a motor for each, without its rotor."
            raise space.refused("`inputs`", expected, came, cure)
        again = [] if isinstance(inputs, str | Mapping) else [*(inputs or ())]
        if any(motor.rotor for motor in self.motors) and any(
            isinstance(motor, Motor) and motor.rotor for motor in again
        ):
            expected, came = "motors without rotors", "rotors, which the energy has already"
            raise space.refused("`inputs`", expected, came, "Leave out `rotor`.")
        if inputs is not None:
            arguments["inputs"] = inputs
        return LagrangianSystem(factors=list(space.factors), name=own, **arguments)

    @property
    def unframed(self) -> LagrangianSystem:
        """The same system in the velocities of its factors."""
        if not self.framed:
            return self
        copy = object.__new__(LagrangianSystem)
        others = ("_evaluators", "joint_places", "driven_freedoms")
        copy.__dict__.update({k: v for k, v in self.__dict__.items() if k not in others})
        turns = [turn for factor in self.factors for turn in factor.turning]
        own = {
            "framed": False,
            "freedom_names": tuple(n for factor in self.factors for n in factor.freedom_names),
            "effort_units": tuple("N m" if turn else "N" for turn in turns),
            "actuated_freedoms": (),
            "motors": (),
        }
        copy.__dict__.update(own)
        return copy

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return sum(factor.nq for factor in self.factors)

    @property
    def nv(self) -> int:
        """Number of velocity coordinates, three for each two-sphere."""
        return sum(factor.nv for factor in self.factors)

    @property
    def nf(self) -> int:
        """Number of constraints."""
        return len(self.constraint_names)

    @property
    def nu(self) -> int:
        """Number of inputs."""
        return len(self.control_names)

    @property
    def fibre(self) -> tuple[int, ...]:
        """Indices in v of the velocities of the symmetry group; empty without one."""
        spans = zip(self.factors, self._starts(), strict=True)
        return tuple(
            k for f, (_, at) in spans if f.name in self.symmetry for k in range(at, at + f.nv)
        )

    @cached_property
    def joint_places(self) -> tuple[JointPlace, ...]:
        """Factors that are groups of motions, as joints; none in velocities of another frame."""
        spans = () if self.framed else zip(self.factors, self._starts(), strict=True)
        return tuple(
            JointPlace(f.name, f.name, f.joint, slice(k, k + f.nv), slice(i, i + f.nq))
            for f, (i, k) in spans
            if f.joint is not None
        )

    @cached_property
    def driven_freedoms(self) -> tuple[int, ...]:
        """Indices in v of the velocities along which an input acts, alone or with others."""
        acting = ca.sparsify(ca.SX(self.actuation(ca.SX.sym("q", self.nq))))
        return tuple(sorted(set(acting.sparsity().row())))

    @property
    def drives(self) -> tuple[str, ...]:
        """Names of inputs that push along several velocities, or along one with a ratio."""
        return () if self.actuated_freedoms else self.control_names

    @property
    def limits(self) -> np.ndarray:
        """Range of each coordinate, shape (nq, 2), m and rad; infinite without one."""
        return np.array([f.limits for f in self.factors for _ in range(f.nq)])

    @property
    def control_limits(self) -> np.ndarray:
        """Largest force or torque of each input, shape (nu,), N and N m; infinite without one."""
        largest = {motor.name: motor.torque for motor in self.motors}
        return np.array([largest.get(name, np.inf) for name in self.control_names])

    @property
    def speed_limits(self) -> np.ndarray:
        """Largest speed of each velocity with a motor for it alone, shape (nv,), else infinite."""
        limits = np.full(self.nv, np.inf)
        for motor in self.motors:
            if len(motor.ratios) == 1:
                at = self.freedom_names.index(next(iter(motor.ratios)))
                limits[at] = min(limits[at], motor.speed / motor.reduction)
        return limits

    @property
    def motor_speeds(self) -> dict[str, tuple[float, np.ndarray]]:
        """By motor of several velocities: its largest speed, and its ratios as a row, (nv,)."""
        return {
            motor.name: (
                motor.speed,
                np.array([motor.ratios.get(name, 0.0) for name in self.freedom_names]),
            )
            for motor in self.motors
            if len(motor.ratios) > 1 and motor.speed < np.inf
        }

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Name of each configuration coordinate, shape (nq,)."""
        return tuple(name for factor in self.factors for name in factor.coordinate_names)

    @property
    def coordinate_units(self) -> tuple[str, ...]:
        """Unit of each configuration coordinate, shape (nq,)."""
        return tuple(unit for factor in self.factors for unit in factor.coordinate_units)

    @property
    def quaternions(self) -> Mapping[Place, str]:
        """Where unit quaternions start in q, and directions start and end, by factor."""
        found = dict[Place, str]()
        for factor, (start, _) in zip(self.factors, self._starts(), strict=True):
            if factor.spherical:
                found[start, start + 3] = factor.name
            elif factor.quaternion_at is not None:
                found[start + factor.quaternion_at] = factor.name
        return found

    def neutral(self) -> np.ndarray:
        """Configuration of the factors' neutral ones, shape (nq,)."""
        return np.concatenate([np.array(factor.neutral, dtype=float) for factor in self.factors])

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a configuration, factor by factor.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Shape (nq,).
        """
        return np.concatenate([factor.random(rng) for factor in self.factors])

    def check_configuration(self, q: ArrayLike, where: str = "configuration") -> np.ndarray:
        """Check a configuration, and bring its unit vectors to norm one.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        where : str
            Place named in errors.

        Returns
        -------
        numpy.ndarray
            Shape (nq,).

        Raises
        ------
        ShapeError, NonFiniteError
            If these are not nq finite numbers.
        DescriptionError
            If a quaternion or a direction has not nearly unit norm.
        """
        where = f"system `{self.name}`, {where}"
        array = finite_floats(q, where, (self.nq,))
        parts = zip(self.factors, self._starts(), strict=True)
        return np.concatenate([f.checked(array[i : i + f.nq], where) for f, (i, _) in parts])

    @evaluated("(nq),(nv)->(nv)")
    def factor_velocity(self, q: Vector, v: Vector) -> Vector:
        """Velocities of the factors, from those of the frame: w with A(q) w = v.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity in the frame, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return ca.solve(self._frame(q), v) if self.framed else v

    @evaluated("(nq),(nv)->(nq)")
    def rate(self, q: Vector, v: Vector) -> Vector:
        """Rate of the configuration for a velocity.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity in the frame, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nq,).
        """
        return self._each(lambda f, q, w: f.rate(q, w), q, self.factor_velocity(q, v))

    @evaluated("(nq),(nv)->(nq)")
    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Configuration after a displacement along the velocities of the factors.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        dv : array_like
            Displacement along the velocities of the factors, m and rad, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nq,).
        """
        return self._each(lambda f, q, d: f.integrate(q, d), q, dv)

    @evaluated("(nv),(nv)->(nv)")
    def dexp_inverse(self, dv: Vector, v: Vector) -> Vector:
        """Rate of the displacement of `integrate`, for velocities of the factors.

        Parameters
        ----------
        dv : array_like
            Displacement along the velocities of the factors, m and rad, shape (nv,).
        v : array_like
            Velocities of the factors, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return self._each(lambda f, d, w: f.dexp_inverse(d, w), dv, v, algebra=True)

    @evaluated("(nv),(nv)->(nv)")
    def bracket(self, a: Vector, b: Vector) -> Vector:
        """Lie bracket of two fields with constant velocities of the factors.

        Parameters
        ----------
        a, b : array_like
            Velocities of the factors, each (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Velocity of the bracket, shape (nv,).
        """
        return self._each(lambda f, a, b: f.bracket(a, b), a, b, algebra=True)

    def body_momentum(self, q: Vector, momentum: Vector) -> Array:
        """Momentum of the symmetry group in the axes of its factors: Pi = Ad*_g mu.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).
        momentum : casadi.SX
            Momentum mu in inertial axes about the origin, of each factor in turn, in the order of
            `fibre`.

        Returns
        -------
        casadi.SX
            Pi, in the same order.

        """
        return self._carried(q, momentum, lambda f, q, mu: f.body_momentum(q, mu))

    @evaluated("(nq),(nv)->(*)")
    def momentum(self, q: Vector, v: Vector) -> Vector:
        """Momentum of the symmetry group in inertial axes, which is constant without forces on it.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity in the frame, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            About the origin, of each factor in turn, in the order of `fibre`.

        References
        ----------
        Thesis, Lemma 3.2.2.
        """
        own = ca.SX(self.mass_matrix(q) @ v)[list(self.fibre)]
        return self._carried(q, own, lambda f, q, pi: f.spatial_momentum(q, pi))

    @evaluated("(nq)->(nq)")
    def normalize(self, coordinates: Vector) -> Vector:
        """Bring quaternions and directions to norm one.

        Parameters
        ----------
        coordinates : array_like
            Configuration with quaternions and directions of any norm but zero, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (nq,).
        """
        parts = zip(self.factors, self._starts(), strict=True)
        return ca.vertcat(*[f.normalize(coordinates[i : i + f.nq, :]) for f, (i, _) in parts])

    @evaluated("(nq)->(nv,nv)")
    def mass_matrix(self, q: Vector) -> Matrix:
        """Mass matrix in the velocities of the frame, symmetric and positive definite.

        Each two-sphere contributes an inertia of its spin, the mean of its two others.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv, nv).

        References
        ----------
        Thesis, Lemma 3.3.4.
        """
        v = ca.SX.sym("v", self.nv)
        mass = ca.substitute(ca.hessian(self.graph(q, v)[0], v)[0], v, ca.SX.zeros(self.nv))
        for span, spin in self._spheres():
            mass[span, span] += spin * self._axis(q, span) @ self._axis(q, span).T
        if not self.framed:
            return mass
        turned = ca.solve(self._frame(q).T, ca.solve(self._frame(q).T, mass).T)
        return ca.triu2symm(ca.triu(turned))

    @evaluated("(nq),(nv),(nv)->(nv)")
    def inverse_dynamics(self, q: Vector, v: Vector, vdot: Vector) -> Vector:
        """Forces for an acceleration: M vdot + bias, Boltzmann-Hamel's equations (14).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity in the frame, shape (nv,).
        vdot : array_like
            Derivative of the velocity, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).

        References
        ----------
        Source 000, (2.3), (2.4); source 002, (19); source 003, (13), (14).
        """
        w, wdot = v, vdot
        if self.framed:
            frame, w = self._frame(q), self.factor_velocity(q, v)
            rate = self._each(lambda f, q, w: f.rate(q, w), q, w)
            wdot = ca.solve(frame, vdot - self._along(q, rate) @ w)
        still, drift, spun = ca.SX(w), ca.SX(wdot), list[tuple[slice, Array]]()
        for span, spin in self._spheres():
            axis = self._axis(q, span)
            turning, change = ca.dot(axis, w[span]), ca.dot(axis, wdot[span])
            still[span] -= turning * axis
            drift[span] -= change * axis + turning * ca.cross(w[span], axis)
            spun.append((span, spin * change * axis))
        force = self.forces(q, still, drift)
        for span, own in spun:
            axis = self._axis(q, span)
            force[span] += own - ca.dot(axis, force[span]) * axis
        return ca.solve(self._frame(q).T, force) if self.framed else force

    @evaluated("(nq),(nv)->(nv)")
    def bias(self, q: Vector, v: Vector) -> Vector:
        """Coriolis, centrifugal and potential forces: M vdot + bias = B u + C^T lambda.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity in the frame, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return self.inverse_dynamics(q, v, ca.SX.zeros(self.nv))

    @evaluated("(nq)->(nf,nv)")
    def constraints(self, q: Vector) -> Matrix:
        """Rows of the constraints: constraints(q) @ v = 0.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nf, nv).
        """
        return self._rows(q, 3)

    @evaluated("(nq)->(nv,nu)")
    def actuation(self, q: Vector) -> Matrix:
        """Actuation matrix B: inputs to forces along the velocities.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv, nu).
        """
        return self._rows(q, 4).T

    @property
    def nd(self) -> int:
        """Number of velocities that forces can change: without the spins of two-spheres."""
        return self.nv - len(self.spins)

    @evaluated("(nq)->(nv,nd)")
    def spinless(self, q: Vector) -> Matrix:
        """Velocities without the spins of two-spheres: orthonormal along the factors, as columns.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv, nd).
        """
        blocks = [
            s2.frame(q[i : i + 3]) if factor.spherical else ca.SX.eye(factor.nv)
            for factor, (i, _) in zip(self.factors, self._starts(), strict=True)
        ]
        own = ca.diagcat(*blocks)
        return self._frame(q) @ own if self.framed else own

    @evaluated("(nq),(nv)->()")
    def kinetic_energy(self, q: Vector, v: Vector) -> Scalar:
        """Kinetic energy, J, with that of spins.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity in the frame, shape (nv,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        w = self.factor_velocity(q, v)
        spins = [spin * ca.dot(self._axis(q, at), w[at]) ** 2 for at, spin in self._spheres()]
        return self.graph(q, w)[0] + sum(spins, ca.SX(0)) / 2

    @evaluated("(nq)->()")
    def potential_energy(self, q: Vector) -> Scalar:
        """Potential energy, J.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        return self.graph(q, ca.SX(self.nv, 1))[1]

    @evaluated("(nq)->(4,4)")
    def pose(self, q: Vector, frame: str) -> Matrix:
        """Pose of a frame of `drawn` in inertial axes.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        frame : str
            Name of the frame.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (4, 4), m.
        """
        names = [name for name, _ in self.drawn]
        if frame not in names:
            raise unknown_name(f"system `{self.name}`, `pose`", "frame", frame, names)
        return ca.SX(self._poses.call([q])[names.index(frame)])

    @cached_property
    def _poses(self) -> ca.Function:
        """Function of q to the poses of the drawn frames."""
        return ca.Function.deserialize(self.poses_text)

    def _carried(
        self, q: Array, momenta: Array, act: Callable[[Factor, Array, Array], Array]
    ) -> ca.SX:
        """Act on the momentum of each factor of the symmetry, with its configuration."""
        found, at = [], 0
        for factor, (i, _) in zip(self.factors, self._starts(), strict=True):
            if factor.name in self.symmetry:
                found.append(act(factor, q[i : i + factor.nq], momenta[at : at + factor.nv]))
                at += factor.nv
        return ca.vertcat(ca.SX(0, 1), *found)

    def _frame(self, q: Vector) -> ca.SX:
        return ca.sparsify(self.graph(q, ca.SX(self.nv, 1))[2])

    def _along(self, q: Vector, rate: Array) -> ca.SX:
        """Rate of the frame along a rate of the configuration."""
        symbol, direction = ca.SX.sym("q", self.nq), ca.SX.sym("rate", self.nq)
        frame = ca.densify(self._frame(symbol))
        slope = ca.reshape(ca.jtimes(ca.vec(frame), symbol, direction), *frame.shape)
        return ca.sparsify(ca.Function("along", [symbol, direction], [slope])(q, rate))

    def _rows(self, q: Vector, place: int) -> ca.SX:
        """Rows of the graph along the frame's velocities."""
        rows = ca.sparsify(self.graph(q, ca.SX(self.nv, 1))[place])
        if not self.framed or not rows.shape[0]:
            return rows
        return ca.sparsify(ca.solve(self._frame(q).T, rows.T).T)

    def _starts(self) -> list[tuple[int, int]]:
        """Where each factor starts in q and in v."""
        starts = [(0, 0)]
        for factor in self.factors[:-1]:
            starts.append((starts[-1][0] + factor.nq, starts[-1][1] + factor.nv))
        return starts

    def _spheres(self) -> list[tuple[slice, float]]:
        """Velocities of each two-sphere, and the inertia of its spin."""
        starts = [
            at for f, (_, at) in zip(self.factors, self._starts(), strict=True) if f.spherical
        ]
        return [(slice(k, k + 3), spin) for k, spin in zip(starts, self.spins, strict=True)]

    def _axis(self, q: Vector, span: slice) -> Array:
        """Direction of the two-sphere with given velocities."""
        start = next(i for i, k in self._starts() if k == span.start)
        return q[start : start + 3]

    def _each(
        self,
        act: Callable[[Factor, Array, Array], Array],
        a: Array,
        b: Array,
        algebra: bool = False,
    ) -> ca.SX:
        """Act on each factor's part: of coordinates a, or velocities, and of velocities b."""
        parts = []
        for factor, (i, k) in zip(self.factors, self._starts(), strict=True):
            own = a[k : k + factor.nv, :] if algebra else a[i : i + factor.nq, :]
            parts.append(act(factor, own, b[k : k + factor.nv, :]))
        return ca.vertcat(*parts)


def _checked_mass(system: LagrangianSystem, space: Space, graph: ca.Function) -> tuple[float, ...]:
    """Inertias of the spins; a singular kinetic energy is an error."""
    v = space.v
    mass = ca.Function(
        "mass",
        [space.q],
        [ca.substitute(ca.hessian(graph(space.q, v)[0], v)[0], v, ca.SX.zeros(space.nv))],
    )
    spheres, found = system._spheres(), list[list[float]]()
    names = [name for factor in space.factors for name in factor.freedom_names]
    for q, _ in space.samples():
        matrix = np.array(mass(q))
        spins = [float(np.trace(matrix[at, at])) / 2 for at, _ in spheres]
        found.append(spins)
        for (at, _), spin in zip(spheres, spins, strict=True):
            axis = np.array(system._axis(q, at))
            matrix[at, at] += spin * np.outer(axis, axis)
        least, place = least_eigenvalue(matrix)
        if least < SINGULAR:
            came = f"the least eigenvalue {least:.1e}, mostly along {names[place]}"
            cure = "Give every motion a mass or an inertia."
            raise space.refused("`kinetic`", "a positive definite kinetic energy", came, cure)
    return tuple(float(mean) for mean in np.mean(found, axis=0)) if spheres else ()


def _check_constraints(system: LagrangianSystem, space: Space) -> None:
    """Demand fewer constraints than velocities, independent at random configurations."""
    if not system.nf:
        return
    free = system.nv - len(system.spins)
    if system.nf >= free:
        expected = f"fewer constraints than the {free} degrees of freedom"
        came = f"{system.nf}: {', '.join(system.constraint_names)}"
        raise space.refused("`constraints`", expected, came, "Leave some out.")
    for q, _ in space.samples():
        rows = np.asarray(system.constraints(q))
        least, place = least_eigenvalue(rows @ np.linalg.solve(system.mass_matrix(q), rows.T))
        if least < SINGULAR:
            name = system.constraint_names[place]
            came = f"a least eigenvalue of {least:.1e} at a random configuration, mostly `{name}`"
            cure = "Leave out constraints that follow from others."
            raise space.refused("`constraints`", "independent constraints", came, cure)
