"""Regularity and torque of the law, proved at all configurations of an operating box.

The box is divided until the bounds of `_operating_box` are as sharp as requested, or the budget is
used up. The proof is about the law in exact arithmetic, with its floats as exact numbers: its
decoupling margin is at least the required margin, and its torque is within the bounds, for all
configurations in the box and all speeds, commands and errors as stated.

Invariance of the law to displacements of the base and to wheel angles follows from the structure of
the robot; it is confirmed at random configurations, not proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from heapq import heappop, heappush
from itertools import product
from typing import Annotated, Any

import numpy as np
from annotated_types import Gt, Le
from numpy.typing import ArrayLike

from concur._progress import track
from concur.certify._checks import check, check_budget
from concur.certify._disturbances import check_square
from concur.certify._intervals import flint
from concur.certify._operating_box import Bounds, Demand, bound_box
from concur.certify._operating_certificate import OperatingCertificate
from concur.certify._operating_counterexample import (
    OperatingCounterexample,
    singular_place,
    strong_state,
)
from concur.certify._operating_graph import Graph
from concur.certify._operating_law import law_document
from concur.certify._operating_statement import (
    body_momentum,
    check_servo,
    coordinate_names,
    demand_of,
    read_ranges,
    read_sizes,
    read_speeds,
    usual_margin,
)
from concur.certify._recheck_law import operating_laws
from concur.certify._status import Status
from concur.control import Servo, read_limits
from concur.errors import ConcurError
from concur.robot import scalar
from concur.tables import (
    INTERNAL,
    NUMBER,
    PAIR,
    Expected,
    InFiles,
    NumberOrList,
    Positive,
    any_of,
    is_number_or_list,
    is_pair,
    list_of,
    table_of,
)

_SMALL = 0.1  # control inputs below this fraction of the largest need no sharp bound


_BOXES = "a whole number above zero, at most 1000000"  # each takes some milliseconds
_Ranges = Annotated[
    Any,
    Expected(
        "a lower and an upper end, or a list of such pairs",
        lambda value: (
            is_pair(value) or (bool(value) and isinstance(value, list) and all(map(is_pair, value)))
        ),
        any_of(PAIR, list_of(PAIR, 1)),
    ),
]
_Speeds = Annotated[
    Any,
    Expected(
        "a number, a list of them, or a table of shape velocities",
        lambda value: is_number_or_list(list(value.values()) if isinstance(value, dict) else value),
        any_of(NUMBER, list_of(NUMBER), table_of(NUMBER)),
    ),
]
_PLACES = 16  # boxes at whose middle a state beyond the limits is searched


def operating_bounds(
    servo: Annotated[Servo, INTERNAL],
    ranges: Annotated[Mapping[str, Any], InFiles(Mapping[str, _Ranges])],
    speeds: Annotated[ArrayLike | Mapping[str, float] | None, InFiles(_Speeds)] = None,
    acceleration: Annotated[ArrayLike, InFiles(NumberOrList)] = 0.0,
    pose_error: Annotated[ArrayLike, InFiles(NumberOrList)] = 0.0,
    velocity_error: Annotated[ArrayLike, InFiles(NumberOrList)] = 0.0,
    distance: Positive | None = None,
    limits: Annotated[Any, INTERNAL] = None,
    required_margin: Positive | None = None,
    tolerance: Positive = 0.2,
    budget: Annotated[int, Gt(0), Le(1_000_000), Expected(_BOXES)] = 2000,
    progress: Annotated[bool | Callable[[float], Any], INTERNAL] = False,
) -> OperatingCertificate:
    """Prove that the law is regular, and bound its torques, in a box of configurations.

    Parameters
    ----------
    servo : Servo
        A servo that takes shape velocities.
    ranges : mapping of str to pair of float
        Lower and upper end of the coordinate of each joint, by name of the body, rad or m; a list
        of pairs for several coordinates. Required for all coordinates that the law depends on:
        not for a base position that does not affect it, nor for angles of round wheels.
    speeds : float, array_like or mapping, optional
        Largest shape velocities, rad/s or m/s: a number, one for each, or a table by name. Default:
        only the margin is bounded.
    acceleration : float or array_like, optional
        Largest acceleration of the reference, m/s^2 or rad/s^2: a number, or one for each
        coordinate of the outputs. This and the errors require `speeds`.
    pose_error : float or array_like, optional
        Largest pose error, m or rad: a number, or one for each coordinate; zero on the reference,
        or from `error_bounds`.
    velocity_error : float or array_like, optional
        Largest velocity error, m/s or rad/s: a number, or one for each coordinate.
    distance : float, optional
        Largest distance of a floating base from the inertial origin, m; required with linear
        momentum, since the angular momentum about the base depends on it. Default: none.
    limits : float, sequence or mapping, optional
        Limits of the control inputs, as the `torque_limits` of a servo; default those of the servo.
    required_margin : float, optional
        Required decoupling margin, without unit; with `damping_threshold` and speeds at least the
        default. Default: the margin below which the law gives no torque or is damped.
    tolerance : float, optional
        Relative accuracy of the bounds: a fraction of the largest ones found.
    budget : int, optional
        Largest number of boxes.
    progress : bool or callable
        Show a progress bar, or call with the fraction done.

    Returns
    -------
    OperatingCertificate
        The verdict and the bounds.

    Raises
    ------
    OutputError
        If a range, bound or option is missing or out of range, accelerations or errors are
        given without speeds, the law measures all velocities, or torque bounds are requested
        with more control inputs than outputs.
    UnknownNameError
        If a joint, speed or control input does not exist.
    ShapeError, NonFiniteError
        If an argument has a wrong shape or is not finite.
    ReductionError
        If the velocities follow from the momentum of a joint that is not the base.
    ConcurError
        If the extra `certify` is not installed.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.certify import operating_bounds
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
    >>> box = {"turret": (-0.1, 0.1), "upper_arm": (0.9, 1.1), "forearm": (-1.7, -1.5)}
    >>> operating_bounds(servo, box, speeds=0.5, limits=20.0).status.name
    'PROVED'
    """
    flint()
    where = f"operating box of `{getattr(servo, 'name', type(servo).__name__)}`"
    check_servo(servo, where)
    named = read_ranges(servo, ranges, where)
    sharp = 0.0 < scalar(tolerance, f"{where}, `tolerance`") <= 10.0
    check(sharp, f"{where}, `tolerance`", "above 0 and at most 10", tolerance, "Omit it.")
    budget = check_budget(where, budget)
    required, place = usual_margin(servo), f"{where}, `required_margin`"
    if required_margin is not None:
        required = scalar(required_margin, place)
    check(required >= 0.0, place, "a nonnegative margin", required_margin, "Omit it.")
    if speeds is not None and servo.damping_threshold is not None:
        required = max(required, usual_margin(servo))  # damping changes the torque
    demand, largest, bounds = None, None, None
    stated: dict[str, np.ndarray] = {}
    parts = {
        "acceleration": read_sizes(servo, acceleration, "acceleration", where),
        "pose_error": read_sizes(servo, pose_error, "pose_error", where),
        "velocity_error": read_sizes(servo, velocity_error, "velocity_error", where),
    }
    if speeds is not None:
        check_square(servo, f"{where}, torque")
        check(
            servo.ns == servo.nu,
            f"{where}, torque",
            "as many control inputs as shape velocities",
            f"{servo.nu} and {servo.ns}",
            "Omit `speeds`: only the margin can be bounded.",
        )
        own = read_speeds(servo, speeds, where)
        largest = np.concatenate([own, body_momentum(servo, distance, where)])
        demand = demand_of(servo, **parts, where=where)
        stated = {"speeds": own, **parts}
        given = servo.torque_limits if limits is None else limits
        if given is not None:
            bounds = np.asarray(read_limits(f"{where}, `limits`", given, servo.model))
    else:
        needs = {"limits": limits is not None, **{name: part.any() for name, part in parts.items()}}
        for name, given in needs.items():
            check(
                not given,
                f"{where}, `{name}`",
                "`speeds`, which this argument requires",
                "no value",
                "Pass for example speeds=0.5, or omit this argument to bound only the margin.",
            )
    graph = Graph(servo, tuple(named), largest, where)
    labels = coordinate_names(servo)
    missing = [labels[i] for i in graph.coordinates if i not in named]
    check(
        not missing,
        f"{where}, `ranges`",
        "a range for each coordinate that the law depends on",
        f"no range for {', '.join(missing)}",
        "Add its lower and upper end; equal ends fix it.",
    )
    # Ranges of irrelevant coordinates have no effect.
    search = _Search(servo, graph, demand, bounds, stated, float(required), tolerance, budget)
    search.law = partial(law_document, servo, graph, _statement(servo, graph, distance))
    ends = np.array([named[i] for i in graph.coordinates], dtype=float).reshape(-1, 2)
    with track(progress, "operating box", 1.0) as report:
        search.run(ends[:, 0], ends[:, 1], report)
    texts = {labels[i]: named[i] for i in graph.coordinates}
    return search.verdict(texts)


class _Search:
    """Branch and bound over boxes of configurations."""

    def __init__(
        self,
        servo: Servo,
        graph: Graph,
        demand: Demand | None,
        limits: np.ndarray | None,
        stated: dict[str, np.ndarray],
        least: float,
        tolerance: float,
        budget: int,
    ) -> None:
        self.stated = stated
        self.servo, self.graph, self.demand, self.limits = servo, graph, demand, limits
        self.least, self.tolerance, self.budget = least, tolerance, budget
        self.margin_found = math.inf
        self.needed = np.full(0 if demand is None else 2 * servo.nu, -math.inf)
        self.leaves: list[tuple[np.ndarray, np.ndarray, Bounds]] = []
        self.tested = 0
        self.counterexample: OperatingCounterexample | None = None
        self.law: Callable[[bool], dict[str, Any] | None] | None = None

    def run(self, lower: np.ndarray, upper: np.ndarray, report: Callable[[float], Any]) -> None:
        """Divide the box until all parts are proved, a state refutes, or the budget is used up."""
        self.counterexample, met = singular_place(self.graph, self.least, lower, upper)
        self.margin_found = met
        corners = [np.where(side, upper, lower) for side in _corners(len(lower))]
        if self.counterexample is None and self.limits is not None:
            places = [(lower + upper) / 2, *corners]
            self.counterexample = strong_state(self.graph, self.limits, places, self.stated)
        if self.counterexample is not None:
            return
        heap: list[tuple[float, int, np.ndarray, np.ndarray, Bounds]] = []

        def look(low: np.ndarray, high: np.ndarray) -> None:
            found = bound_box(self.graph, self.demand, low, high)
            self.tested += 1
            self.margin_found = min(self.margin_found, found.found)
            if self.demand is not None:
                self.needed = np.maximum(self.needed, found.there)
            heappush(heap, (-self._excess(found), self.tested, low, high, found))

        look(lower, upper)
        while heap:
            # The sharpness goal changes with the bounds found: the key may be out of date.
            _, _, low, high, found = heappop(heap)
            if self._excess(found) <= 0.0 or (high <= low).all():
                self.leaves.append((low, high, found))
                continue
            if self.tested + 2 > self.budget:
                self.leaves.append((low, high, found))
                self.leaves += [(a, b, bounds) for _, _, a, b, bounds in heap]
                break
            k = self._widest(found, low, high)
            middle = (low[k] + high[k]) / 2
            for side in (0, 1):
                first, last = low.copy(), high.copy()
                (last if side == 0 else first)[k] = middle
                look(first, last)
            report(min(1.0, self.tested / self.budget))
        doubtful = [(a + b) / 2 for a, b, found in self.leaves if not self._good(found)]
        if self.limits is not None and doubtful:
            places = doubtful[:: max(1, len(doubtful) // _PLACES)]
            self.counterexample = strong_state(self.graph, self.limits, places, self.stated)

    def _excess(self, found: Bounds) -> float:
        """Excess of the bounds of a box over the requested sharpness, as a fraction of it."""
        excess = 0.0
        goal = max(self.least, (1.0 - self.tolerance) * self.margin_found)
        if found.margin is None:
            return math.inf
        excess = max(excess, (goal - found.margin) / max(goal, 1e-300))
        if self.demand is None:
            return excess
        both = np.concatenate([-found.lower, found.upper])
        size = np.abs(self.needed)
        room = self.tolerance * np.maximum(size, _SMALL * size.max())
        goals = self.needed + room
        if self.limits is not None:
            ends = np.concatenate([-self.limits[:, 0], self.limits[:, 1]])
            # Where the bound at one configuration is beyond the limit, no division helps.
            goals = np.where(self.needed < ends, np.minimum(goals, ends), goals)
        if not np.isfinite(both).all():
            return math.inf
        return max(excess, float(((both - goals) / np.maximum(room, 1e-300)).max()))

    def _widest(self, found: Bounds, low: np.ndarray, high: np.ndarray) -> int:
        """Coordinate whose width loosens the bounds most."""
        share = found.margin_shares.copy()
        goal = max(self.least, (1.0 - self.tolerance) * self.margin_found)
        torque = found.torque_shares
        known = torque.any() and np.isfinite(torque).all()
        if found.margin is not None and found.margin >= goal and known:
            needed = np.abs(self.needed.reshape(2, -1)).max(axis=0)
            share = (torque / np.maximum(needed, _SMALL * needed.max() + 1e-300)).max(axis=1)
        if not np.isfinite(share).all() or not (share > 0.0).any():
            share = high - low
        return int(np.argmax(np.where(high > low, share, -1.0)))

    def verdict(self, ranges: dict[str, tuple[float, float]]) -> OperatingCertificate:
        """Certificate from the boxes evaluated."""
        nu = 0 if self.demand is None else self.servo.nu
        margins = [found.margin for _, _, found in self.leaves]
        known = [m for m in margins if m is not None]
        margin = min(known) if known and len(known) == len(margins) else None
        lower, upper = np.full(nu, -math.inf), np.full(nu, math.inf)
        if self.leaves and nu:
            lower = np.min([found.lower for _, _, found in self.leaves], axis=0)
            upper = np.max([found.upper for _, _, found in self.leaves], axis=0)
        left = [(a, b) for a, b, found in self.leaves if not self._good(found)]
        if self.counterexample is not None:
            status, reason = Status.REFUTED, str(self.counterexample)
        elif not left:
            status = Status.PROVED
            reason = "The decoupling matrix is regular in the whole box"
            reason += " and the torque is bounded." if nu else "; torques are not bounded."
            if self.limits is not None:
                reason = reason[:-1] + " by its limits."
        else:
            status = Status.UNDECIDED
            reason = f"{len(left)} of {len(self.leaves)} boxes are undecided{self._lacks()}"
            if self.tested + 2 > self.budget:
                reason += f" {self.tested} were evaluated; try a larger budget or a smaller box."
        k = len(ranges)
        return OperatingCertificate(
            status,
            reason,
            self.servo.name,
            ranges,
            self.least,
            margin,
            self.margin_found,
            lower,
            upper,
            self.limits,
            self.servo.model.control_names if nu else (),
            self.servo.model.control_units if nu else (),
            {name: bound.tolist() for name, bound in self.stated.items()},
            np.array([(a, b) for a, b, _ in self.leaves]).reshape(len(self.leaves), 2, k),
            np.array(left).reshape(len(left), 2, k),
            self.tested,
            self.counterexample,
            self.law,
        )

    def _lacks(self) -> str:
        """Unproved claims, with the number of undecided boxes of each."""
        weak = sum(b.margin is None or not b.margin > self.least for _, _, b in self.leaves)
        strong = sum(not self._moderate(b) for _, _, b in self.leaves)
        words = [f"in {weak} the margin is not proved to be above {self.least:.3g}"] * (weak > 0)
        beyond = "within its limits" if self.limits is not None else "bounded"
        words += [f"in {strong} the torque is not proved to be {beyond}"] * (strong > 0)
        return ": " + ", ".join(words) + "."

    def _good(self, found: Bounds) -> bool:
        if found.margin is None or not (found.margin > self.least):
            return False
        return self._moderate(found)

    def _moderate(self, found: Bounds) -> bool:
        sound = np.isfinite(found.lower).all() and np.isfinite(found.upper).all()
        if self.limits is None:
            return bool(sound)
        inside = (found.lower >= self.limits[:, 0]) & (found.upper <= self.limits[:, 1])
        return bool(sound and inside.all())


def _statement(servo: Servo, graph: Graph, distance: float | None) -> dict[str, Any]:
    """Data of a file from which its law can be rebuilt."""
    labels = coordinate_names(servo)
    return {
        "names": [labels[i] for i in graph.coordinates],
        "places": list(graph.coordinates),
        "distance": None if distance is None or not len(graph.speeds) else float(distance),
        "lowest": 0.0
        if servo.damping_threshold is None or not len(graph.speeds)
        else usual_margin(servo),
    }


def _law_again(servo: Servo, law: dict[str, Any]) -> dict[str, Any] | None:
    """Law of a servo as in a file with the same coordinates, speeds and distance."""
    if not isinstance(servo, Servo) or servo.use_measured_velocity or servo.nz:
        return None
    flint()
    where = "recheck"
    try:
        largest = np.array(law["w"], dtype=float) if law["w"] else None
        if largest is not None:
            moved = body_momentum(servo, law["distance"], where)
            largest[servo.ns :] = moved
        graph = Graph(servo, law["places"], largest, where)
        stated = _statement(servo, graph, law["distance"])
    except (ConcurError, ValueError, IndexError, KeyError, TypeError):
        return None  # not a law of this servo
    return law_document(servo, graph, stated, "state" in law["programs"])


operating_laws.append(_law_again)


def _corners(size: int) -> np.ndarray:
    """Some corners of a box, as masks of its upper ends."""
    if size <= 4:
        return np.array(list(product((False, True), repeat=size)), dtype=bool)
    return np.random.default_rng(6).random((16, size)) < 0.5
