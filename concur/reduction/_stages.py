"""Reduction in stages: joints that nobody drives and that keep their momentum (section 4.5).

After wheels or the momentum of a floating base have been dealt with, a joint group N that
leaves the reduced system invariant has a constant momentum of its own, ``Ad*_n^-1 Pi = theta``,
and its velocity follows from it. Lifts compose:

    v = H1 (H2 s + h2) + h1,    H2 = [1; -K_N^-1 K_Nr],    h2 = [0; K_N^-1 (Ad*_n theta - c)]

with K the reduced metric of the stage before, split into the joints of N and the rest r, and
c = (M h1)_N what the drift of the stage before contributes to the momentum (4.5.33)-(4.5.38).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, as_floats, evaluated, nonfinite_error, shape_error
from concur.dynamics import solve_positive_definite
from concur.errors import ReductionError
from concur.kinematics import constant
from concur.multibody import Mechanism
from concur.reduction._conserved import Conservation, conservation
from concur.reduction._model import ReducedModel

Stages: TypeAlias = str | Sequence[str] | Mapping[str, Any]
"""Which joints to reduce further: "auto", names, or momenta by name."""


@dataclass(frozen=True)
class StagedReduction(ReducedModel):
    """A reduced robot, reduced once more by joints that keep their momentum.

    Made by `reduce`.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    kind : str
        "staged".
    shape, dependent : tuple of int
        Indices in v of the shape velocities and of those that all stages give.
    reason : str
        The stages, in words.
    inner : ReducedModel
        The stage before.
    joint : str
        Body whose joint is the group N.
    theta : tuple of float
        Its constant momentum in the joint's basis, N m s and N s: on wheels that of the reduced
        system, of the whole robot otherwise.
    seen_from : str
        Axes in which it is constant: "parent", the frame to which the joint attaches, or "body",
        that of the body.

    See Also
    --------
    reduce : makes one.
    """

    inner: ReducedModel
    joint: str
    theta: tuple[float, ...]
    seen_from: str

    @property
    def first(self) -> ReducedModel:
        """The first stage of the reduction, by wheels or by the momentum of the base."""
        return self.inner.first

    def at_momentum(self, momentum: ArrayLike) -> StagedReduction:
        """The same stages with another momentum of the floating base.

        Parameters
        ----------
        momentum : array_like
            Spatial momentum about the inertial origin, shape (6,), kg m/s and kg m^2/s.

        Returns
        -------
        StagedReduction
            The model; its functions are built anew.

        Raises
        ------
        ReductionError
            If the robot does not float, or the joint does not keep its own momentum then.
        """
        inner = self.inner.at_momentum(momentum)
        return _stage(inner, _kept(inner, self.joint), self.theta)

    def on(self, robot: Mechanism) -> StagedReduction:
        """The same stages of a robot with other parameters.

        Whether the joint keeps its momentum there is not tested: with the same momentum it is
        the start of a motion of that robot at least.

        Parameters
        ----------
        robot : Mechanism
            A robot with the same bodies, joints, wheels and drives.

        Returns
        -------
        StagedReduction
            Its model.
        """
        return replace(self, robot=robot, inner=self.inner.on(robot))

    @property
    def nn(self) -> int:
        """Number of velocities of N."""
        return len(self.theta)

    @property
    def stages(self) -> tuple[str, ...]:
        """Joints of all stages after the first, in order."""
        before = self.inner.stages if isinstance(self.inner, StagedReduction) else ()
        return (*before, self.joint)

    @property
    def chain(self) -> tuple[StagedReduction, ...]:
        """All stages after the first, in order."""
        before = self.inner.chain if isinstance(self.inner, StagedReduction) else ()
        return (*before, self)

    @evaluated("(nq),(nv)->(nn),(nn)")
    def momentum_residual(self, q: Array, v: Array) -> tuple[Array, Array]:
        """How far a state is from the constant momentum of the joint.

        Parameters
        ----------
        q, v : array_like
            Configuration and velocity of the whole robot, shapes (nq,) and (nv,).

        Returns
        -------
        residual : numpy.ndarray or casadi.SX
            Momentum minus the constant one, in the body's axes, shape (nn,).
        own : numpy.ndarray or casadi.SX
            What the joint's own motion contributes to the momentum, shape (nn,): a size to
            compare with.
        """
        own, _, _ = self._blocks(q)
        momentum = self._fields(q).T @ (self.robot.mass_matrix(q) @ v)
        return momentum - self.stage_momentum(q), own @ v[self._rows]

    @evaluated("(nq)->(nv,ns),(nv)")
    def lift(self, q: Array) -> tuple[Array, Array]:
        horizontal, drift = self.inner.lift(q)
        own, coupling, _ = self._blocks(q)
        missing = self.stage_momentum(q) - self._fields(q).T @ (self.robot.mass_matrix(q) @ drift)
        solved = solve_positive_definite(own, ca.horzcat(coupling, missing))
        follows, carried = solved[:, : self.ns], solved[:, self.ns]
        of_rest, of_group = horizontal[:, self._rest], horizontal[:, self._group]
        return of_rest - of_group @ follows, ca.sparsify(drift + of_group @ carried)

    @evaluated("(nq)->()")
    def regularity(self, q: Array) -> Array:
        return self.inner.regularity(q)

    @evaluated("(nq),(nv)->(nv)")
    def velocity_drift(self, q: Array, v: Array) -> Array:
        horizontal, _ = self.inner.lift(q)
        return self.inner.velocity_drift(q, v) + horizontal[:, self._group] @ self._still(q, v)

    @evaluated("(nq)->(ns,ns)")
    def mass_matrix(self, q: Array) -> Array:
        own, coupling, rest = self._blocks(q)
        reduced = rest - coupling.T @ solve_positive_definite(own, coupling)
        return ca.triu2symm(ca.triu(reduced))

    @evaluated("(nq),(nv),(ns)->(ns)")
    def shape_forces(self, q: Array, v: Array, sdot: Array) -> Array:
        own, coupling, _ = self._blocks(q)
        inner = ca.SX(self.inner.ns, 1)
        inner[self._rest] = sdot
        inner[self._group] = self._still(q, v) - solve_positive_definite(own, coupling @ sdot)
        return self.inner.shape_forces(q, v, inner)[self._rest, :]

    @evaluated("(nq)->(nn)")
    def stage_momentum(self, q: Array) -> Array:
        """Momentum of N in its bodies' axes: Ad*_n theta, or theta itself where it is seen so.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (nn,), dual to the velocities of N's joints.
        """
        if self.seen_from == "body":
            return constant(self.theta)
        joint = self.robot.bodies[self.robot.index(self.joint)].joint
        # Any wrench with these components will do: the joint feels no others.
        wrench = constant(np.linalg.pinv(joint.basis).T @ np.array(self.theta))
        rotation, translation = joint.pose(q[self.robot.q_slice(self.joint)])
        force = rotation.T @ wrench[:3]
        torque = rotation.T @ (wrench[3:] - ca.cross(translation, wrench[:3]))
        return constant(joint.basis.T) @ ca.vertcat(force, torque)

    def momentum_fields(self, q: Array) -> Array:
        return self.first.momentum_fields(q)

    def _fields(self, q: Array) -> Array:
        """Those of N among the momentum fields."""
        return self.momentum_fields(q)[:, [self.first.shape.index(i) for i in self._rows]]

    @property
    def _rows(self) -> list[int]:
        """Indices of N's velocities in v."""
        return list(range(*self.robot.v_slice(self.joint).indices(self.nv)))

    @property
    def _group(self) -> list[int]:
        """Indices of N's velocities among the shape velocities of the stage before."""
        return [self.inner.shape.index(i) for i in self._rows]

    @property
    def _rest(self) -> list[int]:
        return [self.inner.shape.index(i) for i in self.shape]

    def _blocks(self, q: Array) -> tuple[Array, Array, Array]:
        """Metric of the stage before, in blocks: N, N against the rest, the rest."""
        metric, group, rest = self.inner.mass_matrix(q), self._group, self._rest
        return metric[group, group], metric[group, rest], metric[rest, rest]

    def _still(self, q: Array, v: Array) -> Array:
        """Acceleration of N while the rest does not accelerate: no force acts along N."""
        own, _, _ = self._blocks(q)
        forces = self.inner.shape_forces(q, v, ca.SX(self.inner.ns, 1))
        return -solve_positive_definite(own, forces[self._group])


def further_stages(model: ReducedModel, stages: Stages) -> ReducedModel:
    """Reduce a model by joints that keep their momentum, one after the other.

    Parameters
    ----------
    model : ReducedModel
        The first stage.
    stages : str, sequence of str or mapping
        "auto", names of bodies, or their momenta by name.

    Returns
    -------
    ReducedModel
        The last stage; the model itself when "auto" finds none.

    Raises
    ------
    ReductionError
        If a joint does not keep its momentum.
    UnknownNameError
        If a name is not that of a shape joint.
    """
    if isinstance(stages, str) and stages == "auto":
        found: ReducedModel = model
        while (next_one := _next_conserved(found)) is not None:
            found = _stage(found, next_one, None)
        return found
    if isinstance(stages, str) or not isinstance(stages, Iterable):
        raise ReductionError(
            f"robot `{model.name}`, `stages`",
            expected='"auto", names of bodies, or momenta by name',
            came=repr(stages),
            cure=f'Write stages=["{model.robot.bodies[-1].name}"] or stages="auto".',
        )
    for name in stages:
        momentum = stages[name] if isinstance(stages, Mapping) else None
        model = _stage(model, _kept(model, name), momentum)
    return model


def with_hint(model: ReducedModel) -> ReducedModel:
    """Say in a model's reason if it could be reduced further.

    Parameters
    ----------
    model : ReducedModel
        The first stage.

    Returns
    -------
    ReducedModel
        The model, its reason longer if there is a joint that nobody drives and that keeps its
        momentum.
    """
    found = _next_conserved(model)
    if found is None:
        return model
    hint = f'nobody drives `{found.joint}`, which keeps its momentum: stages="auto" reduces by it'
    return replace(model, reason=f"{model.reason}; {hint}")


def _next_conserved(model: ReducedModel) -> Conservation | None:
    """First joint, from the base on, that can be reduced and leaves something of the shape."""
    robot, driven = model.robot, set(model.robot.actuated_freedoms)
    for body in robot.bodies:
        rows = set(range(*robot.v_slice(body.name).indices(model.nv)))
        if rows and rows < set(model.shape) and not rows & driven:
            tested = conservation(model, body.name)
            if tested.conserved:
                return tested
    return None


def _kept(model: ReducedModel, joint: str) -> Conservation:
    """Demand that a joint keeps its momentum."""
    tested = conservation(model, joint)
    if not tested.conserved:
        cure = f"Leave it out of `stages`. Its momentum obeys {tested.equation}."
        if model.robot.bodies[model.robot.index(joint)].joint.nv > 1:
            cure += (
                " A stage takes a joint as a whole: `concur.symmetry` says whether some components "
                "of the momentum are constant."
            )
        raise ReductionError(
            f"robot `{model.name}`, `stages`, joint `{joint}`",
            expected="a joint that keeps its momentum",
            came=tested.why,
            cure=cure,
        )
    return tested


def _stage(model: ReducedModel, tested: Conservation, momentum: Any) -> StagedReduction:
    robot = model.robot
    rows = range(*robot.v_slice(tested.joint).indices(model.nv))
    where = f"robot `{model.name}`, `stages`, joint `{tested.joint}`"
    theta = np.zeros(len(rows))
    if momentum is not None:
        given = as_floats(momentum, where)
        if given.shape not in ((), (len(rows),)) or (given.shape == () and len(rows) > 1):
            raise shape_error(where, (len(rows),), given.shape)
        if not np.isfinite(given).all():
            raise nonfinite_error(where, given)
        theta = np.broadcast_to(given, (len(rows),))
    size = "zero" if not theta.any() else f"{np.linalg.norm(theta):.4g}"
    return StagedReduction(
        robot,
        "staged",
        tuple(i for i in model.shape if i not in rows),
        tuple(sorted((*model.dependent, *rows))),
        f"{model.reason}; then by `{tested.joint}`, which keeps its momentum, {size}: {tested.why}",
        model,
        tested.joint,
        tuple(float(x) for x in theta),
        tested.seen_from,
    )
