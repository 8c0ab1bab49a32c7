"""Whether the law exists and the motors suffice, at all configurations of a box.

The box is cut into smaller ones until the bounds of `_operating_box` are as sharp as asked for, or
the budget is spent. What is proved is about the law in exact arithmetic, with its floats taken as
exact numbers: its decoupling matrix is no nearer to singular than the margin, and its torque stays
within the bounds, for all configurations in the box, all speeds, commands and errors as stated.

That robots may be moved as a whole, and wheels turned, without the law noticing follows from what
they are; it is confirmed at random configurations, not proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import product
from os import PathLike
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.certify._arrays import above
from concur.certify._certificate import _reporting
from concur.certify._disturbances import check_square
from concur.certify._files import program_versions, write_document
from concur.certify._intervals import PRECISION, Walker, flint, interval
from concur.certify._operating_box import Bounds, Demand, bound_box
from concur.certify._operating_counterexample import (
    OperatingCounterexample,
    singular_place,
    strong_state,
)
from concur.certify._operating_graph import Graph, momentum_size
from concur.certify._operating_law import law_document
from concur.certify._recheck_document import OPERATING, document_hash
from concur.certify._recheck_law import operating_laws
from concur.certify._status import ESTIMATE, Status
from concur.codegen import as_floats, nonfinite_error, shape_error
from concur.control import Servo
from concur.control._allocation import read_limits
from concur.errors import ConcurError, OutputError, UnknownNameError
from concur.mechanism import scalar

_SMALL = 0.1  # controls below this part of the largest need not be known as sharply
_FARTHEST = 1e6  # rad and m: beyond it neighbouring floats are no places of a joint
_NOTHING = 1e-300  # N and N m: a bound of this size is one of zero
_PLACES = 16  # boxes in whose middle a state beyond the limits is looked for

__all__ = ["OperatingCertificate", "OperatingCounterexample", "operating_bounds"]


@dataclass(frozen=True, eq=False)
class OperatingCertificate:
    """What is proved about the law in a box of configurations.

    Parameters
    ----------
    status : Status
        PROVED: the margin is above `least` and, if speeds and commands were stated, the controls
        need no more than their limits, everywhere in the box. REFUTED: not so at
        `counterexample`. UNDECIDED otherwise.
    reason : str
        What the status rests on.
    name : str
        Name of the robot.
    ranges : dict of str to tuple of float
        Ranges of the coordinates that matter, by name, rad and m.
    least : float
        Margin that was asked for.
    margin : float or None
        Lower bound of the margin over all of the box; None when some of it has none.
    margin_found : float
        Smallest margin met.
    lower, upper : numpy.ndarray
        Bounds of the controls, shape (nu,), N and N m; infinite where there are none, empty when
        no speeds were stated.
    limits : numpy.ndarray or None
        Limits of the controls, shape (nu, 2); None without.
    names, units : tuple of str
        Names and units of the controls.
    demand : dict of str to list of float
        Bounds of speeds, commanded acceleration and errors, as stated.
    boxes : numpy.ndarray
        Boxes that make up the whole, shape (b, 2, k), in the order of `ranges`.
    left : numpy.ndarray
        Those of them in which what was asked for is not proved, shape (l, 2, k).
    tested : int
        Boxes looked at.
    counterexample : OperatingCounterexample or None
        Given when the status is REFUTED.
    law : callable or None
        What `save` writes of the law; with True also what judges a state.
    """

    status: Status
    reason: str
    name: str
    ranges: dict[str, tuple[float, float]]
    least: float
    margin: float | None
    margin_found: float
    lower: np.ndarray
    upper: np.ndarray
    limits: np.ndarray | None
    names: tuple[str, ...]
    units: tuple[str, ...]
    demand: dict[str, list[float]]
    boxes: np.ndarray
    left: np.ndarray
    tested: int
    counterexample: OperatingCounterexample | None = None
    law: Callable[[bool], dict[str, Any] | None] | None = field(default=None, repr=False)

    @property
    def torque(self) -> np.ndarray:
        """Largest size of each control, proved, shape (nu,), N and N m."""
        return np.asarray(np.maximum(np.abs(self.lower), np.abs(self.upper)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the statement with its boxes.

        Parameters
        ----------
        path : str or os.PathLike
            File to write, JSON. It has the law as instructions, so that `recheck` can verify
            what was proved by arithmetic of its own.

        Raises
        ------
        DescriptionError
            If the file cannot be written.
        """
        numbers = {name: _finite(getattr(self, name)) for name in ("lower", "upper", "limits")}
        strong = self.counterexample is not None and self.counterexample.margin is None
        document = {
            "format": OPERATING,
            "version": 1,
            "versions": program_versions(),
            "status": self.status.name,
            "reason": self.reason,
            "robot": self.name,
            "ranges": {name: list(ends) for name, ends in self.ranges.items()},
            "least": self.least,
            "margin": self.margin,
            "controls": list(self.names),
            "units": list(self.units),
            **numbers,
            "demand": self.demand,
            "tested": self.tested,
            "boxes": self.boxes.tolist(),
            "left": self.left.tolist(),
            "counterexample": self.counterexample and self.counterexample.as_dict(),
            "estimates_not_proved": {"margin_found": _finite(self.margin_found)},
            "law": None if self.law is None else self.law(strong),
        }
        document["hash"] = document_hash(document)
        write_document(path, document)

    @property
    def margin_status(self) -> Status:
        """Whether the margin alone is above `least` in all of the box."""
        if self.counterexample is not None and self.counterexample.margin is not None:
            return Status.REFUTED
        proved = self.margin is not None and self.margin > self.least
        return Status.PROVED if proved else Status.UNDECIDED

    @property
    def control_statuses(self) -> tuple[Status, ...]:
        """Whether each control alone is bounded, and by its limits if it has any, shape (nu,)."""
        found = []
        for i, (low, high) in enumerate(zip(self.lower, self.upper, strict=True)):
            inside = math.isfinite(low) and math.isfinite(high)
            if self.limits is not None:
                inside = inside and self.limits[i, 0] <= low and high <= self.limits[i, 1]
            strong = self.counterexample is not None and self.counterexample.control
            refuted = strong == self.names[i]
            found.append(
                Status.PROVED if inside else Status.REFUTED if refuted else Status.UNDECIDED
            )
        return tuple(found)

    def __str__(self) -> str:
        asked = f"asked for more than {self.least:.3g}"
        lines = [f"{self.status.name}. {self.reason}"]
        if self.margin is not None:
            lines.append(f"Margin at least {self.margin:.4g} ({asked}); {len(self.boxes)} boxes.")
        elif len(self.boxes):
            lines.append(f"No margin is proved ({asked}); {len(self.boxes)} boxes.")
        else:
            lines.append(f"Margin: {asked}.")
        lines.append(f"Smallest margin at samples {self.margin_found:.4g}: {ESTIMATE}.")
        if not self.names:
            lines.append("Torques: not bounded, as no speeds were stated.")
        # A state that refutes is looked for before bounds are.
        for i, low in enumerate(self.lower if len(self.boxes) else ()):
            limit = ""
            if self.limits is not None:
                limit = f", limits {self.limits[i, 0]:.4g} to {self.limits[i, 1]:.4g}"
            bounds = range_text(low, self.upper[i])
            unit = f" {self.units[i]}" if math.isfinite(low) else ""
            lines.append(f"- {self.names[i]}: {bounds}{unit}{limit}")
        return "\n".join(lines)


def range_text(low: float, high: float) -> str:
    """Write down the bounds of a control.

    Parameters
    ----------
    low, high : float
        Lower and upper bound; infinite when nothing is proved.

    Returns
    -------
    str
        Of four digits. The smallest floats, which bound a zero outwards, are written as zero.
    """
    if not (math.isfinite(low) and math.isfinite(high)):
        return "no bound"
    low, high = (0.0 if abs(value) < _NOTHING else float(value) for value in (low, high))
    return f"{low:.4g} to {high:.4g}"


def operating_bounds(
    servo: Servo,
    ranges: Mapping[str, Any],
    speeds: ArrayLike | Mapping[str, float] | None = None,
    acceleration: ArrayLike = 0.0,
    pose_error: ArrayLike = 0.0,
    velocity_error: ArrayLike = 0.0,
    distance: float | None = None,
    limits: Any = None,
    least: float | None = None,
    tolerance: float = 0.2,
    budget: int = 2000,
    progress: bool | Callable[[float], Any] = False,
) -> OperatingCertificate:
    """Prove that the law exists, and what its motors need, in a box of configurations.

    Parameters
    ----------
    servo : Servo
        A servo that takes shape velocities.
    ranges : mapping of str to pair of float
        Lower and upper end of each joint coordinate that the law depends on, by name of the
        body, rad and m; a list of pairs for a joint of several coordinates. The place of a base
        that leaves the law alone, and the angles of round wheels, need none.
    speeds : float, array_like or mapping, optional
        Largest size of each shape velocity, rad/s and m/s. Without it only the margin is
        bounded, not the torque.
    acceleration : float or array_like
        Largest size of each component of the demanded acceleration, shape (size,), m/s^2 and
        rad/s^2. This and the errors need `speeds` beside them.
    pose_error, velocity_error : float or array_like
        Largest sizes of the components of x and ve, shape (size,), m and rad, m/s and rad/s:
        zero on the reference, or from `error_bounds`.
    distance : float, optional
        Distance of the base from the inertial origin, m; needed for a floating robot with linear
        momentum, whose angular momentum about the base changes with it.
    limits : float, sequence or mapping, optional
        Limits of the controls, as the `torque_limits` of a servo; default those of the servo.
    least : float, optional
        Margin that is wanted; default that below which the servo gives no torque or is damped.
        With `damped_below` and speeds never less than that.
    tolerance : float
        How sharp the bounds are to be, as a part of the largest that are met.
    budget : int
        Boxes that may be looked at.
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
        stated without speeds, the law measures all velocities, or torque is asked for where there
        are more controls than outputs.
    UnknownNameError
        If a joint, speed or control does not exist.
    ShapeError, NonFiniteError
        If numbers do not fit or are not finite.
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
    _check_servo(servo, where)
    named = _read_ranges(servo, ranges, where)
    if not 0.0 < scalar(tolerance, f"{where}, `tolerance`") <= 10.0:
        raise _option(where, "tolerance", "above 0 and at most 10", tolerance)
    if isinstance(budget, bool) or not isinstance(budget, (int, np.integer)) or budget < 1:
        raise _option(where, "budget", "a number of boxes, at least 1", budget)
    wanted = _least(servo) if least is None else scalar(least, f"{where}, `least`")
    if not wanted >= 0.0:
        raise _option(where, "least", "a margin, not negative", least)
    if speeds is not None and servo.damped_below is not None:
        wanted = max(wanted, _least(servo))  # the torque is another one where it is damped
    demand, largest, bounds = None, None, None
    stated: dict[str, np.ndarray] = {}
    parts = {
        "acceleration": _read_sizes(servo, acceleration, "acceleration", where),
        "pose_error": _read_sizes(servo, pose_error, "pose_error", where),
        "velocity_error": _read_sizes(servo, velocity_error, "velocity_error", where),
    }
    if speeds is not None:
        check_square(servo, f"{where}, torque")
        if servo.ns != servo.nu:
            raise OutputError(
                f"{where}, torque",
                expected="as many controls as shape velocities",
                came=f"{servo.nu} and {servo.ns}",
                cure="Leave the speeds out: the margin alone can be bounded.",
            )
        own = _read_speeds(servo, speeds, where)
        largest = np.concatenate([own, _body_momentum(servo, distance, where)])
        demand = _demand(servo, **parts, where=where)
        stated = {"speeds": own, **parts}
        given = servo.torque_limits if limits is None else limits
        if given is not None:
            bounds = np.asarray(read_limits(f"{where}, `limits`", given, servo.model.control_names))
    elif limits is not None:
        raise OutputError(
            f"{where}, `limits`",
            expected="speeds beside the limits",
            came="limits alone",
            cure="State how fast the joints may turn: speeds=0.5.",
        )
    else:
        for name, sizes in parts.items():
            if sizes.any():
                raise OutputError(
                    f"{where}, `{name}`",
                    expected="`speeds` beside it, as only then the torque is bounded",
                    came=f"`{name}` alone",
                    cure="State how fast the joints may turn, such as speeds=0.5, or leave it out "
                    "to bound the margin alone.",
                )
    graph = Graph(servo, tuple(named), largest, where)
    labels = _coordinate_names(servo)
    missing = [labels[i] for i in graph.coordinates if i not in named]
    if missing:
        raise OutputError(
            f"{where}, `ranges`",
            expected="a range for each coordinate that the law depends on",
            came=f"none for {', '.join(missing)}",
            cure="Add its lower and upper end; equal ends keep it where it is.",
        )
    # Ranges of coordinates that change nothing change nothing.
    search = _Search(servo, graph, demand, bounds, stated, float(wanted), tolerance, int(budget))
    search.law = partial(law_document, servo, graph, _statement(servo, graph, distance))
    ends = np.array([named[i] for i in graph.coordinates], dtype=float).reshape(-1, 2)
    with _reporting(progress) as report:
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
        """Cut the box until all parts are good, something is refuted or the budget is spent."""
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
            # What counts as sharp changes with what is met: the key may be out of date.
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
        """By how much the bounds of a box are too loose, as a part of what they should be."""
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
            # Where the bound at one place is beyond the limit, no cut will help.
            goals = np.where(self.needed < ends, np.minimum(goals, ends), goals)
        if not np.isfinite(both).all():
            return math.inf
        return max(excess, float(((both - goals) / np.maximum(room, 1e-300)).max()))

    def _widest(self, found: Bounds, low: np.ndarray, high: np.ndarray) -> int:
        """Coordinate whose width has most to do with how loose the bounds are."""
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
        """Sum up."""
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
            reason = "The decoupling matrix is regular in all of the box"
            reason += " and the torque is bounded." if nu else "; torques are not bounded."
            if self.limits is not None:
                reason = reason[:-1] + " by its limits."
        else:
            status = Status.UNDECIDED
            reason = f"{len(left)} of {len(self.leaves)} boxes are left{self._lacks()}"
            if self.tested + 2 > self.budget:
                reason += f" {self.tested} were looked at; a larger budget or a smaller box may do."
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
        """What is not proved in boxes that are left, and in how many of them."""
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
    """What a file has to say for its law to be made again."""
    labels = _coordinate_names(servo)
    return {
        "names": [labels[i] for i in graph.coordinates],
        "places": list(graph.coordinates),
        "distance": None if distance is None or not len(graph.speeds) else float(distance),
        "lowest": 0.0 if servo.damped_below is None or not len(graph.speeds) else _least(servo),
    }


def _law_again(servo: Servo, law: dict[str, Any]) -> dict[str, Any] | None:
    """Law of a servo as a file has it that is about the same places, speeds and distance."""
    if not isinstance(servo, Servo) or servo.measured:
        return None
    flint()
    where = "recheck"
    try:
        largest = np.array(law["w"], dtype=float) if law["w"] else None
        if largest is not None:
            moved = _body_momentum(servo, law["distance"], where)
            largest[servo.ns :] = moved
        graph = Graph(servo, law["places"], largest, where)
        stated = _statement(servo, graph, law["distance"])
    except (ConcurError, ValueError, IndexError):
        return None  # no law of this servo
    return law_document(servo, graph, stated, "state" in law["programs"])


operating_laws.append(_law_again)


def _corners(size: int) -> np.ndarray:
    """Some corners of a box, as choices of its upper ends."""
    if size <= 4:
        return np.array(list(product((False, True), repeat=size)), dtype=bool)
    return np.random.default_rng(6).random((16, size)) < 0.5


def _check_servo(servo: object, where: str) -> None:
    if not isinstance(servo, Servo):
        raise OutputError(
            f"{where}, `servo`",
            expected="a Servo",
            came=type(servo).__name__,
            cure="Bounds are for the servo that drives the robot.",
        )
    if servo.measured:
        raise OutputError(
            where,
            expected="a law that takes shape velocities",
            came="one that measures all velocities",
            cure="Take servo.unmeasured.",
        )


def _option(where: str, name: str, expected: str, came: object) -> OutputError:
    return OutputError(
        f"{where}, `{name}`", expected=expected, came=f"{came!r:.40}", cure="Leave it out."
    )


def _least(servo: Servo) -> float:
    """Margin above which the law is neither refused nor damped."""
    if servo.damped_below is None:
        return servo.singular_margin
    # What is compared with it is smaller than the margin by this factor at most.
    least = max(servo.singular_margin, servo.damped_below)
    return float(least * servo.size**0.25 * (1 + 1e-12))


def _coordinate_names(servo: Servo) -> dict[int, str]:
    """Name of each coordinate of q: the body's, with a number if it has several."""
    robot, names = servo.model.robot, {}
    for body in robot.bodies:
        places = range(*robot.q_slice(body.name).indices(robot.nq))
        for k, i in enumerate(places):
            names[i] = body.name if len(places) == 1 else f"{body.name}[{k}]"
    return names


def _read_ranges(servo: Servo, ranges: object, where: str) -> dict[int, tuple[float, float]]:
    """Ends of the range of each coordinate that is named, by its index in q."""
    robot = servo.model.robot
    if not isinstance(ranges, Mapping):
        raise OutputError(
            f"{where}, `ranges`",
            expected="a mapping from bodies to ranges of their joints",
            came=f"{type(ranges).__name__} {ranges!r:.40}",
            cure='Write {"forearm": (-1.7, -1.5)}.',
        )
    found: dict[int, tuple[float, float]] = {}
    bodies = [body.name for body in robot.bodies]
    for name, value in ranges.items():
        here = f"{where}, range of `{name}`"
        if name not in bodies:
            raise UnknownNameError(
                here,
                expected=f"a body ({', '.join(bodies)})",
                came=f"`{name}`",
                cure="Correct the name or remove the entry.",
                name=str(name),
            )
        places = range(*robot.q_slice(name).indices(robot.nq))
        ends = as_floats(value, here)
        if len(places) == 1 and ends.shape == (2,):
            ends = ends.reshape(1, 2)
        if ends.shape != (len(places), 2):
            raise shape_error(here, (2,) if len(places) == 1 else (len(places), 2), ends.shape)
        if not np.isfinite(ends).all():
            raise nonfinite_error(here, ends)
        if np.abs(ends).max() > _FARTHEST:
            raise OutputError(
                here,
                expected=f"ends of size at most {_FARTHEST:g}",
                came=f"{np.abs(ends).max():.6g}",
                cure="A turn is 6.28 rad: a range of one turn covers all angles.",
            )
        for i, (low, high) in zip(places, ends.tolist(), strict=True):
            if low > high:
                raise OutputError(
                    here,
                    expected="a lower and an upper end",
                    came=f"({low:g}, {high:g})",
                    cure="Exchange them.",
                )
            found[i] = (low, high)
    return found


def _read_speeds(servo: Servo, speeds: object, where: str) -> np.ndarray:
    names = servo.model.shape_names
    here = f"{where}, `speeds`"
    if isinstance(speeds, Mapping):
        unknown = [name for name in speeds if name not in names]
        lost = [name for name in names if name not in speeds]
        if unknown or lost:
            wrong = unknown[0] if unknown else lost[0]
            raise UnknownNameError(
                here,
                expected=f"each shape velocity ({', '.join(names)})",
                came=f"`{wrong}`" if unknown else f"none for `{wrong}`",
                cure="Name them all, or give one number.",
                name=str(wrong),
            )
        speeds = [speeds[name] for name in names]
    return _sizes_of(speeds, len(names), here)


def _read_sizes(servo: Servo, value: object, name: str, where: str) -> np.ndarray:
    return _sizes_of(value, servo.size, f"{where}, `{name}`")


def _sizes_of(value: object, count: int, where: str) -> np.ndarray:
    sizes = as_floats(value, where)
    if sizes.shape not in ((), (count,)):
        raise shape_error(where, (count,), sizes.shape)
    if not np.isfinite(sizes).all():
        raise nonfinite_error(where, sizes)
    if (sizes < 0.0).any():
        raise OutputError(
            where,
            expected="sizes, not negative",
            came=f"{float(sizes.min()):g}",
            cure="State the largest size in both directions.",
        )
    return np.array(np.broadcast_to(sizes, (count,)), dtype=float)


def _body_momentum(servo: Servo, distance: float | None, where: str) -> np.ndarray:
    """Bounds of the momentum's components in the base's axes, wherever it is."""
    count = momentum_size(servo, where)
    model = servo.model
    if not count:
        return np.zeros(0)
    linear, angular = np.linalg.norm(model.momentum[:3]), np.linalg.norm(model.momentum[3:])
    if linear > 0.0 and distance is None:
        raise OutputError(
            f"{where}, `distance`",
            expected="how far the base may be from the inertial origin, m",
            came="no value, with linear momentum",
            cure="Its angular momentum about the base grows with it: state distance=2.0.",
        )
    reach = 0.0 if distance is None else scalar(distance, f"{where}, `distance`")
    if reach < 0.0:
        raise _option(where, "distance", "not negative", distance)
    basis = model.robot.base.joint.basis
    # Dual to the base's velocities: a component is a column of the basis times the momentum.
    bounds = np.linalg.norm(basis[:3], axis=0) * linear
    bounds = bounds + np.linalg.norm(basis[3:], axis=0) * (angular + reach * linear)
    return np.asarray(bounds * (1 + 1e-12))


def _demand(
    servo: Servo,
    acceleration: np.ndarray,
    pose_error: np.ndarray,
    velocity_error: np.ndarray,
    where: str,
) -> Demand:
    """Bound the command: feedback(x, ve) + Ad a + ad(v) ve, v the output velocity."""
    group, size = servo.error_dynamics.group, servo.size
    x, ve, a = (ca.SX.sym(name, size) for name in ("x", "ve", "a"))
    command = servo.error_dynamics.feedback(x, ve) + group.transport(x) @ a
    walker = Walker(ca.Function("command", [x, ve, a], [ca.densify(command)], {"cse": True}))
    sides = [
        [interval(-float(v), float(v)) for v in part]
        for part in (pose_error, velocity_error, acceleration)
    ]
    with flint().ctx.workprec(PRECISION):
        largest = np.array([above(abs(v)) for v in walker(sides)[0].entries()])
    if not np.isfinite(largest).all():
        raise OutputError(
            f"{where}, `pose_error`",
            expected="rotation errors for which the command can be bounded",
            came=f"up to {pose_error.max():g}",
            cure="State smaller errors.",
        )
    carried = np.zeros((size, size))
    for k, unit in enumerate(np.eye(size)):
        bracket = np.abs(np.array(ca.DM(ca.SX(group.ad(ca.SX(ca.DM(unit)))))))
        carried[:, k] = bracket @ velocity_error
    return Demand(largest, carried * (1 + 1e-13))


def _finite(values: Any) -> Any:
    """Values for JSON, which knows neither NaN nor infinity."""
    if values is None:
        return None
    if isinstance(values, np.ndarray):
        return [_finite(value) for value in values]
    return float(values) if math.isfinite(values) else None
