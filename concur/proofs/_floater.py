"""Proof of a task of a floating robot: block by block in time.

Order of sets (`task-proof`, section 0): a candidate D of the disturbance gives the tube of errors
and base pose, that the joint angles, speeds and accelerations, and these the disturbance. A block
is closed if the disturbance that is found is below D in each of its segments. No motion leaves the
tubes then (first exit), and every bound over a segment is one for all motions of the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from concur._polynomials import Floats
from concur.certify import Status
from concur.control import Servo
from concur.outputs.references import Reference
from concur.proofs._base_pose import BLOCK, PARTS, Declared, Tube
from concur.proofs._bound import Bound, bounds_of
from concur.proofs._floater_quantities import Found, Quantities
from concur.proofs._floating import Floater, refusal
from concur.proofs._proof import TaskProof
from concur.proofs._quantity import quantities_of
from concur.proofs._statement import Statement
from concur.proofs._symbols import Symbols

LENGTH = 0.0125
"""Longest segment (s)."""

ROUNDS = 6
"""Candidates of the disturbance that are tried in a block."""

NEVER, NEVER_OF_MASS = 1e-6, 1e-8
"""Least candidate of the disturbance (m/s^2, rad/s^2), and of momenta and wrenches by the robot's
mass (m/s, m/s^2)."""

ROOM = 1.3
"""Factor to the candidate from bounds that follow from the tube: the checker's are larger."""

CANDIDATES = (
    ("the disturbance", "m/s^2"),
    ("the error of the linear momentum", "kg m/s"),
    ("the error of the angular momentum", "kg m^2/s"),
    ("the missing force on the base", "N"),
    ("the missing moment on the base", "N m"),
)
"""Names and units of the candidates of a block."""


class Prover:
    """March over a task.

    Parameters
    ----------
    servo, reference, duration, q0, s0
        As of `concur.simulate`.
    statement : Statement
        Starts, imperfections and limits.
    """

    def __init__(
        self,
        servo: Servo,
        reference: Reference,
        duration: float,
        q0: ArrayLike,
        s0: ArrayLike,
        statement: Statement,
    ) -> None:
        wrong = statement.masses > 0.0 or any(statement.momentum_error)
        self.statement, self.robot = statement, Floater(servo, Symbols(wrong))
        if statement.reading is not None or statement.added:
            raise refusal(
                self.robot.where,
                "no distances, expressions, loads or errors of the measured state",
                "others",
            )
        sizes = [len(part) for part in (statement.place, statement.speed, statement.push)]
        if sizes[:2] != [1, 1] or sizes[2] > 1 or len(statement.torque_error) not in (0, 6):
            raise refusal(
                self.robot.where,
                "one entry of `place`, `speed` and `push`, and six or none of `torque_error`",
                f"{sizes} and {len(statement.torque_error)}",
            )
        steps = int(np.ceil(duration / (LENGTH * PARTS) - 1e-9))
        self.count, self.length = steps * PARTS, duration / (steps * PARTS)
        self.declared = Declared(
            self.robot,
            reference,
            np.asarray(q0, dtype=float),
            np.asarray(s0, dtype=float),
            self.length,
            self.count,
        )
        self.quantities = Quantities(self.robot)
        mass = sum(body.inertia.mass for body in servo.model.robot.bodies)
        self.least: Floats = np.array([NEVER, *[NEVER_OF_MASS * mass] * 4])
        start = np.array([statement.place[0], statement.heading, statement.speed[0]])
        self.tube: Tube = self.declared.tube(start)
        self.found: list[Found] = []
        self.sources: list[dict[str, Floats]] = []
        self.disturbance = np.zeros(self.count)

    def march(self, progress: Callable[[int, int], None] | None = None) -> tuple[str, float]:
        """Close all blocks; what fails, and when (s), else an empty text."""
        held = self.least
        for first in range(0, self.count, BLOCK):
            some = np.arange(first, min(first + BLOCK, self.count))
            fault, largest = self._block(some, held)
            if fault:
                return fault, first * self.length
            held = largest
            if progress:
                progress(int(some[-1]) + 1, self.count)
        return "", 0.0

    def _block(self, some: np.ndarray, held: Floats) -> tuple[str, Floats]:
        """Close a block; what fails, and candidates by its last segment.

        Candidates are |d|, and linear and angular errors e of the momentum and wrenches w.
        """
        demand = self.declared.demand.take(some)
        candidate = np.repeat(held[:, None], len(some), axis=1)
        names: dict[str, Floats] = {}
        for _ in range(ROUNDS):
            state = self.tube.close(some, candidate[0], candidate[1:3])
            if isinstance(state, str):
                return state + (f"; {_largest(names)}" if names else ""), held
            bounds = self.quantities(demand, state, candidate[0], candidate[3:])
            names = bounds.disturbances(self.statement, self.found, self.length)
            total = np.vstack([sum(names.values()), *bounds.wrong(self.statement)])
            wanted = ROOM * total + self.least[:, None]
            # Pushes and torque errors do not follow from the tube.
            wanted[0] -= (ROOM - 1.0) * (names["push"] + names["torque errors"] / 2)
            if not np.isfinite(total).all():
                return "a torque has no bound within the tube", held
            if (total < candidate).all():
                self.tube.keep(state)
                self.found.append(bounds)
                self.sources.append(names)
                self.disturbance[some] = candidate[0]
                return "", wanted[:, -1]
            tried = candidate
            candidate = np.where(total < candidate, candidate, wanted)
        row, k = np.unravel_index(int(np.argmax(total / tried)), total.shape)
        name, unit = CANDIDATES[row]
        fault = (
            f"{name} grows with the tube: it reaches {total[row, k]:.3g} {unit} where "
            f"{tried[row, k]:.3g} {unit} was assumed; {_largest(names)}"
        )
        return fault, held


def _largest(names: dict[str, Floats]) -> str:
    """The largest source of disturbances, with numbers."""
    worst = max(names, key=lambda name: float(names[name].max()))
    k = int(np.argmax(names[worst]))
    total = float(sum(values[k] for values in names.values()))
    own = f"{float(names[worst][k]):.3g} of {total:.3g} m/s^2"
    return f"the largest disturbance is {worst}, {own}"


@np.errstate(all="ignore")
def proof_of(case: Prover, progress: Callable[[int, int], None] | None = None) -> TaskProof:
    """Verdict about the statement of a declared motion."""
    fault, time = case.march(progress)
    if fault:
        own = "a shorter period or delay, " if "period and delay" in fault else ""
        if case.robot.symbols.wrong and not case.robot.measured:
            own += "a law that measures the base (`use_measured_velocity`), "
        cure = f"Take {own}a nearer start, a shorter duration, a slower reference or calmer gains."
        return _result(case, Status.UNDECIDED, f"Not shown from {time:.2f} s on: {fault}", cure)
    bounds = _bounds(case)
    broken = [str(bound) for bound in bounds if not bound.kept]
    if broken:
        cure = "Take a nearer start, a slower reference, calmer gains or wider limits."
        return _result(case, Status.UNDECIDED, "Not shown: " + "; ".join(broken), cure, bounds)
    return _result(case, Status.UNVERIFIED, "", "", bounds)


def refuted(case: Prover, reason: str) -> TaskProof:
    """Verdict about a statement with a counterexample: the reason."""
    cure = "Widen the limit, or change the motion or the gains."
    return _result(case, Status.REFUTED, reason, cure)


def _result(
    case: Prover, status: Status, reason: str, cure: str, bounds: Sequence[Bound] = ()
) -> TaskProof:
    """Verdict, with what is shown of the motion."""
    done = sum(one.held.size for one in case.found)
    sources = {
        name: np.concatenate([part[name] for part in case.sources])[None]
        for name in (case.sources[0] if case.sources else ())
    }
    x, eta, ve = np.where(np.arange(case.count) < done, case.tube.radii, np.inf)
    return TaskProof(
        status,
        reason,
        cure,
        case.statement,
        tuple(bounds),
        np.asarray(np.arange(done) * case.length, dtype=np.float64),
        sources,
        x[None],
        ve[None],
        eta,
        done,
        case.tube.growth,
        case.disturbance[None, :done],
        (),
        0.0,
        case.length,
        np.arange(done),
        "base pose",
    )


def _bounds(case: Prover) -> tuple[Bound, ...]:
    """Bounds of all quantities with their limits."""
    servo = case.robot.servo
    names = ("torque", "speed", "low", "high", "margin", "pivot", "corridor")
    rows = [
        np.concatenate([np.atleast_2d(getattr(part, name)) for part in case.found], axis=-1)
        for name in names
    ]
    limits = case.statement.limits | {("pivot", "of the law"): servo.margins.refused_below}
    made = quantities_of(servo, list(servo.model.shape_names))
    times = np.asarray(np.arange(case.count) * case.length, dtype=np.float64)
    return bounds_of(made, np.vstack(rows), limits, times)
