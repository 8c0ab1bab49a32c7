"""Laws of a user's own, in the form in which this package computes with laws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array, shape_error
from concur.control._allocation import SOLVER
from concur.control._control_law import Law
from concur.control._sample import ReferenceSample
from concur.control._tracking_law import TrackingLaw
from concur.errors import OutputError

NOTHING = ReferenceSample([], [], [])
"""Sample for a law that follows no outputs."""


@dataclass(frozen=True, eq=False)
class OwnLaw(TrackingLaw):
    """A law that follows no outputs: its errors have size zero, its margin is one."""

    own: Any = field(default=None, repr=False)

    @property
    def sampled(self) -> dict[str, int]:
        return super().sampled | {"t": 1} if "t" in self.own.name_in() else super().sampled

    @property
    def takes_momentum(self) -> bool:
        return False

    @property
    def symbols(self) -> Any:
        return ca.SX if self.own.is_a("SXFunction") else ca.MX

    def flat(self, sample: ReferenceSample | None) -> tuple[Array, Array, Array]:
        return super().flat(NOTHING if sample is None else sample)

    def graph(
        self, solver: str = SOLVER, sided: bool = False, measured: bool | None = None
    ) -> ca.Function:
        inputs = {name: self.symbols.sym(name, size) for name, size in self.sizes(measured).items()}
        found = self.own.call({name: inputs[name] for name in self.own.name_in()})
        bound = found.get("margin_bound", 1)
        results = [found["u"], bound, np.zeros((0, 1)), 1, *([1] if sided else [])]
        return ca.Function("law", [*inputs.values()], [*map(self.symbols, results)], [*inputs], [])


def tracking_law(law: Law, where: str) -> TrackingLaw:
    """A law as this package computes with it: a `Servo` as it is, any other one without outputs.

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
    names = own.name_in()
    known = {"t": 1, "q": model.nq, "s": model.ns, "v": model.nv}
    if not set(names) <= set(known) or {"s", "v"} <= set(names):
        raise OutputError(
            f"{where}, inputs of its graph",
            expected="names out of t, q and either s or v",
            came=", ".join(names),
            cure="Name the inputs of the casadi.Function.",
        )
    results = own.name_out()
    if "u" not in results or not set(results) <= {"u", "margin_bound"}:
        raise OutputError(
            f"{where}, outputs of its graph",
            expected="u, and margin_bound if the law is not defined everywhere",
            came=", ".join(results),
            cure="Name the outputs of the casadi.Function.",
        )
    sizes = {"u": (model.nu, 1), "margin_bound": (1, 1)}
    shapes = [(name, (known[name], 1), own.size_in(name)) for name in names]
    shapes += [(name, sizes[name], own.size_out(name)) for name in results]
    for name, wanted, came in shapes:
        if tuple(came) != wanted:
            raise shape_error(f"{where}, `{name}` of its graph", wanted, tuple(came))
    gains = (np.zeros((0, 0)),) * 3
    limits = law.torque_limits
    return OwnLaw(
        model, (), *gains, torque_limits=limits, use_measured_velocity="v" in names, own=own
    )
