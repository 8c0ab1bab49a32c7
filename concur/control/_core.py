"""The core of a law: model, outputs, gains and options, with derived quantities.

The functions of this package are written over it: they build the law's graph, follow references,
explain refusals. `TrackingLaw` has them as methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, ClassVar

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
    as_floats,
    evaluated,
    part,
    shape_error,
)
from concur.control._error_dynamics import ErrorDynamics
from concur.control._margins import (
    SINGULAR,
    Margins,
    decoupling_margins,
    mobility_scales,
    natural_units,
    row_scales,
    usual_scales,
)
from concur.control._reading import is_one_pose
from concur.control._redundancy import Redundancy
from concur.control._state_bounds import StateBounds, integral_bounds, slowest_period
from concur.errors import OutputError, ShapeError, shown
from concur.outputs import Output, ReferenceSample, check_parts, output_motion, pose_quaternions
from concur.outputs.groups import Product
from concur.reduction import ReducedModel
from concur.results import show
from concur.robot import Mechanism
from concur.tables import (
    INTERNAL,
    NUMBER,
    PAIR,
    Expected,
    Positive,
    any_of,
    is_number,
    is_number_or_list,
    is_pair,
    list_of,
    table_of,
)

OUTPUTS = ("u", "pivot", "missed", "scale", "side", "zdot", "active")
"""Results of a law: torques; margin bound; acceleration residual; share of the commanded output
acceleration that limits leave; the side of singular configurations, 1 or -1, which differs on both
sides of one; rate of z; 1 for each of `limit_names` that is active, else 0."""


def _is_limits(value: Any) -> bool:
    if isinstance(value, bool):
        return True
    entries = list(value.values()) if isinstance(value, dict) else value
    entries = entries if isinstance(entries, list) else [entries]
    return all(is_number(entry) or is_pair(entry) for entry in entries)


def _is_weights(value: Any) -> bool:
    entries = list(value.values()) if isinstance(value, dict) else value
    return isinstance(entries, list) and is_number_or_list(entries)


def _is_bounds(value: Any) -> bool:
    entries = value if isinstance(value, list) else [value]
    return all(is_number(entry) and entry > 0.0 for entry in entries)


_LIMIT = any_of(NUMBER, PAIR)
_LIMITS = Expected(
    "true, a number, one per control, or a table of controls",
    _is_limits,
    any_of({"type": "boolean"}, _LIMIT, list_of(_LIMIT), table_of(_LIMIT)),
)
_WEIGHTS = Expected(
    "one positive number per control, or a table of controls",
    _is_weights,
    any_of(list_of(NUMBER), table_of(NUMBER)),
)
_STATE = Expected(
    "a number above zero, or one per output coordinate",
    _is_bounds,
    any_of(NUMBER, list_of(NUMBER)),
)


@dataclass(frozen=True, eq=False, repr=False)
class LawCore(EvaluatedMethods, ABC):
    """A law without its methods for users; `TrackingLaw` lists its parameters."""

    _COMPILED = ("law", "output", "errors", "decoupling")

    model: Annotated[ReducedModel, INTERNAL]
    outputs: Annotated[Sequence[Output], INTERNAL]
    stiffness: Annotated[Any, INTERNAL]
    damping: Annotated[Any, INTERNAL]
    inertia: Annotated[Any, INTERNAL]
    singular_margin: Annotated[float, INTERNAL] = SINGULAR
    redundancy: Redundancy | None = None
    damping_threshold: Positive | None = None
    torque_limits: Annotated[Any, _LIMITS] = None
    use_measured_velocity: bool = False
    torque_weights: Annotated[Any, _WEIGHTS] = None
    integral: Annotated[Any, INTERNAL] = None
    longest_period: Positive | None = None
    largest_state: Annotated[Any, _STATE] = None
    constraints: ClassVar[Any] = None
    """`Constraints` of a law that keeps them."""
    name: str = field(init=False)
    nq: int = field(init=False)
    nv: int = field(init=False)
    ns: int = field(init=False)
    nu: int = field(init=False)
    nw: int = field(init=False)
    nz: int = field(init=False)
    size: int = field(init=False)
    pose_size: int = field(init=False)
    twist_size: int = field(init=False)

    def _keep_sizes(self, nz: int) -> None:
        """Keep the sizes that everything asks for: of model, outputs and state."""
        model, outputs = self.model, self.outputs
        kept = {name: getattr(model, name) for name in ("name", "nq", "nv", "ns", "nu")} | {
            "nw": model.nv if self.use_measured_velocity else model.ns,
            "nz": nz,
            "size": sum(output.dim for output in outputs),
            "pose_size": sum(output.pose_size for output in outputs),
            "twist_size": sum(output.twist_size for output in outputs),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def _build(self) -> ca.Function:
        """Build the graph of the law, for `graph`: by `law_graph`, from `inputs` to `OUTPUTS`."""

    def graph(self) -> ca.Function:
        """The whole law as one function: torques, ticks, exports and simulations call it.

        Returns
        -------
        casadi.Function
            From `inputs` to the results named in `OUTPUTS`; over MX with torque limits. It is built
            once.
        """
        kept = self.__dict__.setdefault("_evaluators", {})
        if "graph" not in kept:
            kept["graph"] = self._build()
        found: ca.Function = kept["graph"]
        return found

    def results(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Results of the law by name, those of `OUTPUTS`, from its inputs by name.

        Parameters
        ----------
        given : mapping of str to Array
            Inputs; others than those of the law are skipped. Default of the momentum is that of
            the model, of the others zero.

        Returns
        -------
        dict of str to Array
            The results.
        """
        preset = {"momentum": ca.DM(self.model.momentum)} if "momentum" in self.inputs else {}
        taken = {name: value for name, value in given.items() if name in self.inputs}
        found: dict[str, Any] = self.graph().call(preset | taken)
        return found

    def __repr__(self) -> str:
        outputs = ", ".join(f"{output.name} ({output.group})" for output in self.outputs)
        what = "servo" if self.linearizes else "law"
        outputs = shown(outputs or "no outputs", 100)
        return f"<{what} of {shown(self.name, 40)}: {outputs}; {self.nu} controls>"

    def _repr_html_(self) -> str:
        kind, text = ("Servo", str(self)) if self.linearizes else ("Law", repr(self))
        return show("notebook.text_html", f"{kind} of {self.name}", text)

    @cached_property
    def error_dynamics(self) -> ErrorDynamics:
        """Error dynamics of the closed loop."""
        group = Product([output.lie for output in self.outputs])
        return ErrorDynamics(group, self.stiffness, self.damping, self.inertia, self.integral)

    @property
    def quaternions(self) -> Mapping[Place, str]:
        """Where the quaternions start in q, and the bodies whose joints they turn."""
        return self.model.quaternions

    @property
    def _attitudes(self) -> Mapping[str, Mapping[Place, str]]:
        """Where quaternions start in q and in a reference pose, and what they belong to."""
        return {**super()._attitudes, "pose": pose_quaternions(self.outputs)}

    def _state_entries(self) -> tuple[tuple[str, str], ...]:
        """Name and unit of each entry of the state z."""
        if self.integral is None:
            return ()
        return tuple(
            (f"{output.name}[{name}]", f"{unit} s")
            for output in self.outputs
            for name, unit in zip(output.lie.error_names, output.lie.error_units, strict=True)
        )

    @cached_property
    def state_bounds(self) -> StateBounds:
        """Bounds of the period and of the state z, which ticks, exported C and FMUs keep.

        `longest_period` and `largest_state` where they are given. Default of the period: 3 over the
        fastest rate of the errors, above which no sampled loop with these gains is stable. Default
        of the integral: what commands the acceleration that the stiffness commands at an error of
        100 times the robot's size, or 100 rad.
        """
        period, state, _ = self._usual_bounds()
        if self.longest_period is not None:
            period = float(self.longest_period)
        if self.largest_state is not None and self.nz:
            state = np.broadcast_to(np.array(self.largest_state, float), (self.nz,))
        return StateBounds(period, state, self._state_entries())

    @property
    def limit_names(self) -> tuple[str, ...]:
        """Names of the limits that the law keeps, in the order of its result `active`."""
        names = () if self.torque_limits is None else self.model.control_names
        return tuple(f"torque of {name}" for name in names)

    def _usual_bounds(self) -> StateBounds:
        """Bounds that follow from the gains."""
        loop = self.error_dynamics
        plain = ErrorDynamics(loop.group, loop.stiffness, loop.damping, loop.inertia)
        period = slowest_period(np.linalg.eigvals(plain.matrix))
        if self.integral is None:
            return StateBounds(period, np.zeros(self.nz))
        return StateBounds(period, integral_bounds(self.stiffness, self.integral, self._units()))

    def _units(self) -> np.ndarray:
        """The robot's size, m, for lengths and 1 rad for angles, shape (size,)."""
        system = self.model.system
        reach = natural_units(system)[1] if isinstance(system, Mechanism) else 1.0
        names = [unit for output in self.outputs for unit in output.coordinate_units]
        return np.array([reach if unit == "m" else 1.0 for unit in names])

    @property
    def linearizes(self) -> bool:
        """Whether the errors of the outputs follow `error_dynamics`."""
        return True

    @cached_property
    def margins(self) -> Margins:
        """Scales of the decoupling matrix, and where it is damped or refused."""
        model, threshold = self.model, self.damping_threshold
        system = model.system
        columns = np.sqrt(np.diag(model.mass_matrix(system.neutral())))
        if isinstance(system, Mechanism):
            rows = row_scales(system, self.outputs)
        else:
            rows = mobility_scales(model, self.decoupling)
        if threshold is None:
            return Margins((rows, columns), None, 0.0, self.singular_margin)
        usual = usual_scales(model, self.decoupling)
        return Margins((rows, columns), usual, threshold * float(np.max(rows / usual)), 0.0)

    @evaluated("(nq)->(pose_size)")
    def output(self, q: Vector) -> Vector:
        """Flat coordinates of the outputs, in output order as in `ReferenceSample.pose`.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (pose_size,).

        References
        ----------
        Thesis, (5.1.5).
        """
        return output_motion(self.model.system, self.outputs, q).coordinates

    @evaluated("(nq)->(size,ns)")
    def decoupling(self, q: Vector) -> Matrix:
        """Decoupling matrix J H: shape velocities to output velocities.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (size, ns).

        References
        ----------
        Thesis, (5.3.27), (5.3.28).
        """
        jacobian = output_motion(self.model.system, self.outputs, q).jacobian
        return jacobian @ self.model.lift(q)[0]

    @evaluated("(nq),(nw)->(nv)")
    def velocity(self, q: Vector, s: Vector) -> Vector:
        """All velocities of the robot, from those that the law takes.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        s : array_like
            Shape velocities, shape (nw,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return s if self.use_measured_velocity else self.model.velocity(q, s)

    @evaluated("(nq),(nv)->(size),(size)")
    def motion(self, q: Vector, v: Vector) -> tuple[Vector, Vector]:
        """Output velocity and its rate at zero shape acceleration, from all velocities.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).

        Returns
        -------
        velocity : numpy.ndarray or casadi.SX
            r^-1 rdot, shape (size,).
        drift : numpy.ndarray or casadi.SX
            b in d/dt(r^-1 rdot) = J H sdot + b, shape (size,).

        References
        ----------
        Thesis, (5.3.20), (5.3.21), (5.3.27).
        """
        drift = self.model.velocity_drift(q, v)
        moved = output_motion(self.model.system, self.outputs, q, v, drift)
        return moved.velocity, moved.acceleration

    @evaluated("(nq),(pose_size)->(size)")
    def pose_error(self, q: Vector, pose: Vector) -> Vector:
        """Pose error x = log(r^-1 gamma).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        pose : array_like
            Reference pose, flat, shape (pose_size,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (size,).
        """
        return self.error_dynamics.group.error(self.output(q), pose)

    @evaluated("(nq),(nw),(pose_size),(twist_size)->(size),(size)")
    def errors(self, q: Vector, s: Vector, pose: Vector, twist: Vector) -> tuple[Vector, Vector]:
        """Pose and velocity error for a flat reference.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        s : array_like
            Shape velocities, shape (nw,).
        pose : array_like
            Reference pose, flat, shape (pose_size,).
        twist : array_like
            Reference velocity, shape (twist_size,).

        Returns
        -------
        x, ve : numpy.ndarray or casadi.SX
            log(r^-1 gamma) and r^-1 rdot - Ad gamma^-1 gammadot, shape (size,).
        """
        group, actual = self.error_dynamics.group, self.output(q)
        x = group.error(actual, pose)
        carried = group.transport(x, actual) @ twist
        return x, self.motion(q, self.velocity(q, s))[0] - carried

    @evaluated("(nq),(nw),(pose_size),(twist_size)->()")
    def _lyapunov(self, q: Vector, s: Vector, pose: Vector, twist: Vector) -> Scalar:
        """Lyapunov function for a flat reference.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        s : array_like
            Shape velocities, shape (nw,).
        pose : array_like
            Reference pose, flat, shape (pose_size,).
        twist : array_like
            Reference velocity, shape (twist_size,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        return self.error_dynamics.lyapunov(*self.errors(q, s, pose, twist))

    @evaluated(
        "(nq),(nw),(pose_size),(twist_size),(twist_size),(nz)->(nu),(),(size),(),(nz)",
        symbols="_symbols",
    )
    def law(
        self,
        q: Vector,
        s: Vector,
        pose: Vector,
        twist: Vector,
        acceleration: Vector,
        z: Vector | None = None,
    ) -> tuple[Vector, Scalar, Vector, Scalar, Vector]:
        """The whole law on flat arrays, at the momentum of the model.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        pose, twist, acceleration : array_like
            Flat reference, shapes (pose_size,), (twist_size,) and (twist_size,).
        z : array_like, optional
            State of a law that has one, shape (nz,); default zero.

        Returns
        -------
        u : numpy.ndarray or casadi.SX
            Control forces and torques, shape (nu,), N and N m.
        pivot : float or casadi.SX
            Distance of the scaled decoupling matrix, the rolling constraints and H^T B from
            singular, whichever is nearest, without unit: zero where one of them is singular.
        missed : numpy.ndarray or casadi.SX
            Acceleration residual: the part of the commanded output acceleration that is not
            achieved because of damping or torque limits, shape (size,).
        scale : float or casadi.SX
            Share of the commanded output acceleration that limits leave, in its direction: 1 where
            none is active, 0 where they leave none of it.
        rate : numpy.ndarray or casadi.SX
            Rate of z, shape (nz,).
        """
        given = {"q": q, "s": s, "pose": pose, "twist": twist, "acceleration": acceleration}
        found = self.results(given if z is None else given | {"z": z})
        return found["u"], found["pivot"], found["missed"], found["scale"], found["zdot"]

    @property
    def sampled(self) -> dict[str, int]:
        """Lengths of the inputs that are known ahead of a run: the flat reference."""
        twist = self.twist_size
        return {"pose": self.pose_size, "twist": twist, "acceleration": twist}

    @property
    def inputs(self) -> dict[str, int]:
        """Length of each input of the law's graph, in order."""
        # A tick takes the momentum of a model that has one, unless the law measures it.
        taken = self.model.takes_momentum and not self.use_measured_velocity
        momentum = {"momentum": 6} if taken else {}
        state = {"z": self.nz} if self.nz else {}
        return {"q": self.nq, "s": self.nw} | self.sampled | momentum | state

    @property
    def _symbols(self) -> Any:
        """Type of the symbols over which the law can be written: with torque limits, CasADi MX."""
        return ca.SX if self.torque_limits is None else ca.MX

    def margin(self, q: ArrayLike) -> float:
        """Decoupling margin: distance of the decoupling matrix from singular.

        Smallest singular value of D J H Mhat^(-1/2), where D multiplies linear rows by the
        square root of the mass that can move and angular rows by that and the robot's size: a
        number without unit, zero where some output direction cannot be commanded. Where the
        wheels come near to not determining the base, the model's `regularity` if that is less, and
        where the controls come near to not pushing all shape velocities, its `leverage`.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        float
            The margin.
        """
        q = as_floats(q, f"servo of `{self.name}`, argument `q`")
        model = self.model
        regular = np.asarray([model.regularity(q)], dtype=float)
        if self.size and not model.driven_directly:  # without outputs nothing is commanded
            regular = np.minimum(regular, model.leverages(np.asarray(model.effect(q))[None]))
        rows, metric = (
            np.asarray(part)[None] for part in (self.decoupling(q), model.mass_matrix(q))
        )
        return float(decoupling_margins(self.margins.scales[0], rows, metric, regular)[0])

    def flat(self, sample: ReferenceSample | None) -> tuple[Array, Array, Array]:
        """Check a sample against the outputs and flatten it.

        Parameters
        ----------
        sample : ReferenceSample
            Reference pose, twist and acceleration of all outputs.

        Returns
        -------
        pose, twist, acceleration : numpy.ndarray or casadi.SX
            Shapes (pose_size,), (twist_size,) and (twist_size,).

        Raises
        ------
        ShapeError, OutputError
            If it does not fit the outputs, or is made for outputs in other groups.
        """
        if isinstance(sample, ReferenceSample) and sample.groups is not None:
            check_parts(sample.groups, self.outputs, f"servo of `{self.name}`")
        if (
            isinstance(sample, ReferenceSample)
            and sample.pose.shape in ((self.pose_size,), (self.pose_size, 1))
            and sample.twist.shape[0] == self.twist_size
        ):
            return sample.pose, sample.twist, sample.acceleration
        where = f"servo of `{self.name}`, reference"
        if not isinstance(sample, ReferenceSample):
            raise ShapeError(
                where,
                expected="a ReferenceSample(pose, twist, acceleration)",
                came=f"{type(sample).__name__} {sample!r:.60}",
                cure="Call the reference with a time to get one.",
            )
        if sample.is_matrix and not is_one_pose(self.outputs):
            raise ShapeError(
                f"{where}, `pose`",
                expected=f"{self.pose_size} numbers in output order",
                came="a (4, 4) matrix",
                cure="A matrix is for a servo with one output that is a full pose.",
            )
        pose = sample.flat_pose
        for name, size, values in (
            ("pose", self.pose_size, pose),
            ("twist", self.twist_size, sample.twist),
        ):
            if values.shape[0] != size:
                raise shape_error(f"{where}, `{name}`", (size,), values.shape)
        return pose, sample.twist, sample.acceleration


def given_options(law: LawCore) -> tuple[str, ...]:
    """Arguments of a law that change its error dynamics or internal motion, if given."""
    names = ("integral", "torque_limits", "constraints", "damping_threshold", "redundancy")
    given = [name for name in names if getattr(law, name) is not None]
    return (*given, *["use_measured_velocity"] * law.use_measured_velocity)


def at_torque_limits(law: LawCore, u: Array) -> Array:
    """1 for each control at its limit, else 0, shape (nu,); shape (0,) for a law without."""
    if law.torque_limits is None:
        return u[:0, :]
    low, high = (ca.DM(limits) for limits in np.asarray(law.torque_limits).T)
    return ca.fmax(u <= low, u >= high)


def approach(law: LawCore) -> float:
    """Rate of the approach to limits, 1/s; that of the law's constraints if it is given."""
    if law.constraints is not None and law.constraints.approach is not None:
        return float(law.constraints.approach)
    return 4.0 * float(np.abs(np.linalg.eigvals(law.error_dynamics.matrix)).max())


def taken_velocities(law: LawCore, v: Vector) -> Array:
    """Pick from all velocities of the robot those that a law takes.

    Parameters
    ----------
    law : TrackingLaw
        The law.
    v : numpy.ndarray or casadi.SX
        Velocities of the robot, shape (nv,) or (k, nv).

    Returns
    -------
    numpy.ndarray or casadi.SX
        v itself when they are measured, else the shape velocities.
    """
    if law.use_measured_velocity:
        return v
    shape = list(law.model.shape)
    return v[..., shape] if isinstance(v, np.ndarray) else part(v, shape)


def require_outputs(law: LawCore, where: str) -> None:
    """Raise an error unless a law follows outputs."""
    if not law.outputs:
        raise OutputError(
            where,
            expected="a law with outputs, such as a Servo",
            came="a law without outputs",
            cure="List the `outputs` of the law; they need not be inputs of its graph.",
        )
