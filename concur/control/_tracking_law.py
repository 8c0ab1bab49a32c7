"""Laws with their methods for users: torques, starts, checks, ticks and exports.

Longer methods are functions in files that this class takes them from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, overload

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Vector, fingerprint, recalled
from concur.control import _conditions, _feasibility, _mismatch, _start, _torque_reserve
from concur.control._core import LawCore
from concur.control._reading import check_bounds, positive, read_each, read_limits
from concur.control._singularity import check_decoupling, vouched
from concur.control._state_bounds import check_state
from concur.control._tick import ReferenceTick, Tick
from concur.errors import ConcurError, OutputError
from concur.outputs import ReferenceSample
from concur.outputs.references import Reference

if TYPE_CHECKING:
    import control

SPEED_LIMIT = 1000.0
"""Velocity above which exported code refuses a state, m/s or rad/s, by default."""


@dataclass(frozen=True)
class SingleError:
    """Estimated relative error of outputs in single precision.

    It is how far outputs in double precision move if each input moves to a neighbour in single
    precision.

    Parameters
    ----------
    largest, usual : float
        The largest of some states, and their median.
    states : int
        Number of states.
    """

    largest: float
    usual: float
    states: int


@dataclass(frozen=True)
class CFolder:
    """Exported C.

    Parameters
    ----------
    name : str
        Name of the code, the prefix of all its public names.
    files : tuple of pathlib.Path
        The written files.
    states : int
        Number of states in its replay.
    error : SingleError or None
        Estimated error of single precision; None in double precision.
    """

    name: str
    files: tuple[Path, ...]
    states: int
    error: SingleError | None


@dataclass(frozen=True, eq=False, repr=False)
class TrackingLaw(LawCore):
    """Outputs of a reduced robot that follow a reference, with the gains of their errors.

    A subclass gives the law itself, `graph`: `Servo` linearizes, `PassiveServo` does not, and any
    other `Law` becomes one by `tracking_law`. Its methods take
    as `s` what the law takes, shape (nw,): all velocities of the robot if they are measured.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot.
    outputs : sequence of Output
        Outputs that follow the reference, `size` coordinates together.
    stiffness, damping, inertia : numpy.ndarray
        KP, KD and I on the outputs' algebra, shape (size, size).
    singular_margin : float
        Margin of the decoupling matrix below which no torque is returned.
    redundancy : Redundancy, optional
        Rule for the internal motion where there are more shape velocities than output coordinates.
    damping_threshold : float, optional
        Share of the usual margin below which the equation is solved with damping.
    torque_limits : numpy.ndarray, optional
        Lower and upper limit of each control, shape (nu, 2), N and N m.
    use_measured_velocity : bool
        Whether the law takes all measured velocities v in place of the shape velocities s.
    torque_weights : numpy.ndarray, optional
        Weight of the square of each control where there are more than shape velocities, (nu,).
    integral : numpy.ndarray, optional
        KI on the outputs' algebra, shape (size, size).
    longest_period : float, optional
        Longest time from a tick to the next, s, of a law with a state; default: see `state_bounds`.
    largest_state : float or array_like, optional
        Largest magnitude of each entry of the state z, shape (nz,); default: see `state_bounds`.

    Attributes
    ----------
    name : str
        Name of the robot.
    nq, nv, ns, nu : int
        Numbers of configuration coordinates, velocities, shape velocities and controls.
    nw : int
        Number of velocities that the law takes: ns, or nv when they are measured.
    nz : int
        Length of the law's state z, zero at the start, such as an integral; 0 without.
    size, pose_size : int
        Dimension of all outputs together, and length of their flat coordinates.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> law = cc.Servo(model, [base], stiffness=4, damping=4)
    >>> isinstance(law, cc.control.TrackingLaw)
    True
    >>> law.output(model.robot.neutral())
    array([0.25, 0.  ])
    """

    audit = _conditions.audit
    feasibility = _feasibility.feasibility
    start = _start.start
    reach = _feasibility.reach
    torque_reserve = _torque_reserve.torque_reserve
    mismatch = _mismatch.mismatch

    def _check_common(self, where: str, nz: int) -> None:
        """Check the options that all these laws have, and keep sizes."""
        cure = "Leave it out for the default; singular configurations need `damping_threshold`."
        margin = f"{where}, `singular_margin`"
        least = positive(margin, self.singular_margin, "a margin above zero", cure)
        object.__setattr__(self, "singular_margin", least)
        if not isinstance(self.use_measured_velocity, (bool, np.bool_)):
            raise OutputError(
                f"{where}, `use_measured_velocity`",
                expected="True or False",
                came=repr(self.use_measured_velocity)[:40],
                cure="True if the law takes all measured velocities.",
            )
        self._keep_sizes(nz)
        names = self.model.control_names
        if self.torque_limits is None and self.constraints:
            # Those of the robot; a system without bodies has none.
            own = getattr(self.model.system, "control_limits", np.full(self.nu, np.inf))
            object.__setattr__(self, "torque_limits", own)
        if self.torque_limits is False:
            object.__setattr__(self, "torque_limits", None)
        if self.torque_limits is not None:
            limits = read_limits(f"{where}, `torque_limits`", self.torque_limits, self.model)
            object.__setattr__(self, "torque_limits", limits)
        if self.torque_weights is not None:
            where_weights = f"{where}, `torque_weights`"
            weights = read_each(where_weights, self.torque_weights, names, "control")
            object.__setattr__(self, "torque_weights", weights)
        check_bounds(where, self.longest_period, self.largest_state, self.nz)

    def _output_lines(self, gains: dict[str, np.ndarray | None]) -> Iterator[str]:
        """A line for each output: its group, body, and the different numbers of its gains."""
        start = 0
        for output in self.outputs:
            part = slice(start, start + output.dim)
            start = part.stop
            numbers = (
                f"{kind} {', '.join(f'{x:g}' for x in dict.fromkeys(np.diag(matrix)[part]))}"
                for kind, matrix in gains.items()
                if matrix is not None
            )
            frame = f" relative to `{output.relative_to}`" if output.relative_to else ""
            whose = f"{output.name}: {output.group} of `{output.body}`{frame}"
            yield f"{whose}, {', '.join(numbers)}"

    def _check_decoupling(self) -> None:
        """Refuse a law that gives no torque anywhere.

        One that was compiled before has passed this, and is ready without a graph.
        """
        if recalled(fingerprint("tick", self)) is None:
            check_decoupling(self)

    def torque(
        self, q: Vector, s: Vector, sample: ReferenceSample, z: Vector | None = None
    ) -> Array:
        """Control forces and torques for a state and a reference.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample
            Reference pose, twist and acceleration of all outputs.
        z : array_like, optional
            State of the law, shape (nz,), such as the integral of the pose error; default zero.

        Returns
        -------
        numpy.ndarray or casadi.SX
            u, shape (nu,), N and N m.

        Raises
        ------
        SingularConfigurationError
            If the margin of the decoupling matrix, or that with which the controls act on all
            shape velocities, is below `singular_margin`.
        NonFiniteError
            If the state or the result is not finite.
        ConcurError
            If z is beyond its bounds, or the law has no state.

        References
        ----------
        Thesis, (5.3.29), (5.4.30), (5.4.31), (5.4.33).
        """
        if "t" in self.sampled:
            raise ConcurError(
                f"law of `{self.name}`",
                expected="a law of state and reference alone",
                came="one that takes the time",
                cure="Make a tick of it: `law.compile()(q, s, sample, t)`.",
            )
        where = f"law of `{self.name}`, argument `z`"
        if z is not None and not self.nz:
            raise ConcurError(
                where,
                expected="no state, as the law has no integral action",
                came="a state",
                cure="Leave `z` out.",
            )
        if z is not None and not isinstance(z, (ca.SX, ca.MX)):
            check_state(where, z, self.state_bounds.state)
        u, pivot, *_ = self.law(q, s, *self.flat(sample), z)
        return vouched(self, q, u, pivot) if isinstance(u, np.ndarray) else u

    def error(self, q: Vector, s: Vector, sample: ReferenceSample) -> tuple[Vector, Vector]:
        """Pose and velocity error.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample
            Reference pose, twist and acceleration of all outputs.

        Returns
        -------
        x, ve : numpy.ndarray or casadi.SX
            log(r^-1 gamma) and r^-1 rdot - Ad gamma^-1 gammadot, shape (size,); for R^n
            x = gamma - r and ve = rdot - gammadot.

        References
        ----------
        Thesis, (5.4.34).
        """
        return self.errors(q, s, *self.flat(sample)[:2])

    def lyapunov(self, q: Vector, s: Vector, sample: ReferenceSample) -> Array:
        """Lyapunov function of the error; that of a `Servo` is (5.4.35).

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample
            Reference pose, twist and acceleration of all outputs.

        Returns
        -------
        float or casadi.SX
            (x KP x + ve I ve) / 2, of a `Servo`.
        """
        return self._lyapunov(q, s, *self.flat(sample)[:2])

    def to_iosystem(self, closed_loop: bool = False) -> control.NonlinearIOSystem:
        """Wrap the law, or the reduced closed loop, as a system of python-control.

        Parameters
        ----------
        closed_loop : bool
            Whether the model comes with the law: then the states are (q, s), the inputs the
            reference, and the outputs the robot's outputs, errors and controls.

        Returns
        -------
        control.NonlinearIOSystem
            A system without states, from state and reference to controls; or the closed loop.
        """
        system: control.NonlinearIOSystem = import_module("concur.export").to_iosystem(
            self, closed_loop
        )
        return system

    @overload
    def compile(self, reference: None = None, *, interpreted: bool = False) -> Tick: ...

    @overload
    def compile(
        self,
        reference: Reference | Callable[[float], ReferenceSample],
        *,
        interpreted: bool = False,
    ) -> ReferenceTick: ...

    def compile(
        self,
        reference: Reference | Callable[[float], ReferenceSample] | None = None,
        *,
        interpreted: bool = False,
    ) -> Tick | ReferenceTick:
        """Make the law ready to be called at a high rate: one graph, as machine code.

        A tick takes every number that is finite and not absurd (1e18): there is no bound of
        speeds in it, which exported C has (`TOO_FAST`, code 7). Check what is measured first.

        Parameters
        ----------
        reference : Reference or callable, optional
            Reference of all outputs, which becomes a part of the law; a custom Python function
            is called at each tick.
        interpreted : bool
            Whether to leave the graph to CasADi's interpreter: ready at once, five to ten times
            slower.

        Returns
        -------
        Tick or ReferenceTick
            ``tick(q, s, sample) -> u``, or with a reference ``tick(t, q, s) -> u``, a view that
            the next call overwrites; its `buffers` take the numbers without copies, and the
            momentum too where the model rests on one: ``tick.buffers.momentum[:] = mu``, then
            ``tick.run()``.

        Raises
        ------
        ConcurError
            If `interpreted` is not a bool, or the reference does not fit the outputs.

        Warns
        -----
        CompilerWarning
            Once per process, if there is no C compiler, so that the interpreter is used.
        """
        if reference is None:
            return Tick(self, interpreted)
        return ReferenceTick(self, reference, interpreted)

    def export(
        self,
        directory: str | PathLike[str],
        target: str = "c",
        name: str | None = None,
        precision: str = "double",
        speed_limit: ArrayLike = SPEED_LIMIT,
        fmi: str = "3.0",
        reference: Reference | Callable[[float], ReferenceSample] | None = None,
    ) -> CFolder | Path:
        """Write the law for a controller, or as a unit that other simulators load.

        Parameters
        ----------
        directory : path
            Folder of the files; made if it is missing.
        target : str
            "c" for C99 without libraries, with what it takes to try it; "fmu" for a unit for
            co-simulation, with sources and, where a compiler is found, a binary for this machine.
        name : str, optional
            With what all names in the code begin, or the name of a unit; default the robot's name,
            for a unit with "_servo" behind it.
        precision : str
            "double", or "single" for controllers without double precision: the error is estimated
            and written beside the code.
        speed_limit : float or array_like
            Velocity above which the code refuses a state, m/s or rad/s; a number, or one for
            each velocity that the law takes. For C only: a unit has no bound of speeds, and takes
            every number that is finite and not absurd (1e18).
        fmi : str
            Version of FMI of a unit, "3.0" or "2.0"; for units only.
        reference : Reference, optional
            Reference of all outputs, with a graph, which becomes a part of the law: the time `t`
            (s) is an input in place of `pose`, `twist` and `acceleration`.

        Returns
        -------
        CFolder or pathlib.Path
            The folder, whose README explains how to compile, test and use it. Of a unit, the
            archive, named after it.

        Raises
        ------
        UnknownNameError
            If there is no such target.
        ConcurError
            If an option is out of range, the law cannot be exported so, or the files cannot be
            written.
        """
        written: CFolder | Path = import_module("concur.export").export_law(
            self, directory, target, name, precision, speed_limit, fmi, reference
        )
        return written
