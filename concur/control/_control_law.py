"""Interface of controllers for simulation, compilation and the rig."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import casadi as ca
import numpy as np

from concur.reduction import ReducedModel


@runtime_checkable
class Law(Protocol):
    """A controller: forces and torques of the controls from time, configuration and velocities.

    `simulate`, `Tick`, `ReferenceTick` and the rig take any object with these members. A `Servo`
    has them. A law that follows a reference has one more member, `outputs`, a sequence of `Output`;
    its graph may take the reference of these outputs. Together with a reference, and without
    outputs, a law is a function of time, configuration and velocities.

    A law with a state may have two more members: `longest_period`, the longest time from a tick to
    the next, s, default 1 s, and `largest_state`, the largest magnitude of its state, a number or
    one for each entry, default 1e18. Ticks reject numbers beyond them.

    Attributes
    ----------
    model : ReducedModel
        The reduced robot: names and numbers of q, s, v and u.
    torque_limits : numpy.ndarray or None
        Lower and upper limits of u that the law itself keeps, shape (nu, 2), N and N m; None if it
        keeps none.

    Examples
    --------
    A brake, with the weight of the arm held:

    >>> import casadi as ca, concur as cc
    >>> class Brake:
    ...     torque_limits = None
    ...
    ...     def __init__(self, model):
    ...         self.model = model
    ...
    ...     def graph(self):
    ...         q, s = ca.SX.sym("q", self.model.nq), ca.SX.sym("s", self.model.ns)
    ...         u = self.model.bias(q, s) - 5.0 * s
    ...         return ca.Function("brake", [q, s], [u], ["q", "s"], ["u"])
    >>> robot = cc.robots.rover_arm()
    >>> tick = cc.control.Tick(Brake(cc.reduce(robot)), interpreted=True)
    >>> tick(robot.neutral(), [1.0, 1.0, 0.0, 0.0, 0.0])[:2]
    array([-5., -5.])
    """

    @property
    def model(self) -> ReducedModel:
        """The reduced robot."""

    @property
    def torque_limits(self) -> np.ndarray | None:
        """Limits that the law itself keeps, shape (nu, 2)."""

    def graph(self) -> ca.Function:
        """The whole law as one function of named inputs.

        Returns
        -------
        casadi.Function
            Inputs, any of them in any order: time `t`, s; configuration `q`, shape (nq,);
            either shape velocities `s`, shape (ns,), or all measured velocities `v`, shape (nv,);
            and, for a law with a state, such as an integral, the state `z` of any length, zero at
            the start. With `outputs` also `pose`, `twist` and `acceleration` of their reference,
            flat as in `ReferenceSample`.
            Outputs: `u`, shape (nu,), N and N m; with a state its rate `zdot`; and, if the law is
            not defined everywhere, `margin_bound`, its distance from there without unit: below 1e-3
            no torque is returned.
        """
