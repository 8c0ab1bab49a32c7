"""More shape velocities than outputs: which of the many shape accelerations to take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Vector, as_floats, constant, shape_error
from concur.control._reading import definite_matrix, positive
from concur.control._sharing import share
from concur.errors import OutputError
from concur.reduction import ReducedModel, gradient
from concur.robot import Mechanism, solve_positive_definite, unknown_name
from concur.tables import (
    NUMBER,
    Choice,
    Expected,
    InFiles,
    NumberOrList,
    Positive,
    any_of,
    is_number_or_list,
    list_of,
)

WEIGHTS = ("energy", "torque")
OBJECTIVES = ("rest", "posture", "base_rotation")

_WEIGHT = Expected(
    "a name or a list of numbers",
    lambda value: isinstance(value, str) or (isinstance(value, list) and is_number_or_list(value)),
    any_of({"enum": list(WEIGHTS)}, list_of(NUMBER)),
)
_POSTURE = Annotated[Mapping[str, NumberOrList], Expected("a table of bodies")]


@dataclass(frozen=True, eq=False)
class Redundancy:
    """Rule for the internal motion that the outputs leave free (section 3.5, remark 5.3.1).

    Of all shape accelerations that give the commanded output acceleration, the law takes the one
    nearest to a pull in a metric: ``sdot = J#(nu - b) + (1 - J# J) pull`` with the weighted
    pseudo-inverse ``J# = W^-1 J^T (J W^-1 J^T)^-1``, J the decoupling matrix. The outputs
    follow exactly, whatever the rule.

    Parameters
    ----------
    weight : str or array_like
        Metric W: "energy" (the reduced mass matrix: least acceleration energy), "torque" (its
        square, in the controls: least torque beside what the pull and the bias forces take), one
        positive number per shape velocity, or a symmetric positive definite matrix (ns, ns).
        **Least torque is unstable over time**: see the notes.
    objective : str or callable
        Aim of the internal motion. "rest": it comes to rest. "posture": it seeks the
        configuration `posture`. "base_rotation": it turns the base as little as it can.
        A callable takes q as a CasADi SX expression, shape (nq,), and returns a scalar
        expression, which it makes small.
    stiffness : float
        Pull towards the posture, 1/s^2; or factor of the callable's gradient.
    damping : float
        Rate at which internal motion dies away, 1/s; with "base_rotation" that of the base's
        turning too. Above zero: without it the internal motion is not stable.
    posture : array_like or mapping, optional
        Configuration for "posture", m and rad: by bodies, whose joints alone it then draws, or all
        of it, shape (nq,), which draws every shape joint. Default: none.
    base_weight : float
        For "base_rotation": cost of turning the base, against that of moving the shape, in
        units of the base's rotational inertia.

    Raises
    ------
    UnknownNameError
        If the weight or the objective does not exist.
    OutputError
        If a number is out of range, or "posture" has no posture.

    Notes
    -----
    "torque" takes the least torque of this instant. It moves light joints, whose speeds cost
    bias forces later, so that internal motion grows on long references. A planar arm of three
    links (2, 1 and 0.5 kg, 0.9 m together) with its tip on a circle of 0.05 m in 4 s needs 3.5 N m
    within 12 s, and 0.10 N m with "energy", both with `objective` "posture"; more damping or
    stiffness does not mend it. Use "energy" unless a simulation of the whole reference shows that
    torques stay low. The audit of a servo with "torque" has a row INT that is not checked.

    Examples
    --------
    >>> import concur as cc
    >>> rule = cc.control.Redundancy(objective="base_rotation")
    >>> rule.damping
    2.0
    """

    weight: Annotated[Any, _WEIGHT] = "energy"
    objective: Annotated[Any, InFiles(Annotated[str, Choice(OBJECTIVES)])] = "rest"
    stiffness: Positive = 1.0
    damping: Positive = 2.0
    posture: Annotated[Any, InFiles(_POSTURE)] = None
    base_weight: Positive = 100.0
    posture_freedoms: frozenset[int] | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.weight, str) and self.weight not in WEIGHTS:
            raise unknown_name("redundancy, `weight`", "weight", self.weight, WEIGHTS)
        if isinstance(self.objective, str) and self.objective not in OBJECTIVES:
            raise unknown_name("redundancy, `objective`", "objective", self.objective, OBJECTIVES)
        if not isinstance(self.objective, str) and not callable(self.objective):
            raise OutputError(
                "redundancy, `objective`",
                expected=f"one of {', '.join(OBJECTIVES)}, or a function of q",
                came=f"{type(self.objective).__name__} {self.objective!r:.40}",
                cure='Write for example objective="rest".',
            )
        for name in ("stiffness", "damping", "base_weight"):
            undamped = "Internal motion that nothing damps would not come to rest."
            cure = undamped if name == "damping" else None
            value = positive(f"redundancy, `{name}`", getattr(self, name), cure=cure)
            object.__setattr__(self, name, value)
        if self.objective == "posture" and self.posture is None:
            raise OutputError(
                "redundancy, `posture`",
                expected='a configuration, for objective "posture"',
                came="no value",
                cure="Give posture=q, shape (nq,).",
            )

    def __str__(self) -> str:
        weight = self.weight if isinstance(self.weight, str) else "own weights"
        aim = self.objective if isinstance(self.objective, str) else "own objective"
        return f"weight: {weight}, objective: {aim}, damping {self.damping:g} /s"

    def checked(self, where: str, model: ReducedModel) -> Redundancy:
        """Copy whose arrays are known to fit a model.

        Parameters
        ----------
        where : str
            Place named in errors.
        model : ReducedModel
            The reduced robot.

        Returns
        -------
        Redundancy
            The copy.

        Raises
        ------
        ShapeError, NonFiniteError
            If weight or posture do not fit.
        OutputError
            If the weight is not positive definite, the base does not turn, or the objective
            is no scalar function.
        """
        whole = self.posture is not None or self.objective in ("posture", "base_rotation")
        robot = model.robot if whole else model.system
        posture, freedoms = self.posture, self.posture_freedoms
        if isinstance(posture, Mapping):
            posture, freedoms = _posture_of(f"{where}, `posture`", model.robot, posture)
        elif posture is not None:
            posture = robot.check_configuration(posture, f"{where}, `posture`")
        weight = self.weight
        if not isinstance(weight, str):
            weight = _matrix(f"{where}, `weight`", weight, model)
        if isinstance(weight, str) and weight == "torque" and model.nd < model.ns:
            raise OutputError(
                f"{where}, `weight`",
                expected='"energy", or numbers, for a system with two-spheres',
                came='"torque", which no spin takes',
                cure='Take "energy".',
            )
        if self.objective == "base_rotation" and not np.any(model.robot.base.joint.basis[3:]):
            raise OutputError(
                f"{where}, `objective`",
                expected='a base that turns, for "base_rotation"',
                came=f"a {type(model.robot.base.joint).__name__} joint",
                cure='Take "rest" or "posture".',
            )
        if callable(self.objective):
            _try(where, self.objective, model)
        copy = replace(self, weight=weight, posture=posture)
        object.__setattr__(copy, "posture_freedoms", freedoms)
        return copy

    def metric(self, model: ReducedModel, q: Vector) -> Array:
        """Metric W before what the objective adds.

        Parameters
        ----------
        model : ReducedModel
            The reduced robot.
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        casadi.SX
            Symmetric positive definite, shape (ns, ns).
        """
        if not isinstance(self.weight, str):
            return constant(self.weight)
        mass = model.mass_matrix(q)
        if self.weight == "energy":
            return mass
        actuation = model.input_matrix(q)
        effort = share(actuation, mass)[0] if model.nu > model.ns else ca.solve(actuation, mass)
        return effort.T @ effort

    def aim(self, model: ReducedModel, q: Vector, v: Vector) -> tuple[Array, Array]:
        """Metric and pull of the internal motion.

        Parameters
        ----------
        model : ReducedModel
            The reduced robot.
        q, v : casadi.SX
            Configuration and velocity, shapes (nq,) and (nv,).

        Returns
        -------
        metric, pull : casadi.SX
            W with the objective's part, (ns, ns), and the shape acceleration it is to be near
            to, (ns,).
        """
        shape, metric = list(model.shape), self.metric(model, q)
        pull = -self.damping * v[shape]
        if self.objective == "posture":
            away = model.robot.difference(q, constant(self.posture))
            drawn = self.posture_freedoms
            chosen = [1.0 if drawn is None or i in drawn else 0.0 for i in shape]
            pull += self.stiffness * constant(chosen) * away[shape]
        elif callable(self.objective):
            horizontal, _ = model.lift(q)
            s = ca.SX.sym("s", model.ns)
            slopes = gradient(self.objective, q)
            rise = ca.dot(slopes, model.system.rate(q, horizontal @ s))
            pull -= self.stiffness * solve_positive_definite(metric, ca.gradient(rise, s))
        elif self.objective == "base_rotation":
            rows, base = _turning(model)
            horizontal, _ = model.lift(q)
            turning = rows @ horizontal[base, :]
            target = -rows @ (model.velocity_drift(q, v)[base] + self.damping * v[base])
            cost = self.base_weight * _rotational_inertia(model)
            whole = ca.triu2symm(ca.triu(metric + cost * (turning.T @ turning)))
            right = metric @ pull + cost * (turning.T @ target)
            return whole, solve_positive_definite(whole, right)
        return metric, pull

    def cruise(self, model: ReducedModel, q: Vector) -> tuple[Array, Array]:
        """Metric and pull in shape velocities, once internal motion has settled.

        Parameters
        ----------
        model : ReducedModel
            The reduced robot.
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        metric, pull : casadi.SX
            Of the shape velocities that the outputs ask for, the rule comes to those nearest to
            this pull, (ns,), in this metric, (ns, ns).
        """
        horizontal, drift = model.lift(q)
        metric, pull = self.aim(model, q, ca.SX(model.nv, 1))
        if self.objective != "base_rotation":
            return metric, pull / self.damping
        rows, base = _turning(model)
        turning, carried = rows @ horizontal[base, :], rows @ drift[base]
        cost = self.base_weight * _rotational_inertia(model)
        return metric, -solve_positive_definite(metric, cost * (turning.T @ carried))


def _posture_of(
    where: str, robot: Mechanism, parts: Mapping[str, ArrayLike]
) -> tuple[np.ndarray, frozenset[int]]:
    """Configuration with some bodies' joints as given, and their freedoms."""
    q, freedoms = robot.neutral(), set[int]()
    for name, part in parts.items():
        if name not in robot.joints:
            raise unknown_name(where, "joint", name, robot.joint_names)
        index = robot.joints[name]
        body = robot.bodies[index]
        numbers = np.atleast_1d(as_floats(part, f"{where}, joint `{name}`"))
        if numbers.shape != (body.joint.nq,):
            raise shape_error(f"{where}, joint `{name}`", (body.joint.nq,), numbers.shape)
        q[robot.q_spans[index]] = numbers
        freedoms |= set(range(*robot.v_spans[index].indices(robot.nv)))
    return robot.check_configuration(robot.coupled(q, parts), where), frozenset(freedoms)


def _turning(model: ReducedModel) -> tuple[Array, slice]:
    """Map from the base's velocity to its angular velocity, and where that velocity is in v."""
    joint = model.robot.base.joint
    return constant(joint.basis[3:]), slice(0, joint.nv)


def _rotational_inertia(model: ReducedModel) -> float:
    robot = model.robot
    base = slice(0, robot.base.joint.nv)
    turning = robot.base.joint.basis[3:]
    inertia = turning @ robot.mass_matrix(robot.neutral())[base, base] @ turning.T
    return float(np.trace(inertia) / np.linalg.matrix_rank(turning))


def _matrix(where: str, weight: Any, model: ReducedModel) -> np.ndarray:
    numbers = as_floats(weight, where)
    if numbers.shape == (model.ns,):
        numbers = np.diag(numbers)
    if numbers.shape != (model.ns, model.ns):
        raise shape_error(where, (model.ns,), numbers.shape)
    return definite_matrix(where, numbers, "Give each shape velocity a weight above zero.")


def _try(where: str, objective: Callable[[Array], Array], model: ReducedModel) -> None:
    q = ca.SX.sym("q", model.nq)
    try:
        value = ca.SX(objective(q))
    except Exception as error:
        came = f"{type(error).__name__}: {error}".splitlines()[0]
    else:
        if value.shape == (1, 1):
            return
        came = f"shape {value.shape}"
    raise OutputError(
        f"{where}, `objective`",
        expected=f"a scalar function of q as a CasADi SX expression, shape ({model.nq},)",
        came=came,
        cure="Use CasADi's functions (casadi.cos, robot.pose(q, body), ...) and return one number.",
    )
