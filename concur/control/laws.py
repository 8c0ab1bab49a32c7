"""Baseline laws in joint space: a comparison for the servo, and a pattern for custom laws.

Both follow a path of the shape joints. Neither observes the base or the outputs: errors that the
joints do not show, such as the drift of a rover on its wheels, remain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
from numpy.typing import ArrayLike

from concur.codegen import Array, constant
from concur.control._core import require_outputs
from concur.control._law import controls
from concur.control._own_law import Law, tracking_law
from concur.control._reading import check_controls, read_each, read_limits
from concur.errors import OutputError
from concur.outputs import ReferenceSample, references
from concur.outputs.references import Reference
from concur.reduction import ReducedModel, check_model
from concur.robot import as_tree

__all__ = ["PD", "ComputedTorque", "joint_reference"]


@dataclass(frozen=True, eq=False)
class _JointLaw(ABC):
    """A law that follows a path of the joints; a subclass gives the forces on the shape."""

    model: ReducedModel
    reference: Reference
    stiffness: Any
    damping: Any
    torque_limits: Any = None

    def __post_init__(self) -> None:
        where = f"{type(self).__name__} of `{getattr(self.model, 'name', '')}`"
        check_model(self.model, where)
        check_controls(self.model, where)
        for name in ("stiffness", "damping"):
            place, joints = f"{where}, `{name}`", self.model.shape_names
            values = read_each(place, getattr(self, name), joints, "joint")
            object.__setattr__(self, name, values)
        if self.torque_limits is False:
            object.__setattr__(self, "torque_limits", None)
        if self.torque_limits is not None:
            limits = read_limits(f"{where}, `torque_limits`", self.torque_limits, self.model)
            object.__setattr__(self, "torque_limits", limits)
        path, ns = self.reference, self.model.ns
        known = isinstance(path, Reference) and path.graph() is not None
        if not known or (path.pose_size, path.size) != (ns, ns):
            shown = f"{path.pose_size} coordinates" if known else f"{path!r:.40}"
            raise OutputError(
                f"{where}, `reference`",
                expected=f"a Reference with a graph and {ns} coordinates: "
                + ", ".join(self.model.shape_names),
                came=shown,
                cure="Make it with `references`, or from one of outputs with `joint_reference`.",
            )
        self.model.shape_coordinates  # noqa: B018 - raises an error for other joints

    @abstractmethod
    def _forces(self, q: Array, s: Array, wanted: tuple[Array, Array, Array]) -> Array:
        """Forces on the shape, from the state and the joints' position, velocity, acceleration."""

    def graph(self) -> ca.Function:
        """The whole law as one function.

        Returns
        -------
        casadi.Function
            From `t`, `q` and `s` to `u` and `margin_bound`; over MX if the reference has tables.
        """
        model = self.model
        sizes = {"q": model.nq, "s": model.ns, "pose": model.ns, "twist": model.ns}
        sizes["acceleration"] = model.ns
        q, s, *wanted = symbols = [ca.SX.sym(name, size) for name, size in sizes.items()]
        pose, twist, acceleration = wanted
        u, bound, _ = controls(model, q, self._forces(q, s, (pose, twist, acceleration)))
        if self.torque_limits is not None:
            low, high = (ca.DM(limits) for limits in self.torque_limits.T)
            u = ca.fmin(ca.fmax(u, low), high)
        bound = ca.fmin(bound, model.regularity(q))
        law = ca.Function("joint_law", symbols, [ca.densify(u), bound], {"cse": True})
        path = self.reference.graph()
        assert path is not None  # checked at construction
        kind = ca.SX if path.is_a("SXFunction") else ca.MX
        t, q, s = (kind.sym(name, size) for name, size in (("t", 1), *list(sizes.items())[:2]))
        results = law.call([q, s, *path.call([t], True, False)])
        return ca.Function("law", [t, q, s], results, ["t", "q", "s"], ["u", "margin_bound"])


@dataclass(frozen=True, eq=False)
class PD(_JointLaw):
    """Springs and dampers at the joints, with the weight held.

    The controls u make the forces ``H^T B u = KP (r - x) + KD (rdot - s) + g`` on the shape, with
    the joints' positions x, their path r, and g the forces that hold the robot with its joints at
    rest: its weight, and on a floating base the effect of a constant momentum. Of more controls
    than shape velocities the least are taken.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot, on wheels, floating or fixed.
    reference : Reference
        Path of the shape joints, in the order of ``model.shape_names``, rad and m: a reference with
        ns coordinates and a graph, such as `waypoints`; `joint_reference` makes one of a path of
        outputs.
    stiffness, damping : float or array_like
        KP and KD at the joints, a number or one per joint, N m/rad and N m s/rad, for travels N/m
        and N s/m.
    torque_limits : bool, float, sequence or mapping, optional
        Limits at which the controls are cut off, N and N m, as for `Servo`. Default: none.

    Raises
    ------
    OutputError
        If a gain is not above zero, or the reference does not fit the joints.
    ReductionError
        If a shape velocity is not the rate of one coordinate.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.free_flyer())
    >>> goal = cc.references.hold([0.5, -1.5, 2.1, 0.2, -0.4, 0.8])
    >>> law = cc.laws.PD(model, goal, stiffness=20.0, damping=8.0, torque_limits=5.0)
    >>> q0 = model.robot.neutral()
    >>> run = cc.simulate(model.robot, law, None, 0.1, q0, [0.0] * 6)
    >>> float(abs(run.u).max())
    5.0
    """

    def _forces(self, q: Array, s: Array, wanted: tuple[Array, Array, Array]) -> Array:
        x, still = q[list(self.model.shape_coordinates), :], ca.SX(self.model.ns, 1)
        spring = constant(self.stiffness) * (wanted[0] - x)
        return spring + constant(self.damping) * (wanted[1] - s) + self.model.bias(q, still)


@dataclass(frozen=True, eq=False)
class ComputedTorque(_JointLaw):
    """Computed torque at the joints: linear, decoupled errors of each, by the reduced model.

    The controls u make the forces ``H^T B u = Mhat (rddot + KD (rdot - s) + KP (r - x)) + chat``,
    so that the error e = r - x of each joint obeys ``eddot + KD edot + KP e = 0``, on wheels and on
    a floating base too.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot, on wheels, floating or fixed.
    reference : Reference
        Path of the shape joints, as for `PD`.
    stiffness, damping : float or array_like
        KP and KD at the joints, a number or one per joint, 1/s^2 and 1/s.
    torque_limits : bool, float, sequence or mapping, optional
        Limits at which the controls are cut off, N and N m, as for `Servo`. Default: none.

    Raises
    ------
    OutputError
        If a gain is not above zero, or the reference does not fit the joints.
    ReductionError
        If a shape velocity is not the rate of one coordinate.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> goal = cc.references.rest_to_rest([0.0] * 5, [1.0, 1.0, 0.2, 0.3, -0.3], 2.0)
    >>> law = cc.laws.ComputedTorque(model, goal, stiffness=9.0, damping=6.0)
    >>> run = cc.simulate(model.robot, law, None, 2.0, model.robot.neutral(), [0.0] * 5)
    >>> bool(abs(run.q[-1][-5:] - [1.0, 1.0, 0.2, 0.3, -0.3]).max() < 1e-6)
    True
    """

    def _forces(self, q: Array, s: Array, wanted: tuple[Array, Array, Array]) -> Array:
        pose, twist, acceleration = wanted
        away = constant(self.stiffness) * (pose - q[list(self.model.shape_coordinates), :])
        commanded = acceleration + away + constant(self.damping) * (twist - s)
        return self.model.inverse_dynamics(q, s, commanded)


def joint_reference(
    servo: Law,
    reference: Reference | Callable[[float], ReferenceSample],
    duration: float,
    q0: ArrayLike | None = None,
) -> Reference:
    """Make a path of the joints, on which the outputs follow their reference.

    The exact motion of `Servo.feasibility`, from inverse kinematics at the start and the lift
    along the way, is computed once and ahead; a spline passes through it. It is the path of an
    undisturbed robot that starts on the reference. After the duration it continues at its last
    velocity.

    Parameters
    ----------
    servo : Law
        Law of the outputs, such as a `Servo`: only its model and outputs count.
    reference : Reference or callable
        Reference of all outputs.
    duration : float
        Time up to which the path is needed, s.
    q0 : array_like, optional
        Configuration from which the exact start is sought, shape (nq,); default neutral. With
        the `q` of `Servo.start` the path begins there.

    Returns
    -------
    Reference
        Positions of the shape joints, in the order of ``model.shape_names``, rad and m.

    Raises
    ------
    InfeasibleReferenceError
        If the reference cannot be followed to the end.
    OutputError
        If the law has no outputs.
    ReductionError
        If a shape velocity is not the rate of one coordinate.

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> path = cc.laws.joint_reference(task.servo, task.reference, 2.0, task.q0)
    >>> path(0.0).pose.shape
    (5,)
    """
    where = "joint_reference, `servo`"
    law = tracking_law(servo, where)
    require_outputs(law, where)
    as_tree(law.model.system, where, "Give the path of the joints itself, such as `waypoints`.")
    found = law.feasibility(reference, duration, q0)
    found.require(law.name)
    positions = found.configurations[:, list(law.model.shape_coordinates)]
    return references.waypoints(found.times, positions, found.speeds[[0, -1]])
