"""One step of integration as a graph: law, drives, friction and plant, for every kind of loop.

The law acts at each stage of the step, or its command is held. Simulations and campaigns, the plant
as an FMU and the emulated rig take the same step.

The tableau is the classic one of fourth order. "rk4" integrates the coordinates and brings
quaternions back to unit norm. "rkmk4" is the Runge-Kutta-Munthe-Kaas method: the same tableau on
the algebra of the joint groups, with the exact inverse differential of exp, so that configurations
stay on their groups by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import casadi as ca

from concur.codegen import Array, normalised
from concur.control import TrackingLaw, taken_velocities
from concur.simulation._drives import Drives, FullOrder
from concur.system import System, displacement_rate

_NODES = (0.0, 0.5, 0.5, 1.0)
_WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def runge_kutta(
    slope: Callable[..., Sequence[Array]], start: Sequence[Array], h: Array
) -> list[Array]:
    """Take one step.

    Parameters
    ----------
    slope : callable
        Maps the node and the parts of the state to the rates of all parts; the node is the part of
        the step that has passed: 0, 0.5 or 1.
    start : sequence of Array
        Parts of the state at the start.
    h : Array
        Length of the step, s.

    Returns
    -------
    list of Array
        Parts of the state at the end.
    """
    stage: list[Array] = list(start)
    total: list[Array | float] = [0.0] * len(start)
    for k, (node, weight) in enumerate(zip(_NODES, _WEIGHTS, strict=True)):
        rates = slope(node, *stage)
        total = [t + weight * r for t, r in zip(total, rates, strict=True)]
        if k + 1 < len(_NODES):
            stage = [x + _NODES[k + 1] * h * r for x, r in zip(start, rates, strict=True)]
    return [x + h * t for x, t in zip(start, total, strict=True)]


def stepped(
    robot: System,
    method: str,
    rates: Callable[..., Sequence[Array]],
    state: Sequence[Array],
    h: Array | float,
    normalize: Callable[[Array], Array],
    stop: Callable[..., Sequence[Array]] | None = None,
) -> list[Array]:
    """State after a step of a method.

    Parameters
    ----------
    robot : System
        What moves.
    method : str
        "rk4" or "rkmk4".
    rates : callable
        Maps (node, *state) to the rates of all parts of the state but the first.
    state : sequence of casadi.MX
        Parts of the state at the start: configuration, velocity, and further ones.
    h : casadi.MX or float
        Length of the step, s.
    normalize : callable
        Brings a configuration back to its manifold; "rkmk4" does not need it.
    stop : callable, optional
        Maps the state at the end to the jump of the velocity there, by dry friction, and the parts
        of the state behind it.

    Returns
    -------
    list of casadi.MX
        Parts of the state at the end.
    """
    q, *rest = state
    if method == "rk4":
        rate = graph_of(robot.rate, "rate", robot.nq, robot.nv)
        end, *moved = runge_kutta(
            lambda node, q, v, *rest: (rate(q, v), *rates(node, q, v, *rest)), state, h
        )
        end = normalize(end)

        def displaced(q: Array, d: Array) -> Array:
            return normalize(q + rate(q, d))

    else:
        displaced = graph_of(robot.integrate, "integrate", robot.nq, robot.nv)
        sizes = robot.nq, robot.nv, robot.nv
        way_rate = graph_of(partial(displacement_rate, robot), "displacement_rate", *sizes)

        def slope(node: float, d: Array, v: Array, *rest: Array) -> tuple[Array, ...]:
            at = displaced(q, d)
            return way_rate(at, d, v), *rates(node, at, v, *rest)

        way, *moved = runge_kutta(slope, [ca.MX.zeros(robot.nv), *rest], h)
        end = displaced(q, way)
    if stop is None:
        return [end, *moved]
    jump, *others = stop(end, *moved)
    # A force that is constant in the step moves by half of the jump times the step.
    return [displaced(end, h / 2 * jump), moved[0] + jump, *others]


def graph_of(method: Callable[..., Array], name: str, *sizes: int) -> ca.Function:
    """Function over SX of a method that takes columns of these sizes, without checks of numbers."""
    symbols = [ca.SX.sym(f"x{i}", size) for i, size in enumerate(sizes)]
    return ca.Function(name, symbols, [ca.densify(method(*symbols))])


MOVING = ("q", "v", "work", "z", "spring", "motor", "load", "heat")
"""Parts of a state that a step moves; z is the state of a law that acts at each stage."""


def rate_function(plant: FullOrder, drives: Drives, law: TrackingLaw | None = None) -> ca.Function:
    """Rates at an instant, in one graph that shares what law and plant have in common.

    From (q, v, z, spring, motor, load, heat, command, active, share, p) to the rates of v, work, z,
    springs, motors, loads and heat, and behind them (u, pivot, missed, scale, active) of the law.
    The command is the torque behind limit and lag; with a law, its inputs `sampled`, one behind the
    other. The shares are those of dry friction.
    """
    kind = ca.SX if law is None or law.graph().is_a("SXFunction") else ca.MX
    sizes = {"q": plant.nq, "v": plant.nv, "z": 0 if law is None else law.nz}
    sizes |= dict.fromkeys(("spring", "motor"), len(drives.flexible)) | {"load": plant.nl}
    sizes["heat"] = len(drives.heated)
    sizes["command"] = plant.nu if law is None else sum(law.sampled.values())
    sizes |= {"active": drives.windows, "share": plant.nu}
    sizes["p"] = plant.n_numbers + drives.inputs
    x = {name: kind.sym(name, size) for name, size in sizes.items()}
    torque, given, moving = x["command"], [kind(1), kind(0), kind(1), kind(0, 1)], [kind(0, 1)]
    if law is not None:
        # Within a step of an integrator quaternions leave the unit sphere.
        unit, _ = normalised(x["q"], plant.quaternions)
        demand = dict(zip(law.sampled, split(x["command"], law.sampled), strict=True))
        state = {"q": unit, "s": taken_velocities(law, x["v"]), "z": x["z"]}
        found = law.results(state | demand)
        torque, moving = found["u"], [found["zdot"]]
        given = [found[name] for name in ("pivot", "missed", "scale", "active")]
    names = ("q", "v", "spring", "motor", "load", "heat", "active", "share", "p")
    *moving_parts, active, share, p = (x[name] for name in names)
    moved = drives.rate_function(plant).call([*moving_parts, torque, active, share, p])
    results = [*moved[:2], *moving, *moved[2:], torque, *given]
    return ca.Function(
        "rates",
        list(x.values()),
        [ca.densify(part) for part in results],
        list(x),
        [*(f"{name}_rate" for name in MOVING[1:]), "torque", "pivot", "missed", "scale", "limited"],
        {"cse": kind is ca.SX},
    )


def split(column: Array, sizes: dict[str, int]) -> list[Array]:
    """Parts of a column, one behind the other."""
    found, at = [], 0
    for size in sizes.values():
        found.append(column[at : at + size, :])
        at += size
    return found


@dataclass
class Step:
    """One step of integration, over expressions.

    Parameters
    ----------
    plant : Plant
        What moves, without friction.
    drives : Drives
        Friction, and what else lies between commands and robot.
    method : str
        "rk4" or "rkmk4".
    law : TrackingLaw, optional
        Law that acts at each stage; default a held command.
    """

    plant: FullOrder
    drives: Drives
    method: str
    law: TrackingLaw | None = None
    stages: list[ca.MX] = field(default_factory=list, init=False)
    laws: list[list[ca.MX]] = field(default_factory=list, init=False)

    def __call__(
        self,
        state: Sequence[ca.MX],
        h: ca.MX | float,
        command: Callable[[float], ca.MX],
        active: Callable[[float], ca.MX],
        p: ca.MX,
    ) -> list[ca.MX]:
        """State after a step of length h from the parts `MOVING`, in their order.

        Command and shares of the wrenches at a node from 0 to 1 are as for `rate_function`.
        Afterwards `stages` are (q, v, u) of all stages, and `laws` what the law gave there.
        """
        plant, drives = self.plant, self.drives
        rates = rate_function(plant, drives, self.law)
        normalize = graph_of(
            lambda q, p: plant.symbolic(p).normalize(q), "normalize", plant.nq, plant.n_numbers
        )
        share, response = ca.MX.zeros(plant.nu), list[ca.MX]()
        sticking = list(drives.sticking_functions(plant)) if drives.dry else []

        def slopes(node: float, q: ca.MX, v: ca.MX, _: ca.MX, *others: ca.MX) -> Any:
            nonlocal share
            given = [q, v, *others, command(node), active(node), share, p]
            vdot, power, moving, slip, faster, loading, heating, *law = rates.call(given)
            if sticking and not response:
                # The first rates lack dry friction; the shares that they give stay in the step.
                *_, motor, load, _ = others
                found = sticking[0](q, v, motor, load, law[0], vdot, faster, p, h)
                share, slowed, slower, *response[:] = found
                vdot, faster = vdot + slowed, faster + slower
            self.laws.append(law)
            self.stages.append(ca.vertcat(q, v, law[0]))
            return vdot, power, moving, slip, faster, loading, heating

        def stop(q: ca.MX, v: ca.MX, work: ca.MX, *others: ca.MX) -> list[ca.MX]:
            z, spring, motor, *kept = others
            last = self.laws[-1][0]
            jump, jumped, faster = sticking[1](q, v, motor, last, p, share, h, *response)
            u = last if self.law is None else self.laws[0][0]
            return [jump, work + h / 2 * ca.dot(u, faster), z, spring, motor + jumped, *kept]

        numbers = p[: plant.n_numbers, :]
        return stepped(
            plant.robot,
            self.method,
            slopes,
            state,
            h,
            lambda q: normalize(q, numbers),
            stop if sticking else None,
        )

    @property
    def rows(self) -> list[ca.MX]:
        """Law at the start, and ends of (q, v, u) of all stages.

        The law is (pivot, torque, missed, scale, active); the pivot is the smallest of the step.
        """
        torque, _, *others = self.laws[0]
        pivot = reduce(ca.fmin, [law[1] for law in self.laws], ca.MX(1))
        ends = (reduce(least, self.stages) for least in (ca.fmin, ca.fmax))
        return [pivot, torque, *others, *ends]


def plant_step(plant: FullOrder, drives: Drives, method: str) -> ca.Function:
    """One step of a plant under constant controls: (q, v, u, h) to (q, v)."""
    q, v, u = (ca.MX.sym(*of) for of in (("q", plant.nq), ("v", plant.nv), ("u", plant.nu)))
    h, none = ca.MX.sym("h"), ca.MX(0, 1)
    state = [q, v, ca.MX(1, 1), none, none, none, none, ca.MX(len(drives.heated), 1)]
    end = Step(plant, drives, method)(state, h, lambda node: u, lambda node: none, none)
    names = ["q", "v", "u", "h"], ["q_next", "v_next"]
    return ca.Function("plant_step", [q, v, u, h], end[:2], *names)
