"""The robot as one object: the tree of `mechanism` with `kinematics` and `dynamics` as methods.

It stands above all three so that the recursions use trees only, and so that a robot with
wheels can be checked, when it is built, by the very rows it will be reduced with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur import dynamics, kinematics
from concur.codegen import Array, Matrix, Scalar, Vector, as_floats, evaluated
from concur.errors import InertiaError, ReductionError, WheelError, shown
from concur.kinematics import check_wheels
from concur.mechanism import Body, RobotNumbers, Tree, Wheel, robot_size
from concur.system import System

FLAT = 1e-6
"""Sine of the angle between axis and normal below which a disk lies flat."""

TOUCH = 1e-6
"""Largest gap of a contact at the start of a motion, in parts of the robot's size."""

EMPTY = 1e-300
"""Entry of the diagonal of a mass matrix below which it is zero."""

MASSLESS = 1e-13
"""Smallest eigenvalue of a mass matrix of unit diagonal below which a motion moves no mass."""

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from concur.viewing import RobotViewer


@dataclass(frozen=True)
class Mechanism(Tree):
    """A robot: bodies in a tree, wheels on a plane, gravity and actuators.

    All methods take NumPy arrays (and return arrays of floats) or CasADi SX (and return SX).
    Velocities are body-twist coordinates of each joint in its own basis; twists are
    [linear; angular].

    Parameters
    ----------
    name : str
        Name of the robot.
    bodies : sequence of Body
        The bodies in any order; exactly one has no parent: the base. They are kept with
        parents before children.
    wheels : sequence of Wheel
        Rolling contacts with the plane of the base.
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
    InertiaError
        If some joint could move without moving any mass.
    WheelError
        If a wheel does not fit the plane, or the rolling constraints are not regular.

    Examples
    --------
    >>> import concur as cc
    >>> arm = cc.Mechanism(
    ...     "pendulum",
    ...     [
    ...         cc.Body("ceiling", cc.joints.Fixed()),
    ...         cc.Body(
    ...             "rod",
    ...             cc.joints.Revolute((0, 1, 0)),
    ...             parent="ceiling",
    ...             inertia=cc.Inertia(2.0, com=(0, 0, -0.5), moments=(0.1, 0.1, 0.01)),
    ...         ),
    ...     ],
    ...     gravity=(0, 0, -9.81),
    ... )
    >>> float(arm.mass_matrix([0.0])[0, 0])
    0.6
    """

    COMPILED = (
        "mass_matrix",
        "bias",
        "inverse_dynamics",
        "momentum",
        "momentum_matrix",
        "kinetic_energy",
    )

    _kept_rows: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _row_names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _ground: float | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_masses(self)
        names = kinematics.coupling_names(self)
        kept, ground = tuple(range(len(names))), None
        if self.wheels:
            kept, names, ground = check_wheels(self)
        object.__setattr__(self, "_kept_rows", kept)
        object.__setattr__(self, "_row_names", names)
        object.__setattr__(self, "_ground", ground)

    def __repr__(self) -> str:
        sizes = f"{len(self.bodies)} bodies, nq = {self.nq}, nv = {self.nv}, {self.nu} controls"
        return f"<robot {shown(self.name)}: {sizes}>"

    def _repr_html_(self) -> str:
        from concur.plotting.notebook import robot_html

        return robot_html(self)

    @property
    def nf(self) -> int:
        """Number of independent constraints: of wheels, and of joints that follow others."""
        return len(self._kept_rows)

    @property
    def constraint_names(self) -> tuple[str, ...]:
        """Name of each row of `constraints`: wheel and what it forbids, or joint that follows."""
        return self._row_names

    @property
    def ground_height(self) -> float | None:
        """Height of the plane under the wheels above the plane of the base's frame, m.

        Counted along the normal of the base's joint; none without wheels that touch it.
        """
        return self._ground

    def wheel_axis(self, wheel: Wheel) -> np.ndarray:
        """Axis of a wheel in its body's frame.

        Parameters
        ----------
        wheel : Wheel
            One of `wheels`.

        Returns
        -------
        numpy.ndarray
            Unit vector (3,).
        """
        return kinematics.wheel_axis(self, wheel)

    def check_contacts(self, q: np.ndarray, where: str) -> None:
        """Demand that every wheel with a `support` touches it.

        Parameters
        ----------
        q : numpy.ndarray
            Configuration, shape (nq,).
        where : str
            Place named in errors.

        Raises
        ------
        WheelError
            If a gap is larger than 1e-6 of the robot's size, or a disk lies flat.
        """
        for wheel in self.wheels:
            if wheel.support is not None:
                rows = kinematics.wheel_rows(self, kinematics.constant(q), wheel)
                upright, gap = float(ca.DM(rows.upright)), float(ca.DM(rows.height))
                if not upright > FLAT:
                    raise WheelError(
                        f"robot `{self.name}`, wheel `{wheel.body}`, {where}",
                        expected="a disk that touches its support in one point",
                        came="a disk that lies flat",
                        cure="Tilt it: its rolling constraints are singular there.",
                    )
                if not abs(gap) <= TOUCH * robot_size(self):
                    raise WheelError(
                        f"robot `{self.name}`, wheel `{wheel.body}`, {where}",
                        expected="contact with its support",
                        came=f"a gap of {gap:.6g} m",
                        cure="Move its body along the normal by this gap.",
                        gap=gap,
                    )

    @evaluated("(nq)->(4,4)")
    def pose(self, q: Vector, body: str) -> Matrix:
        """Pose of a body in the inertial frame, body to world, m, (2.2.6)."""
        return kinematics.pose(self, q, body)

    @evaluated("(nq)->(6,nv)")
    def jacobian(self, q: Vector, body: str) -> Matrix:
        """Map from joint velocities to the body twist, [linear; angular], body form of (2.3.7)."""
        return kinematics.jacobian(self, q, body)

    @evaluated("(nq),(nv)->(6)")
    def twist(self, q: Vector, v: Vector, body: str) -> Vector:
        """Body twist relative to the inertial frame, [linear; angular], m/s and rad/s."""
        return kinematics.twist(self, q, v, body)

    @evaluated("(nq),(nv)->(6)")
    def velocity_product(self, q: Vector, v: Vector, body: str) -> Vector:
        """Derivative of a body twist at zero joint accelerations: Jdot v, m/s^2 and rad/s^2."""
        return kinematics.velocity_product(self, q, v, body)

    @evaluated("(nv)->(nq)")
    def configuration(self, s: Vector) -> Vector:
        """Configuration reached from the joints' identities by screw parameters, (2.1.3a).

        Parameters
        ----------
        s : array_like
            Screw parameters of all joints, shape (nv,), m and rad: joint j moves by
            exp(basis s_j).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Configuration, shape (nq,).
        """
        return self.integrate(kinematics.constant(self._identities()), s)

    @evaluated("(nq)->(nv)")
    def screw_parameters(self, q: Vector) -> Vector:
        """Screw parameters of a configuration, m and rad: inverse of `configuration`.

        Angles are at most pi, except for joints that count turns in q.
        """
        return self.difference(kinematics.constant(self._identities()), q)

    @evaluated("(nv)->(4,4)")
    def forward(self, s: Vector, body: str) -> Matrix:
        """Pose of a body by the product of exponentials, (2.2.6).

        Parameters
        ----------
        s : array_like
            Screw parameters of all joints, shape (nv,), m and rad.
        body : str
            Name of the body.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Homogeneous matrix (4, 4), body to world, m.
        """
        return kinematics.product_of_exponentials(self, s, body)

    @evaluated("(nv)->(6,nv)")
    def screw_jacobian(
        self,
        s: Vector,
        body: str,
        seen_from: str | None = None,
        relative_to: str | None = None,
    ) -> Matrix:
        """Map from the rate of the screw parameters to the spatial twist of a body, (2.3.7).

        Parameters
        ----------
        s : array_like
            Screw parameters of all joints, shape (nv,), m and rad.
        body : str
            Name of the body.
        seen_from : str, optional
            Body in whose frame the twist is expressed, (2.3.11); default the inertial frame.
        relative_to : str, optional
            Body relative to which the motion is meant, (2.3.12); default the inertial frame.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (6, nv), [linear; angular]; its linear rows are the velocity of the point of
            the body that passes the observer's origin.
        """
        return kinematics.screw_jacobian(self, s, body, seen_from, relative_to)

    @evaluated("(nq)->(nv,nv)")
    def mass_matrix(self, q: Vector) -> Matrix:
        """Symmetric mass matrix in left-trivialised velocities, by composite bodies, SI units."""
        return dynamics.mass_matrix(self, q)

    @evaluated("(nq),(nv)->(nv)")
    def bias(self, q: Vector, v: Vector) -> Vector:
        """Coriolis, centrifugal and gravity forces: M vdot + bias = tau, N and N m."""
        return dynamics.bias(self, q, v)

    @evaluated("(nq),(nv),(nv)->(nv)")
    def inverse_dynamics(self, q: Vector, v: Vector, vdot: Vector) -> Vector:
        """Generalised forces for an acceleration, by Newton-Euler: M vdot + bias, N and N m."""
        return dynamics.inverse_dynamics(self, q, v, vdot)

    @evaluated("(nq),(nv)->(nv,nv)")
    def coriolis(self, q: Vector, v: Vector) -> Matrix:
        """Factor C of the Coriolis forces with Mdot = C + C^T.

        C v plus the gravity forces is `bias`.
        """
        return dynamics.coriolis(self, q, v)

    @evaluated("(nq),(nv)->(6)")
    def momentum(self, q: Vector, v: Vector) -> Vector:
        """Spatial momentum about the inertial origin, [linear; angular], SI units, (3.3.35)."""
        return dynamics.momentum(self, q, v)

    @evaluated("(nq)->(6,nv)")
    def momentum_matrix(self, q: Vector) -> Matrix:
        """Map from velocities to `momentum`, rows [linear; angular], SI units, (3.3.35)."""
        return dynamics.momentum_matrix(self, q)

    @evaluated("(nq),(nv)->()")
    def kinetic_energy(self, q: Vector, v: Vector) -> Scalar:
        """Kinetic energy, J."""
        return dynamics.kinetic_energy(self, q, v)

    @evaluated("(nq)->()")
    def potential_energy(self, q: Vector) -> Scalar:
        """Potential energy of gravity, zero at the inertial origin, J."""
        return dynamics.potential_energy(self, q)

    @evaluated("(nq)->(nf,nv)")
    def constraints(self, q: Vector) -> Matrix:
        """Rolling constraints and couplings, of full row rank: constraints(q) @ v = 0.

        Rows that follow from others are left out; `constraint_names` names those kept.
        """
        return _constraint_rows(self, q, self._kept_rows)

    @evaluated("(nq)->(nv,nu)")
    def actuation(self, q: Vector) -> Matrix:
        """Actuation matrix B: controls to generalised forces, M vdot + bias = B u + C^T lambda."""
        return kinematics.control_velocities(self, q, ca.SX.eye(self.nv)).T

    def modified_jacobian(
        self, s: Vector, body: str, rows: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Spatial Jacobian along motions that nonholonomic joints admit, (2.3.13).

        Parameters
        ----------
        s : array_like
            Screw parameters, shape (nv,), m and rad.
        body : str
            Name of the body.
        rows : mapping of str to array_like, optional
            For a nonholonomic joint, by body, constant rows on its body velocity, shape
            (f, nv of the joint): rows @ v = 0.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (6, n): n admissible speeds of the whole robot.
        """
        return self._with_rows(s, "modified", (body,), _frozen_rows(rows))

    def stacked_jacobian(
        self, s: Vector, bodies: Sequence[str], rows: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Modified Jacobians of several bodies over each other, shared joints once.

        Parameters
        ----------
        s : array_like
            Screw parameters, shape (nv,), m and rad.
        bodies : sequence of str
            Names of the bodies.
        rows : mapping of str to array_like, optional
            As for `modified_jacobian`.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (6 k, n) for k bodies: the map to use for every question of rank.
        """
        return self._with_rows(s, "stacked", tuple(bodies), _frozen_rows(rows))

    def branch_jacobians(
        self, s: Vector, bodies: Sequence[str], rows: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Modified Jacobians of several branches as blocks, shared joints repeated, (2.3.13).

        Beware: its rank is not that of the robot; `stacked_jacobian` has the true one.

        Parameters
        ----------
        s : array_like
            Screw parameters, shape (nv,), m and rad.
        bodies : sequence of str
            Names of the bodies at the ends of the branches.
        rows : mapping of str to array_like, optional
            As for `modified_jacobian`.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Block diagonal, shape (6 k, sum of the branches' speeds).
        """
        return self._with_rows(s, "branch", tuple(bodies), _frozen_rows(rows))

    @evaluated("(nv)->(*,*)")
    def _with_rows(
        self, s: Vector, kind: str, bodies: tuple[str, ...], rows: tuple[tuple[str, Any], ...]
    ) -> Matrix:
        given = {name: np.array(values) for name, values in rows}
        if kind == "modified":
            return kinematics.modified_jacobian(self, s, bodies[0], given)
        if kind == "stacked":
            return kinematics.stacked_jacobian(self, s, bodies, given)
        return kinematics.branch_jacobians(self, s, bodies, given)

    def plot(
        self,
        q: ArrayLike | None = None,
        outputs: Iterable[Any] = (),
        ax: Any = None,
    ) -> Figure:
        """Draw the robot: links, wheels, body frames and names, each joint by its kind.

        Parameters
        ----------
        q : array_like, optional
            Configuration, shape (nq,); default the neutral one.
        outputs : iterable of Output
            Outputs whose points are drawn too.
        ax : mpl_toolkits.mplot3d.axes3d.Axes3D, optional
            Three-dimensional axes to draw into; default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; its ``savefig`` writes a file, no window is opened.

        Raises
        ------
        ShapeError, NonFiniteError
            If the configuration does not fit the robot.
        DescriptionError
            If the axes have two dimensions.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.rover_arm()
        >>> robot.plot().savefig("rover_arm.png")    # doctest: +SKIP
        """
        from concur.plotting import robot_portrait

        at = self.neutral() if q is None else self.check_configuration(q)
        return robot_portrait(self, at, tuple(outputs), ax)

    def view(
        self,
        q: ArrayLike | None = None,
        outputs: Iterable[Any] = (),
        servo: Any = None,
        *,
        port: int = 0,
        browser: bool = True,
    ) -> RobotViewer:
        """Show the robot in three dimensions in a browser, with a slider for each joint.

        The page is served by a thread of this process: call `wait` of the result at the end of a
        script. Needs the extra `view`.

        Parameters
        ----------
        q : array_like, optional
            Configuration, shape (nq,); default the neutral one.
        outputs : iterable of Output
            Outputs whose poses are shown; default those of the servo.
        servo : Servo, optional
            Law whose decoupling margin is shown.
        port : int
            Port of this machine; 0: any free port.
        browser : bool
            Whether to open the page in a browser, if this machine has a screen.

        Returns
        -------
        RobotViewer
            The viewer, with the address `url`; `close` ends it.

        Raises
        ------
        ShapeError, NonFiniteError
            If the configuration does not fit the robot.
        ConcurError
            If the extra `view` is not installed or the port is in use.
        """
        from concur.viewing import RobotViewer

        at = self.neutral() if q is None else self.check_configuration(q)
        shown = tuple(outputs) or tuple(getattr(servo, "outputs", ()))
        return RobotViewer(self, at, shown, servo, port, browser)

    def save(self, path: str | PathLike[str]) -> tuple[Path, ...]:
        """Write the robot to a file: TOML, URDF or MJCF, by the ending of its name.

        TOML keeps everything: `concur.load` reads an equal robot. MJCF and URDF keep bodies,
        joints, limits and actuators; see ``docs/files.md`` for joints and wheels that they cannot
        express.

        Parameters
        ----------
        path : path
            Name with the ending .toml, .urdf, .xml or .mjcf. A file of this name is replaced.

        Returns
        -------
        tuple of pathlib.Path
            The files written: beside a URDF file a sidecar of the same name with the ending
            .toml.

        Raises
        ------
        DescriptionError
            If the ending is another one, the format cannot express the robot, or the sidecar would
            replace a file that is no sidecar.
        ConcurError
            If a file cannot be written.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import concur as cc
        >>> robot, folder = cc.robots.free_flyer(), pathlib.Path(tempfile.mkdtemp())
        >>> [file.name for file in robot.save(folder / "flyer.urdf")]
        ['flyer.urdf', 'flyer.toml']
        >>> robot.save(folder / "copy.toml") and cc.load(folder / "copy.toml") == robot
        True
        """
        from concur.writers import save

        return save(self, path)

    def summary(self) -> str:
        """Describe the robot in plain text, with numbers in SI units.

        Returns
        -------
        str
            Tables of the joints (axis, pitch, freedoms, limits, drive), of the masses and
            principal moments and, with wheels, of these and the rolling constraints.

        Examples
        --------
        >>> import concur as cc
        >>> print(cc.robots.orbital_crawler().summary().splitlines()[0])
        orbital_crawler: 6 bodies, nq = 17, nv = 15, 9 driven freedoms
        """
        from concur.plotting import summarise

        return summarise(self)


class SymbolicRobot(Tree):
    """A robot with expressions in place of its numbers.

    Its methods take and return CasADi SX that depend on these expressions. Unlike those of a
    `Mechanism` they keep no graphs, which could not contain the expressions.

    Parameters
    ----------
    robot : Mechanism
        The robot; its frames, attitudes and kept constraint rows stay.
    numbers : RobotNumbers
        The expressions.
    """

    _numbers: RobotNumbers
    _kept_rows: tuple[int, ...]

    def __init__(self, robot: Mechanism, numbers: RobotNumbers) -> None:
        mine: dict[str, Any] = {entry.name: getattr(robot, entry.name) for entry in fields(robot)}
        given = zip(robot.linkages, numbers.axles, numbers.reaches, strict=True)
        mine["_linkages"] = tuple(linkage.with_numbers(*parts) for linkage, *parts in given)
        self.__dict__.update(mine, _numbers=numbers)

    @property
    def numbers(self) -> RobotNumbers:
        return self._numbers

    def mass_matrix(self, q: ca.SX) -> ca.SX:
        """Mass matrix, as `Mechanism.mass_matrix`.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        casadi.SX
            Shape (nv, nv), kg, kg m, kg m^2.
        """
        return dynamics.mass_matrix(self, q)

    def bias(self, q: ca.SX, v: ca.SX) -> ca.SX:
        """Coriolis, centrifugal and gravity forces, as `Mechanism.bias`.

        Parameters
        ----------
        q, v : casadi.SX
            Configuration and velocity, shapes (nq,) and (nv,).

        Returns
        -------
        casadi.SX
            Shape (nv,), N and N m.
        """
        return dynamics.bias(self, q, v)

    def constraints(self, q: ca.SX) -> ca.SX:
        """Rolling constraints and couplings: the rows that the nominal robot keeps.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        casadi.SX
            Shape (nf, nv).
        """
        return _constraint_rows(self, q, self._kept_rows)

    def normalize(self, coordinates: ca.SX) -> ca.SX:
        unit = self._unit(coordinates)
        return self._followed(unit, True) if self._linkages else unit


def with_numbers(robot: Mechanism, bodies: Sequence[Body], wheels: Sequence[Wheel]) -> Mechanism:
    """The same robot with other inertias, placements and radii.

    It keeps the constraint rows of the robot, and its wheels may be of heights that differ.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    bodies : sequence of Body
        Its bodies, with other numbers.
    wheels : sequence of Wheel
        Its wheels, with other numbers.

    Returns
    -------
    Mechanism
        The robot with these numbers.

    Raises
    ------
    DescriptionError
        If an axle of `steering` no longer meets its steering axis.
    """
    made = object.__new__(Mechanism)
    mine = {entry.name: getattr(robot, entry.name) for entry in fields(robot)}
    made.__dict__.update(mine, bodies=bodies, wheels=wheels)
    Tree.__post_init__(made)
    return made


def _constraint_rows(tree: Tree, q: Vector, kept: Sequence[int]) -> Matrix:
    rows = [kinematics.wheel_rows(tree, q, wheel).rows for wheel in tree.wheels]
    coupled = kinematics.coupling_rows(tree, q)
    return ca.vertcat(ca.SX(0, tree.nv), *rows, coupled)[list(kept), :]


def control_velocities(system: System | Tree, q: Vector, columns: Array) -> Array:
    """Velocities along the controls: ``B^T columns`` for columns of velocities of the robot.

    Where joints are driven one by one it is a selection of rows.

    Parameters
    ----------
    system : System
        Any system.
    q : casadi.SX
        Configuration, shape (nq,).
    columns : casadi.SX or casadi.MX
        Velocities, shape (nv, k).

    Returns
    -------
    casadi.SX or casadi.MX
        Shape (nu, k).
    """
    if not isinstance(system, Tree) or not system.drives:
        return columns[list(system.actuated_freedoms), :]
    if isinstance(system, Mechanism) and isinstance(columns, ca.MX):
        return system.actuation(q).T @ columns
    return kinematics.control_velocities(system, q, columns)


def controls(system: System) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and units of the controls of a system.

    Parameters
    ----------
    system : System
        Any system.

    Returns
    -------
    names, units : tuple of str
        One per control.
    """
    if isinstance(system, Mechanism):
        return system.control_names, system.control_units
    driven = system.actuated_freedoms
    names, units = system.freedom_names, system.effort_units
    return tuple(names[i] for i in driven), tuple(units[i] for i in driven)


def as_tree(system: System, where: str) -> Mechanism:
    """Demand that a system is a tree of bodies.

    Parameters
    ----------
    system : System
        Any system.
    where : str
        Place named in the error: what needs the bodies.

    Returns
    -------
    Mechanism
        The same.

    Raises
    ------
    ReductionError
        If it is no `Mechanism`.
    """
    if isinstance(system, Mechanism):
        return system
    raise ReductionError(
        where,
        expected="a Mechanism: a tree of bodies",
        came=f"the {type(system).__name__} `{system.name}`",
        cure="Use what needs a mass matrix, forces and constraints only, or describe the bodies.",
    )


def _frozen_rows(rows: Mapping[str, ArrayLike] | None) -> tuple[tuple[str, Any], ...]:
    """Rows as something that can name a function."""
    frozen = []
    for name, values in sorted((rows or {}).items()):
        numbers = np.atleast_2d(as_floats(values, f"`rows` of `{name}`"))
        frozen.append((name, tuple(map(tuple, numbers.tolist()))))
    return tuple(frozen)


def without_mass(mass: np.ndarray) -> np.ndarray:
    """Find mass matrices for which some motion moves no mass.

    Parameters
    ----------
    mass : numpy.ndarray
        Mass matrices, shape (..., nv, nv).

    Returns
    -------
    numpy.ndarray
        Truth values, shape (...).
    """
    diagonal = np.diagonal(mass, axis1=-2, axis2=-1)
    scale = np.sqrt(np.maximum(diagonal, EMPTY))
    values = np.linalg.eigvalsh(mass / (scale[..., :, None] * scale[..., None, :]))
    return np.asarray((diagonal < EMPTY).any(axis=-1) | (values[..., 0] < MASSLESS))


def _check_masses(tree: Mechanism) -> None:
    """No motion is free of inertia: else a force would have no finite acceleration."""
    if not tree.nv:
        return
    rng = np.random.default_rng(7)
    worst = None
    for q in (tree.random(rng) for _ in range(2)):
        mass = tree.mass_matrix(q)
        if without_mass(mass):
            scale = np.sqrt(np.maximum(np.diag(mass), EMPTY))
            vectors = np.linalg.eigh(mass / np.outer(scale, scale))[1]
            empty = np.flatnonzero(np.diag(mass) < EMPTY)
            worst = empty[0] if empty.size else int(np.abs(vectors[:, 0]).argmax())
    if worst is not None:
        raise InertiaError(
            f"robot `{tree.name}`, body `{tree.freedom_names[worst].partition('[')[0]}`",
            expected="a mass above zero behind every motion of its joint",
            came="a motion that moves no mass",
            cure="A force would have no finite acceleration: give this body, or those it carries, "
            "an inertia, or make the joint Fixed.",
        )
