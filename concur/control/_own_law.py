"""Controllers: what simulation, compilation and the rig need of one, and laws of a user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import casadi as ca
import numpy as np

from concur.codegen import LARGEST, Array, shape_error
from concur.control._core import at_torque_limits
from concur.control._law import law_graph
from concur.control._margins import Margins
from concur.control._reading import check_bounds
from concur.control._state_bounds import USUAL_PERIOD, StateBounds
from concur.control._tracking_law import TrackingLaw
from concur.errors import OutputError
from concur.outputs import Output, ReferenceSample, checked_outputs
from concur.reduction import ReducedModel

NOTHING = ReferenceSample([], [], [])
"""Sample for a law that follows no outputs."""


@runtime_checkable
class Law(Protocol):
    """A controller: forces and torques of the controls from time, configuration and velocities.

    `simulate`, campaigns, exports and the rig take any object with these members, and
    `tracking_law` gives it the methods of a `Servo`, which has them too. A law that follows a
    reference has one more member, `outputs`, a sequence of `Output`; its graph may take the
    reference of these outputs. Together with a reference, and without outputs, a law is a function
    of time, configuration and velocities.

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
    >>> law = cc.control.tracking_law(Brake(cc.reduce(robot)))
    >>> tick = law.compile(interpreted=True)
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


@dataclass(frozen=True, eq=False, repr=False)
class OwnLaw(TrackingLaw):
    """A law of a user: it follows outputs or none, and does not linearize their errors."""

    own: Any = field(default=None, repr=False)
    given: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)

    def __post_init__(self) -> None:
        self._keep_sizes(int(self.own.size1_in("z")) if "z" in self.own.name_in() else 0)

    @property
    def sampled(self) -> dict[str, int]:
        return super().sampled | {"t": 1} if "t" in self.own.name_in() else super().sampled

    def _state_entries(self) -> tuple[tuple[str, str], ...]:
        return tuple((f"z[{k}]", "") for k in range(self.nz))

    def _usual_bounds(self) -> StateBounds:
        # Its rates and the size of its state are known to its author only.
        return StateBounds(USUAL_PERIOD, np.full(self.nz, LARGEST))

    @property
    def linearizes(self) -> bool:
        return False

    @cached_property
    def margins(self) -> Margins:
        return replace(super().margins, refused_below=0.0) if self.size else super().margins

    @property
    def _symbols(self) -> Any:
        return ca.SX if self.own.is_a("SXFunction") else ca.MX

    def _lyapunov(self, q: Array, s: Array, pose: Array, twist: Array) -> Array:
        return ca.SX(np.nan)

    def flat(self, sample: ReferenceSample | None) -> tuple[Array, Array, Array]:
        return super().flat(NOTHING if sample is None else sample)

    def _build(self) -> ca.Function:
        inputs = {name: self._symbols.sym(name, size) for name, size in self.inputs.items()}
        given = inputs | {"v": inputs["s"]}
        found = self.own.call({name: given[name] for name in self.own.name_in()})
        usual = {"pivot": found.get("margin_bound", 1), "missed": np.zeros((self.size, 1))}
        usual |= {"scale": 1, "side": 1, "zdot": self._symbols(0, 1)}
        usual |= {"active": at_torque_limits(self, found["u"])}
        return law_graph(inputs, usual | found)


def tracking_law(
    law: Law, where: str = "law", outputs: Sequence[Output] | None = None
) -> TrackingLaw:
    """A law as this package computes with it: a `Servo` as it is, any other one as an `OwnLaw`.

    Parameters
    ----------
    law : Law
        The law.
    where : str
        Place named in errors.
    outputs : sequence of Output, optional
        Outputs that follow a reference by this law, so that runs have their errors; default
        the `outputs` of the law. Its graph need not take their reference.

    Returns
    -------
    TrackingLaw
        The law.

    Raises
    ------
    OutputError
        If it is no law, or its graph has other inputs or outputs than a law's.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> springs = cc.laws.PD(model, cc.references.hold([0.0] * 5), stiffness=20.0, damping=8.0)
    >>> tick = cc.control.tracking_law(springs).compile(interpreted=True)
    >>> tick(model.robot.neutral(), [0.0] * 5).shape
    (5,)
    """
    if isinstance(law, TrackingLaw):
        return law
    if isinstance(law, type) or not isinstance(law, Law):
        raise OutputError(
            where,
            expected="a Servo, or another Law with `model`, `torque_limits` and `graph`",
            came=f"{type(law).__name__} {law!r:.40}",
            cure="See `concur.control.Law` for a law of your own.",
        )
    model, own = law.model, law.graph()
    if not isinstance(own, ca.Function):
        raise OutputError(
            f"{where}, `graph`",
            expected="a casadi.Function",
            came=f"{type(own).__name__} {own!r:.40}",
            cure="Return a casadi.Function with named inputs and outputs.",
        )
    outputs = tuple(getattr(law, "outputs", ()) if outputs is None else outputs)
    if outputs:
        outputs = checked_outputs(model.system, outputs, where, functions=True)
    names, results = own.name_in(), own.name_out()
    size, state = sum(output.dim for output in outputs), 0
    known = {"t": 1, "q": model.nq, "s": model.ns, "v": model.nv}
    if "z" in names:
        known["z"] = state = int(own.size1_in("z"))
    if outputs:
        known["pose"] = sum(output.pose_size for output in outputs)
        twist = sum(output.twist_size for output in outputs)
        known |= {"twist": twist, "acceleration": twist}
    if not set(names) <= set(known) or {"s", "v"} <= set(names):
        raise OutputError(
            f"{where}, inputs of its graph",
            expected=f"names out of {', '.join(known)}, with either s or v",
            came=", ".join(names),
            cure="Name the inputs of the casadi.Function; a law that takes pose, twist and "
            "acceleration of a reference lists its `outputs`.",
        )
    needed = {"u", "zdot"} if state else {"u"}
    if not needed <= set(results) <= needed | {"margin_bound"}:
        raise OutputError(
            f"{where}, outputs of its graph",
            expected=f"{' and '.join(sorted(needed))}, and margin_bound if the law is not defined "
            "everywhere",
            came=", ".join(results),
            cure="Name the outputs of the casadi.Function.",
        )
    made = {"u": model.nu, "margin_bound": 1, "zdot": state}
    shapes = [(name, known[name], own.size_in(name)) for name in names]
    shapes += [(name, made[name], own.size_out(name)) for name in results]
    for name, wanted, came in shapes:
        if tuple(came) != (wanted, 1):
            raise shape_error(f"{where}, `{name}` of its graph", (wanted, 1), tuple(came))
    none = np.zeros((size, size))
    longest, largest = (getattr(law, name, None) for name in ("longest_period", "largest_state"))
    check_bounds(where, longest, largest, state)
    return OwnLaw(
        model,
        outputs,
        none,
        none,
        np.eye(size),
        torque_limits=law.torque_limits,
        use_measured_velocity="v" in names,
        longest_period=longest,
        largest_state=largest,
        own=own,
    )
