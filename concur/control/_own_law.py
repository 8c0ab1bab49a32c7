"""Laws of a user's own, in the form in which this package computes with laws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import LARGEST, Array, shape_error
from concur.control._allocation import SOLVER
from concur.control._control_law import Law
from concur.control._state_bounds import USUAL_PERIOD, StateBounds, check_bounds
from concur.control._tracking_law import TrackingLaw
from concur.errors import OutputError
from concur.outputs._kinematics import checked_outputs
from concur.outputs._sample import ReferenceSample

NOTHING = ReferenceSample([], [], [])
"""Sample for a law that follows no outputs."""


@dataclass(frozen=True, eq=False, repr=False)
class OwnLaw(TrackingLaw):
    """A law of a user: it follows outputs or none, and does not linearize their errors."""

    own: Any = field(default=None, repr=False)

    @property
    def sampled(self) -> dict[str, int]:
        return super().sampled | {"t": 1} if "t" in self.own.name_in() else super().sampled

    @property
    def nz(self) -> int:
        return int(self.own.size1_in("z")) if "z" in self.own.name_in() else 0

    @property
    def state_entries(self) -> tuple[tuple[str, str], ...]:
        return tuple((f"z[{k}]", "") for k in range(self.nz))

    def _usual_bounds(self) -> StateBounds:
        # Its rates and the size of its state are known to its author only.
        return StateBounds(USUAL_PERIOD, np.full(self.nz, LARGEST))

    @property
    def takes_momentum(self) -> bool:
        return False

    @property
    def linearizes(self) -> bool:
        return False

    @property
    def refused_below(self) -> float:
        return 0.0 if self.size else super().refused_below

    @property
    def symbols(self) -> Any:
        return ca.SX if self.own.is_a("SXFunction") else ca.MX

    def lyapunov_function(self, q: Array, s: Array, pose: Array, twist: Array) -> Array:
        return ca.SX(np.nan)

    def flat(self, sample: ReferenceSample | None) -> tuple[Array, Array, Array]:
        return super().flat(NOTHING if sample is None else sample)

    def graph(
        self, solver: str = SOLVER, sided: bool = False, measured: bool | None = None
    ) -> ca.Function:
        inputs = {name: self.symbols.sym(name, size) for name, size in self.sizes(measured).items()}
        found = self.own.call({name: inputs[name] for name in self.own.name_in()})
        bound = found.get("margin_bound", 1)
        results = [found["u"], bound, np.zeros((self.size, 1)), 1, *([1] if sided else [])]
        results += [found["zdot"]] if self.nz else []
        return ca.Function("law", [*inputs.values()], [*map(self.symbols, results)], [*inputs], [])


def tracking_law(law: Law, where: str) -> TrackingLaw:
    """A law as this package computes with it: a `Servo` as it is, any other one as an `OwnLaw`.

    Parameters
    ----------
    law : Law
        The law.
    where : str
        Place named in errors.

    Returns
    -------
    TrackingLaw
        The law.

    Raises
    ------
    OutputError
        If it is no law, or its graph has other inputs or outputs than a law's.
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
    outputs = tuple(getattr(law, "outputs", ()))
    if outputs:
        outputs = checked_outputs(model.system, outputs, where, functions=True)
    names, size = own.name_in(), sum(output.dim for output in outputs)
    state = own.size1_in("z") if "z" in names else 0
    known = {"t": 1, "q": model.nq, "s": model.ns, "v": model.nv, "z": state}
    if outputs:
        known["pose"] = sum(output.pose_size for output in outputs)
        known |= dict.fromkeys(("twist", "acceleration"), size)
    if not set(names) <= set(known) or {"s", "v"} <= set(names):
        raise OutputError(
            f"{where}, inputs of its graph",
            expected=f"names out of {', '.join(known)}, with either s or v",
            came=", ".join(names),
            cure="Name the inputs of the casadi.Function; a law that takes pose, twist and "
            "acceleration of a reference lists its `outputs`.",
        )
    results = own.name_out()
    needed = {"u", "zdot"} if state else {"u"}
    if not needed <= set(results) or not set(results) <= needed | {"margin_bound"}:
        raise OutputError(
            f"{where}, outputs of its graph",
            expected=f"{' and '.join(sorted(needed))}, and margin_bound if the law is not defined "
            "everywhere",
            came=", ".join(results),
            cure="Name the outputs of the casadi.Function.",
        )
    sizes = {"u": (model.nu, 1), "margin_bound": (1, 1), "zdot": (state, 1)}
    shapes = [(name, (known[name], 1), own.size_in(name)) for name in names]
    shapes += [(name, sizes[name], own.size_out(name)) for name in results]
    for name, wanted, came in shapes:
        if tuple(came) != wanted:
            raise shape_error(f"{where}, `{name}` of its graph", wanted, tuple(came))
    none, limits = np.zeros((size, size)), law.torque_limits
    longest, largest = (getattr(law, name, None) for name in ("longest_period", "largest_state"))
    check_bounds(where, longest, largest, state)
    return OwnLaw(
        model,
        outputs,
        none,
        none,
        np.eye(size),
        torque_limits=limits,
        use_measured_velocity="v" in names,
        longest_period=longest,
        largest_state=largest,
        own=own,
    )
