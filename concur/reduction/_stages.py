"""Reduction in stages: unactuated joints that conserve their momentum (section 4.5).

After wheels or the momentum of a floating base have been dealt with, a joint group N that
leaves the reduced system invariant has a constant momentum, ``Ad*_n^-1 Pi = theta``,
and its velocity follows from it. Lifts compose:

    v = H1 (H2 s + h2) + h1,    H2 = [1; -K_N^-1 K_Nr],    h2 = [0; K_N^-1 (Ad*_n theta - c)]

with K the reduced metric of the stage before, split into the joints of N and the rest r, and
c = (M h1)_N what the drift of the stage before contributes to the momentum (4.5.33)-(4.5.38).

A joint that keeps some components of its momentum only is reduced by that part of its group. With
Z(q) its generators in the body's axes the momentum is ``theta = Z^T (p_N)``, and as many of the
joint's velocities follow from it: ``H2 = [1; -A_d^-1 A_r]`` with A the momentum's rows over the
shape velocities of the stage before. Where the generators are coordinates of the joint this is
the same as above. Where they are not, A_d is not symmetric, and it can be singular.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import (
    Array,
    Matrix,
    Scalar,
    Vector,
    as_floats,
    constant,
    evaluated,
    finite_floats,
    shape_error,
)
from concur.errors import ReductionError
from concur.reduction._conservation import tested
from concur.reduction._lift import STAGES_HINT
from concur.reduction._model import ReducedModel
from concur.reduction._search import (
    ROUNDING,
    ConstantMomentum,
    Generators,
    Search,
    in_body,
    is_whole,
    link_rows,
    momentum_rows,
    read_tolerance,
)
from concur.robot import (
    JointPlace,
    joint_names,
    joint_place,
    joint_places,
    solve_positive_definite,
    unknown_name,
)
from concur.system import System

Stages: TypeAlias = str | Sequence[str] | Mapping[str, Any]
"""Which joints to reduce further: "auto", names, or momenta by name."""

_ROUGH = 1e-4  # rates above are no rounding of anybody's numbers

Steps: TypeAlias = tuple[tuple[str, Any], ...]
"""Joints in order, each with its momentum or None."""


@dataclass(frozen=True, repr=False)
class StagedReduction(ReducedModel):
    """A reduced model after a stage, by the conserved momentum of a joint or a part of it.

    Made by `reduce`.

    Parameters
    ----------
    system : System
        The robot, or a system whose factors are joints.
    kind : str
        "staged".
    shape, dependent : tuple of int
        Indices in v of the shape velocities and of those that all stages give.
    reason : str
        The stages, in words.
    inner : ReducedModel
        The stage before.
    joint : str
        Body whose joint has the group N, or factor.
    theta : tuple of float
        Its constant momentum along the generators, N m s and N s: on wheels that of the reduced
        system, of the whole robot otherwise.
    seen_from : str
        Axes in which it is constant: "parent", the frame to which the joint attaches, or "body",
        that of the body; "link" is the momentum of the link alone in its axes, with all that it
        carries turned back.
    generators : tuple of tuple of float
        Motions that the momentum belongs to, each in the joint's basis and in the axes of
        `seen_from`: all of the joint's, or those of a subgroup.
    tolerance : float
        Relative rate up to which the momentum counts as constant.

    See Also
    --------
    reduce : makes one.

    References
    ----------
    Thesis, (4.2.18), (4.2.19), Proposition 4.2.14, (4.5.33)-(4.5.38), Lemma 4.5.1, Theorem 4.5.2,
    (5.1.9).

    Examples
    --------
    >>> import concur as cc
    >>> from dataclasses import replace
    >>> crane = cc.robots.crane_car()
    >>> free = replace(crane, actuated=["steering", "left_wheel", "boom"])
    >>> cc.reduce(free, stages={"column": 2.0}).shape_names
    ('steering', 'left_wheel', 'boom')
    """

    inner: ReducedModel
    joint: str
    theta: tuple[float, ...]
    seen_from: str
    generators: tuple[tuple[float, ...], ...]
    tolerance: float = ROUNDING

    @property
    def first(self) -> ReducedModel:
        return self.inner.first

    def at_momentum(self, momentum: ArrayLike) -> StagedReduction:
        inner = self.inner.at_momentum(momentum)
        for kept in _demanded(inner, self.joint, self.tolerance):
            theirs = np.array(kept.generators).T
            if (
                kept.seen_from == self.seen_from
                and theirs.shape == self._generators.shape
                and np.allclose(theirs, self._generators, rtol=0.0, atol=1e-9)
            ):
                return _stage(inner, kept, self.theta, self.tolerance)
        raise ReductionError(
            f"robot `{self.name}`, `stages`, joint `{self.label}`",
            expected="a joint that keeps the same components of its momentum as before",
            came=f"another part of it that is constant at the momentum {np.asarray(momentum)}",
            cure="Reduce the robot with this momentum.",
        )

    def on(self, robot: System) -> StagedReduction:
        """The same stages of a robot with other parameters.

        Whether the joint keeps its momentum there is not tested: with the same momentum it is
        the start of a motion of that robot at least.

        Parameters
        ----------
        robot : Mechanism
            A robot with the same bodies, joints, wheels and motors.

        Returns
        -------
        StagedReduction
            Its model.
        """
        return replace(self, system=robot, inner=self.inner.on(robot))

    @property
    def nn(self) -> int:
        """Number of velocities that the stage gives: dimension of the part of N."""
        return len(self.theta)

    @property
    def chain(self) -> tuple[StagedReduction, ...]:
        return (*self.inner.chain, self)

    @evaluated("(nq),(nv)->(nn),(nn)")
    def momentum_residual(self, q: Vector, v: Vector) -> tuple[Vector, Vector]:
        """How far a state is from the constant momentum of the joint.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).

        Returns
        -------
        residual : numpy.ndarray or casadi.SX
            Momentum minus the constant one, as `stage_momentum` gives it, shape (nn,).
        own : numpy.ndarray or casadi.SX
            What the joint's own motion contributes to the momentum, shape (nn,): a size to
            compare with.
        """
        weights = self._weights(q)
        moving = [i for i in range(self.nv) if i in self._joint_rows and i in self.inner.shape]
        columns = self._momenta(q)[:, [self.inner.shape.index(i) for i in moving]]
        return weights @ v - self.stage_momentum(q), columns @ v[moving]

    @property
    def label(self) -> str:
        """Name of the joint."""
        return self._place.label

    @property
    def momentum_units(self) -> tuple[str, ...]:
        """Unit of each constant momentum: N m s about an axis, N s along one."""
        return _units(self.system, self.joint, self.generators)

    @evaluated("(nq),(nm)->(nv,ns),(nv)")
    def lift(self, q: Vector, momentum: Vector | None = None) -> tuple[Matrix, Vector]:
        # The joint of the stage moves such that its momentum stays constant in all earlier stages.
        horizontal, drift = self.inner.lift(q, momentum)
        momenta = self._momenta(q)
        missing = self.stage_momentum(q) - self._weights(q) @ drift
        solved = self._solve(momenta, ca.horzcat(momenta[:, self._rest], missing))
        follows, carried = solved[:, : self.ns], solved[:, self.ns]
        of_rest, of_group = horizontal[:, self._rest], horizontal[:, self._group]
        return of_rest - of_group @ follows, ca.sparsify(drift + of_group @ carried)

    @evaluated("(nq)->()")
    def regularity(self, q: Vector) -> Scalar:
        before = self.inner.regularity(q)
        if self._straight:
            return before
        # Angle, in the kinetic energy, between the motions that carry the momentum and those of
        # the velocities that follow from it: its cosine for one of each.
        own = self._momenta(q)[:, self._group]
        whole = momentum_rows(self, self.joint, self.generators, self.seen_from, q)[1]
        size = ca.det(whole) * ca.det(self.inner.mass_matrix(q)[self._group, self._group])
        return ca.fmin(before, ca.fabs(ca.det(own)) / ca.sqrt(size))

    @evaluated("(nq)->()")
    def side(self, q: Vector) -> Scalar:
        before = self.inner.side(q)
        if self._straight:
            return before
        return before * ca.sign(ca.det(self._momenta(q)[:, self._group]))

    @evaluated("(nq),(nv)->(nv)")
    def velocity_drift(self, q: Vector, v: Vector) -> Vector:
        horizontal, _ = self.inner.lift(q)
        still = ca.SX(self.ns, 1)
        return self.inner.velocity_drift(q, v) + horizontal[:, self._group] @ self._led(q, v, still)

    @evaluated("(nq)->(ns,ns)")
    def mass_matrix(self, q: Vector) -> Matrix:
        metric, group, rest = self.inner.mass_matrix(q), self._group, self._rest
        momenta = self._momenta(q)
        follows = self._solve(momenta, momenta[:, rest])
        crossed = metric[rest, group] @ follows
        reduced = metric[rest, rest] - crossed
        if not self._straight:  # what follows is not orthogonal to the rest
            reduced += follows.T @ metric[group, group] @ follows - crossed.T
        return ca.triu2symm(ca.triu(reduced))

    @evaluated("(nq),(nv),(ns)->(ns)")
    def shape_forces(self, q: Vector, v: Vector, sdot: Vector) -> Vector:
        inner = ca.SX(self.inner.ns, 1)
        inner[self._rest] = sdot
        inner[self._group] = self._led(q, v, sdot)
        forces = self.inner.shape_forces(q, v, inner)
        if self._straight:  # no force acts along what follows
            return forces[self._rest, :]
        momenta = self._momenta(q)
        follows = self._solve(momenta, momenta[:, self._rest])
        return forces[self._rest, :] - follows.T @ forces[self._group, :]

    @evaluated("(nq)->(nn)")
    def stage_momentum(self, q: Vector) -> Vector:
        """Constant momentum, carried to the velocities that it belongs to.

        If the generators are velocities of the joint everywhere: theirs in the body's axes, Ad*_n
        theta, or theta itself where it is seen so. Otherwise theta, along the generators.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nn,).
        """
        theta, aligned = np.array(self.theta), self._aligned
        if aligned is None:
            return constant(theta)
        along_coordinates = np.linalg.solve(self._generators[list(aligned)].T, theta)
        if self.seen_from == "body":
            return constant(along_coordinates)
        joint = self._place.joint
        # Any wrench with these components will do: the joint feels no others.
        full = np.zeros(joint.nv)
        full[list(aligned)] = along_coordinates
        wrench = constant(np.linalg.pinv(joint.basis).T @ full)
        rotation, translation = joint.pose(q[self._place.entries])
        force = rotation.T @ wrench[:3]
        torque = rotation.T @ (wrench[3:] - ca.cross(translation, wrench[:3]))
        carried = constant(joint.basis.T) @ ca.vertcat(force, torque)
        return carried[list(aligned), :]

    @cached_property
    def _place(self) -> JointPlace:
        """The joint of the stage."""
        return joint_place(self.system, self.joint)

    @property
    def _generators(self) -> np.ndarray:
        """Generators as columns."""
        return np.array(self.generators).T

    @property
    def _joint_rows(self) -> list[int]:
        """Indices of N's velocities in v."""
        return self._place.freedoms

    @property
    def _group(self) -> list[int]:
        """Indices of what follows among the shape velocities of the stage before."""
        return [k for k, i in enumerate(self.inner.shape) if i not in self.shape]

    @property
    def _rest(self) -> list[int]:
        return [self.inner.shape.index(i) for i in self.shape]

    @cached_property
    def _aligned(self) -> tuple[int, ...] | None:
        """Coordinates of the joint that the generators span everywhere, if there are such."""
        joint = self._place.joint
        rows = tuple(int(i) for i in np.flatnonzero(np.abs(self._generators).max(axis=1)))
        if self.seen_from == "link" or len(rows) != self.nn:
            return None
        if self.seen_from == "parent":
            # An ideal of the algebra stays in place under Ad.
            others = [i for i in range(joint.nv) if i not in rows]
            unit = ca.SX.eye(joint.nv)
            for i, k in product(range(joint.nv), rows):
                turned = ca.SX(joint.bracket(unit[:, i], unit[:, k]))
                if ca.sparsify(turned[others, :]).nnz():
                    return None
        follows = {self._joint_rows[i] for i in rows}
        return rows if follows == {self.inner.shape[k] for k in self._group} else None

    @cached_property
    def _straight(self) -> bool:
        """Whether the rows of the momentum are those of the metric, in all stages so far."""
        before = self.inner.chain
        return self._aligned is not None and (not before or before[-1]._straight)

    def _fields(self, q: Vector) -> Array:
        """Fields that the momentum belongs to, one per generator or coordinate."""
        own = self.first.momentum_fields(q)[
            :, [self.first.shape.index(i) for i in self._joint_rows]
        ]
        if self._aligned is not None:
            return own[:, list(self._aligned)]
        return own @ in_body(self.system, self.joint, self.generators, self.seen_from, q)

    def _weights(self, q: Vector) -> Array:
        """Rows of the momentum over v."""
        if self._aligned is None:
            return momentum_rows(self, self.joint, self.generators, self.seen_from, q)[0]
        return self._fields(q).T @ self.system.mass_matrix(q)

    def _momenta(self, q: Vector) -> Array:
        """Rows of the momentum over the shape velocities of the stage before."""
        if self._straight:
            return self.inner.mass_matrix(q)[self._group, :]
        horizontal, _ = self.inner.lift(q)
        return self._weights(q) @ horizontal

    def _solve(self, momenta: Array, right: Array) -> Array:
        """Solve for what follows."""
        own = momenta[:, self._group]
        return solve_positive_definite(own, right) if self._straight else ca.solve(own, right)

    def _led(self, q: Vector, v: Vector, sdot: Vector) -> Array:
        """Acceleration of what follows: no force acts along the fields of the momentum."""
        momenta = self._momenta(q)
        if self._straight:
            forces = self.inner.shape_forces(q, v, ca.SX(self.inner.ns, 1))[self._group, :]
        else:
            drifting = self.inner.velocity_drift(q, v)
            if self.seen_from == "link":
                # The rows are constant in the axes of the link.
                moved = self.robot.jacobian(q, self.joint) @ drifting
                moved += self.robot.velocity_product(q, v, self.joint)
                forces = constant(link_rows(self.robot, self.joint, self.generators)) @ moved
            else:
                forces = self._fields(q).T @ self.system.inverse_dynamics(q, v, drifting)
        return -self._solve(momenta, forces + momenta[:, self._rest] @ sdot)


def read_stages(robot: System, stages: Stages) -> Steps | None:
    """Read stages: bodies in order, each with its momentum or None; None for "auto"."""
    where = f"robot `{robot.name}`, `stages`"
    labels = [place.label for place in joint_places(robot) if place.freedoms]
    names_of = joint_names(robot)
    if isinstance(stages, str) and stages == "auto":
        return None
    no_list = isinstance(stages, (str, set, frozenset, ca.SX, ca.MX, ca.DM)) or (
        isinstance(stages, np.ndarray) and stages.ndim != 1
    )
    if no_list or not isinstance(stages, Iterable):
        raise ReductionError(
            where,
            expected='"auto", names of joints, or momenta by name',
            came=repr(stages),
            cure=f"Write stages=[{stages!r}]."
            if isinstance(stages, str) and stages in names_of
            else 'Write stages="auto", or a list of unactuated joints.',
        )
    names = tuple(stages)  # once: it may be a generator
    for name in names:
        if not isinstance(name, str) or name not in names_of:
            raise unknown_name(where, "joint", name, labels)
    momenta = stages if isinstance(stages, Mapping) else {}
    for name, momentum in momenta.items():
        if momentum is None:
            raise ReductionError(
                f"{where}, joint `{name}`",
                expected="a momentum, in numbers",
                came="None",
                cure="Write 0 for none, or list the names alone: all momenta are zero then.",
            )
    return tuple((names_of[name], momenta.get(name)) for name in names)


def further_stages(
    model: ReducedModel, steps: Steps | None, tolerance: float = ROUNDING
) -> ReducedModel:
    """Reduce a model by joints that keep a momentum: those of `steps`, or all that can be."""
    tolerance = read_tolerance(tolerance, "reduce")
    if steps is None:
        while (part := _next(model, tolerance)) is not None:
            model = _stage(model, part, None, tolerance)
        return model
    for joint, momentum in steps:
        model = _by(model, joint, momentum, tolerance)
    return model


def _by(model: ReducedModel, joint: str, momentum: Any, tolerance: float) -> ReducedModel:
    """Reduce by a joint: by two parts of it, if there are momenta for both."""
    part = _demanded(model, joint, tolerance)[0]
    if momentum is None:
        return _stage(model, part, None, tolerance)
    where = f"robot `{model.name}`, `stages`, joint `{joint_place(model.system, joint).label}`"
    size = len(part.follows)
    given = as_floats(momentum, where)
    if given.ndim == 1 and size < len(given) and size < len(part.generators[0]):
        first = _stage(model, part, given[:size], tolerance)
        for second in Search(first).stages(joint, tolerance, _used(first, joint)):
            return _stage(first, second, given[size:], tolerance)
    return _stage(model, part, given, tolerance)


def _next(model: ReducedModel, tolerance: float) -> ConstantMomentum | None:
    """First joint, from the base on, that can be reduced and leaves something of the shape."""
    system: Any = model.system
    search, driven = None, set(system.driven_freedoms)
    for place in joint_places(system):
        rows = set(place.freedoms)
        if not rows or rows & driven or not rows <= set(model.shape):
            continue
        search = search or Search(model)
        for part in search.stages(place.name, tolerance):
            if part.everywhere and len(part.follows) < model.ns:
                return part
    return None


def _demanded(model: ReducedModel, joint: str, tolerance: float) -> list[ConstantMomentum]:
    """Constant momenta of a joint that no stage has taken, the best first; else an error."""
    robot, search, used = model.system, Search(model), _used(model, joint)
    if used and (found := search.stages(joint, tolerance, used)):
        return found
    where = f"robot `{robot.name}`, `stages`"
    whole = tested(search, joint, tolerance, where)
    if found := search.stages(joint, tolerance):
        return found
    place = joint_place(robot, joint)
    several = place.joint.nv > 1
    cure = f"Leave it out of `stages`. Its momentum obeys {whole.equation}."
    rates = [] if whole.driven else [whole.rate]
    rates += [part.rate for part in search.found(joint, _ROUGH)]
    if min(rates, default=1.0) < _ROUGH:
        rounded = 10.0 ** np.ceil(np.log10(2.0 * min(rates)))
        cure += (
            " If it changes only because the robot's numbers are rounded, give "
            f"tolerance={rounded:.0e}."
        )
    raise ReductionError(
        f"{where}, joint `{place.label}`",
        expected="a joint that keeps its momentum" + (", or a part of it" if several else ""),
        came=whole.why,
        cure=cure,
    )


def without_spins(model: ReducedModel) -> ReducedModel:
    """Divide out the spins of all links on cables: they move no mass, so their momentum is zero."""
    for joint, cable in model.robot.cables.items():
        spin = model.robot.freedoms(joint)[int(np.abs(cable.axis).argmax())]
        part = ConstantMomentum(joint, "link", (tuple(cable.axis.tolist()),), 0.0, (spin,))
        model = _stage(model, part, None, ROUNDING, "keeps its spin on a cable")
    return model


def with_hint(model: ReducedModel, tolerance: float = ROUNDING) -> ReducedModel:
    """Say in a model's reason if it could be reduced further."""
    part = _next(model, read_tolerance(tolerance, "reduce"))
    if part is None:
        return model
    label, kept = joint_place(model.system, part.joint).label, _keeps(model.system, part)
    hint = f"`{label}` is unactuated and {kept}: {STAGES_HINT}"
    return replace(model, reason=f"{model.reason}; {hint}")


def _used(model: ReducedModel, joint: str) -> list[tuple[str, tuple[tuple[float, ...], ...]]]:
    """Parts of a joint that stages took already."""
    return [(stage.seen_from, stage.generators) for stage in model.chain if stage.joint == joint]


def _stage(
    model: ReducedModel,
    part: ConstantMomentum,
    momentum: Any,
    tolerance: float,
    what: str | None = None,
) -> StagedReduction:
    size, robot = len(part.follows), model.system
    label = joint_place(robot, part.joint).label
    where = f"robot `{model.name}`, `stages`, joint `{label}`"
    theta = np.zeros(size)
    if momentum is not None:
        given = finite_floats(momentum, where)
        theta = given.reshape(1) if size == 1 and given.ndim == 0 else given
        if theta.shape != (size,):
            raise shape_error(where, (size,), theta.shape)
    units = _units(robot, part.joint, part.generators)
    why = "the spin moves no mass" if what else _evidence(robot, part, tolerance)
    return StagedReduction(
        robot,
        "staged",
        tuple(i for i in model.shape if i not in part.follows),
        tuple(sorted((*model.dependent, *part.follows))),
        f"{model.reason}; then by `{label}`, "
        f"which {what or _keeps(robot, part)}, "
        f"{momenta_text(theta, units)}: {why}",
        model,
        part.joint,
        tuple(float(x) for x in theta),
        part.seen_from,
        part.generators,
        tolerance,
    )


def _units(robot: System, joint: str, generators: Generators) -> tuple[str, ...]:
    basis = joint_place(robot, joint).joint.basis
    turns = np.abs((basis @ np.array(generators).T)[3:]).max(axis=0) > ROUNDING
    return tuple("N m s" if turn else "N s" for turn in turns)


def momenta_text(theta: Sequence[float] | np.ndarray, units: Sequence[str]) -> str:
    """Momenta with sign and unit.

    Parameters
    ----------
    theta : sequence of float
        The momenta.
    units : sequence of str
        Unit of each.

    Returns
    -------
    str
        The text.
    """
    numbers = [f"{value:.4g} {unit}" for value, unit in zip(theta, units, strict=True)]
    return ", ".join(numbers) if np.any(theta) else "zero"


def _keeps(robot: System, part: ConstantMomentum) -> str:
    """Part of its momentum that a joint keeps, like "wz in the axes of the body"."""
    if is_whole(robot, part):
        return "keeps its momentum"
    names, texts = joint_place(robot, part.joint).joint.freedom_names, []
    for generator in part.generators:
        terms = zip(generator, names, strict=True)
        texts.append(" ".join(name if x == 1.0 else f"{x:+.4g} {name}" for x, name in terms if x))
    axes = "the frame it attaches to" if part.seen_from == "parent" else "the body"
    turned = ", with all it carries turned back" if part.seen_from == "link" else ""
    return f"keeps a part of its momentum, {', '.join(texts)} in the axes of {axes}{turned}"


def _evidence(robot: System, part: ConstantMomentum, tolerance: float) -> str:
    """Evidence that a momentum is constant, and where velocities do not follow from it."""
    text = f"unactuated, its momentum changes at the relative rate {part.rate:.1e} only"
    if part.rate > ROUNDING:
        text += f", within the tolerance {tolerance:.1g}"
    if not part.everywhere:
        follows = " and ".join(robot.freedom_names[i] for i in part.follows)
        text += f"; {follows} does not follow from it everywhere, see `regularity`"
    return text
