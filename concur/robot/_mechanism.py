"""The robot as one object, with kinematics and dynamics as methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Matrix, Scalar, Vector, evaluated
from concur.errors import shown
from concur.results import show
from concur.robot import _dynamics, _kinematics, _rows
from concur.robot._bodies import unknown_name
from concur.robot._contact import check_wheels
from concur.robot._exponentials import ScrewTree
from concur.robot._keyframe import Keyframe
from concur.robot._massless import check_masses
from concur.robot._numbers import changed_parts
from concur.robot._spatial import stacked
from concur.robot._wheel import Wheel
from concur.tables import INTERNAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Mechanism(ScrewTree):
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
    unread : sequence of str
        Parts of its URDF or MJCF file that the robot lacks or changes, a sentence for each kind;
        `load` fills it in. It has no meaning for the motion, and equal robots may differ in it.
    keyframes : mapping of str to Keyframe
        Stored states by name, such as `home`: starts of tasks. Default: none.

    Raises
    ------
    DescriptionError
        If names repeat, the parents form no tree, the base is actuated, a joint of `motors` is
        actuated too, joints follow each other in a cycle, a wheel cannot follow its guides, or a
        support has the name of a wheel.
    UnknownNameError
        If a parent, a wheel's body, an actuator, or a joint of a motor does not exist.
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

    _COMPILED = (
        "mass_matrix",
        "bias",
        "inverse_dynamics",
        "momentum",
        "momentum_matrix",
        "kinetic_energy",
    )

    unread: Annotated[Sequence[str], INTERNAL] = field(default=(), repr=False, compare=False)
    keyframes: Mapping[str, Keyframe] = field(default_factory=dict, repr=False, hash=False)
    nf: int = field(init=False, repr=False, compare=False)
    constraint_names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    ground_height: float | None = field(init=False, repr=False, compare=False)
    _kept_rows: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nv:
            rng = np.random.default_rng(7)
            check_masses(self, self.inertia_matrices, [self.random(rng) for _ in range(2)])
        for name, state in self.keyframes.items():
            state.of(self, f"{self._where}, keyframe `{shown(name)}`")
        names = self.coupling_names
        kept, ground = tuple(range(len(names))), None
        if self.wheels:
            kept, names, ground = check_wheels(self)
        self._keep(
            unread=tuple(self.unread),
            nf=len(kept),
            constraint_names=names,
            ground_height=ground,
            _kept_rows=kept,
        )

    def __repr__(self) -> str:
        sizes = f"{len(self.bodies)} bodies, nq = {self.nq}, nv = {self.nv}, {self.nu} controls"
        return f"<robot {shown(self.name)}: {sizes}>"

    def _repr_html_(self) -> str:

        return show("notebook.robot_html", self)

    def with_numbers(self, numbers: Mapping[str, ArrayLike]) -> Mechanism:
        """The same robot with other numbers of its description.

        It keeps the constraint rows of this robot, and its wheels may be of heights that differ.

        Parameters
        ----------
        numbers : mapping of str to array_like
            Some of `numbers`, with other values, SI units.

        Returns
        -------
        Mechanism
            The robot.

        Raises
        ------
        UnknownNameError
            If the robot has no number of this name.
        ConcurError
            If a body, wheel or motor cannot have a number, or an axle of `steering` no longer
            meets its steering axis.

        Examples
        --------
        >>> import concur as cc
        >>> robot = cc.robots.rover_arm()
        >>> robot.with_numbers({"forearm.inertia.mass": 1.5}).numbers["forearm.inertia.mass"]
        array(1.5)
        """
        made = object.__new__(Mechanism)
        mine = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        made.__dict__.update(mine, **changed_parts(self, numbers))
        ScrewTree.__post_init__(made)
        return made

    def keyframe(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and velocity of a stored state.

        Parameters
        ----------
        name : str
            One of `keyframes`.

        Returns
        -------
        q, v : numpy.ndarray
            Shapes (nq,) and (nv,), m, rad, m/s and rad/s. Joints that follow others, and which the
            state lacks, have the coordinate that belongs to them.

        Raises
        ------
        UnknownNameError
            If there is no such state, or it names an unknown joint.
        ShapeError
            If a joint has another number of coordinates.
        DescriptionError
            If a quaternion is invalid, or a joint that follows another is elsewhere.

        Examples
        --------
        >>> import concur as cc
        >>> from dataclasses import replace
        >>> home = cc.robot.Keyframe({"turret": 0.5})
        >>> robot = replace(cc.robots.rover_arm(), keyframes={"home": home})
        >>> robot.keyframe("home")[0].max().item()
        0.5
        """
        where = f"keyframe `{shown(name)}`"
        if name not in self.keyframes:
            raise unknown_name(self._where, "keyframe", name, tuple(self.keyframes))
        q, v = self.keyframes[name].of(self, f"{self._where}, {where}")
        return self.check_configuration(self.coupled(q, self.keyframes[name].q), where), v

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
        return _rows.wheel_axis(self, wheel)

    @evaluated("(nq)->(4,4)")
    def pose(self, q: Vector, body: str) -> Matrix:
        """Pose of a body in the inertial frame, body to world, m, (2.2.6).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        body : str
            Name of the body.

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (4, 4).
        """
        return _kinematics.pose(self, q, body)

    @evaluated("(nq)->(6,nv)")
    def jacobian(self, q: Vector, body: str) -> Matrix:
        """Map from joint velocities to the body twist, [linear; angular], body form of (2.3.7).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        body : str
            Name of the body.

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (6, nv).
        """
        return _kinematics.jacobian(self, q, body)

    @evaluated("(nq),(nv)->(6)")
    def twist(self, q: Vector, v: Vector, body: str) -> Vector:
        """Body twist relative to the inertial frame, [linear; angular], m/s and rad/s.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).
        body : str
            Name of the body.

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (6,).
        """
        return stacked(_kinematics.motion_from(self, q, v, None, body)[1])

    @evaluated("(nq),(nv)->(6)")
    def velocity_product(self, q: Vector, v: Vector, body: str) -> Vector:
        """Derivative of a body twist at zero joint accelerations: Jdot v, m/s^2 and rad/s^2.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).
        body : str
            Name of the body.

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (6,).
        """
        return stacked(_kinematics.motion_from(self, q, v, None, body)[2])

    @evaluated("(nq)->(nv,nv)")
    def mass_matrix(self, q: Vector) -> Matrix:
        """Symmetric mass matrix in left-trivialised velocities, by composite bodies, SI units.

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
        Thesis, (3.2.12), (3.3.31).
        """
        return _dynamics.mass_matrix(self, q)

    @evaluated("(nq),(nv)->(nv)")
    def bias(self, q: Vector, v: Vector) -> Vector:
        """Coriolis, centrifugal, gravity and spring forces: M vdot + bias = tau, N and N m.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return _dynamics.bias(self, q, v)

    @evaluated("(nq),(nv),(nv)->(nv)")
    def inverse_dynamics(self, q: Vector, v: Vector, vdot: Vector) -> Vector:
        """Generalised forces for an acceleration, by Newton-Euler: M vdot + bias, N and N m.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).
        vdot : array_like
            Derivative of the velocity, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return _dynamics.inverse_dynamics(self, q, v, vdot)

    @evaluated("(nq),(nv)->(nv,nv)")
    def coriolis(self, q: Vector, v: Vector) -> Matrix:
        """Factor C of the Coriolis forces with Mdot = C + C^T.

        C v plus the gravity forces is `bias`.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv, nv).
        """
        return _dynamics.coriolis(self, q, v)

    @evaluated("(nq),(nv)->(6)")
    def momentum(self, q: Vector, v: Vector) -> Vector:
        """Spatial momentum about the inertial origin, [linear; angular], SI units, (3.3.35).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (6,).

        References
        ----------
        Thesis, Lemma 3.2.2, (3.2.14)-(3.2.16), (3.3.34), (3.3.35).
        """
        return _dynamics.momentum(self, q, v)

    @evaluated("(nq)->(6,nv)")
    def momentum_matrix(self, q: Vector) -> Matrix:
        """Map from velocities to `momentum`, rows [linear; angular], SI units, (3.3.35).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (6, nv).
        """
        return _dynamics.momentum_matrix(self, q)

    @evaluated("(nq),(nv)->()")
    def kinetic_energy(self, q: Vector, v: Vector) -> Scalar:
        """Kinetic energy, J, (4.4.28).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        return _dynamics.kinetic_energy(self, q, v)

    @evaluated("(nq)->()")
    def potential_energy(self, q: Vector) -> Scalar:
        """Potential energy of gravity, zero at the inertial origin, and of springs, J, (3.3.32).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        return _dynamics.potential_energy(self, q)

    @evaluated("(nq)->(nf,nv)")
    def constraints(self, q: Vector) -> Matrix:
        """Rolling constraints and couplings, of full row rank: constraints(q) @ v = 0.

        Rows that follow from others are left out; `constraint_names` names those kept.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nf, nv).

        References
        ----------
        Thesis, (4.2.8), (4.3.23).
        """
        return _rows.constraint_rows(self, q, self._kept_rows)

    @evaluated("(nq)->(nv,nu)")
    def actuation(self, q: Vector) -> Matrix:
        """Actuation matrix B: controls to generalised forces, M vdot + bias = B u + C^T lambda.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv, nu).
        """
        return _kinematics.along_controls(self, q, ca.SX.eye(self.nv)).T

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
        at = self.neutral() if q is None else self.check_configuration(q)
        return show("robot_figure", self, at, tuple(outputs), ax)

    def view(
        self,
        q: ArrayLike | None = None,
        outputs: Iterable[Any] = (),
        servo: Any = None,
        *,
        port: int = 0,
        browser: bool = True,
    ) -> Any:
        """Show the robot in three dimensions in a browser, with a slider for each joint.

        The page is served by a thread of this process: call `wait` of the result at the end of a
        script.

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
        concur.show.viewer.RobotViewer
            The viewer, with the address `url`; `close` ends it.

        Raises
        ------
        ShapeError, NonFiniteError
            If the configuration does not fit the robot.
        ConcurError
            If the port is in use.
        """
        at = self.neutral() if q is None else self.check_configuration(q)
        shown = tuple(outputs) or tuple(getattr(servo, "outputs", ()))
        return show("viewer.RobotViewer", self, at, shown, servo, port, browser)

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
        # By name: a robot stands below what writes it.
        files: tuple[Path, ...] = import_module("concur.writers").save(self, path)
        return files

    def summary(self) -> str:
        """Describe the robot in plain text, with numbers in SI units.

        Returns
        -------
        str
            Tables of the joints (axis, pitch, freedoms, limits, motor), of the masses and
            principal moments and, with wheels, of these and the rolling constraints.

        Examples
        --------
        >>> import concur as cc
        >>> print(cc.robots.orbital_crawler().summary().splitlines()[0])
        orbital_crawler: 6 bodies, nq = 17, nv = 15, 9 driven freedoms
        """
        return show("summarise", self)
