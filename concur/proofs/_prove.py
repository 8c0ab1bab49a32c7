"""Proof of a task: error tube, heading, arm angles, speeds, quantities, and the circle closed.

Order of sets (`task-proof`, section 0). A candidate bound D(t) of the disturbance gives the tube of
errors; the tube gives the wall of the heading; both give the cells; bounds over the cells give the
disturbance. If that is strictly below D in every segment, no motion leaves the tube (first exit),
and every bound over the cells is one for all motions of the statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from concur._polynomials import Floats
from concur.certify import Status
from concur.control import Servo
from concur.errors import OutputError
from concur.outputs.references import Reference
from concur.proofs._added import Added
from concur.proofs._bound import Bound, bounds_of
from concur.proofs._cells import MOST, Lattice, reached
from concur.proofs._centre import Centre
from concur.proofs._heading import Heading
from concur.proofs._imperfections import JUMPS, disturbances
from concur.proofs._motion import Motion
from concur.proofs._proof import TaskProof
from concur.proofs._quantities import Radii, quantities
from concur.proofs._statement import Statement
from concur.proofs._wheeled import Robot

STEP = 0.005
"""Longest step of the grid of errors and heading (s)."""

LONGEST = 0.05
"""Longest segment (s)."""

WIDE = f"a segment needs more than {MOST} cells"
"""A fault."""

SLOWER = 0.05
"""Growth of a candidate, as a share of the first disturbance of its segment, that may increase."""

CORNERS = np.array(list(itertools.product((0, 1), repeat=3)))
"""Corners of a unit cell."""

BATCH = 256
"""Cells computed side by side."""

TRIALS = 12
"""Candidates of the disturbance that are tried in a segment."""

LOOSE = 0.12
"""Share by which a disturbance may exceed the largest one without remainders in whole cells."""

MINOR = 0.04
"""The same as a share of the larger one of both outputs."""

LEVELS = 2
"""How often a cell is halved at most."""

HEADROOM = 1.1
"""Factor from the disturbance that was found to the next candidate."""

SLACK = 1.01
"""Factor by which a candidate exceeds what is found: another order of evaluation confirms it."""

ROOM = 1.1
"""The same for ways of what the law reads; they hardly change the bounds."""

LEAST = 1e-4
"""Candidate where a statement has no imperfections (m/s^2): what is found must be below it."""


@dataclass(eq=False)
class March:
    """Results from the start to a step: candidates, largest values and sources by segment.

    `disturbance` has a column for each step, the others one for each segment; `room` (2, 2) are the
    ways of x and ve of both outputs for which wrong readings have room.
    """

    disturbance: Floats
    leaves: list[np.ndarray]
    largest: list[dict[str, Floats]]
    sources: list[dict[str, Floats]]
    x: Floats
    ve: Floats
    wall: Floats
    fault: str = ""
    room: list[Floats] = field(default_factory=list)


class Prover:
    """The declared motion, and bounds over its segments."""

    def __init__(
        self, servo: Servo, reference: Reference, duration: float, q0: ArrayLike, s0: ArrayLike
    ) -> None:
        self.robot = Robot(servo)
        self.q0, s0 = np.asarray(q0, dtype=float), np.asarray(s0, dtype=float)
        motion = Motion(reference, self.robot.where)
        sample = reference(0.0)
        x, ve = servo.errors(self.q0, s0, sample.flat_pose, sample.twist)
        self.start = np.array([x, ve])
        self.count, self.step = _grid(duration, motion.pieces.knots, self.robot.where)
        self.centre = Centre(motion, self.robot.channels, self.start, self.step, self.count)
        self.heading: Heading = self.centre.heading(float(self.q0[2]), self.robot.arm_length)
        knots = motion.pieces.knots
        inside = knots[(knots > 0.0) & (knots < duration)]
        self.jumps = motion.jumps(inside)
        self.knots = np.round(inside / self.step).astype(int)
        self.first, self.last = self._segments()
        self.angles = self._angles()

    def _segments(self) -> tuple[np.ndarray, np.ndarray]:
        """First and last steps of segments; knots are ends, and short ones follow jumps."""
        after = self.knots[self.jumps.any(axis=0)] + 1
        most = max(1, int(LONGEST / self.step))
        ends = np.unique([0, *self.knots, *after[after < self.count], self.count]).tolist()
        parts = [
            np.round(np.linspace(i, j, -(-(j - i) // most) + 1)).astype(int)
            for i, j in itertools.pairwise(ends)
        ]
        first = np.unique(np.concatenate(parts))
        return first[:-1], first[1:]

    def _angles(self) -> Floats:
        """Angles of the arm in the declared motion near the middle of each segment, (3, n)."""
        still = np.zeros(len(self.first))
        nominal = self.centre.nominal(self.heading, self.first, self.last, still)
        places = np.array([m.c for m in nominal.relative])
        angles, now = np.empty_like(places), self.q0[self.robot.arm][:, None]
        for k in range(len(still)):
            now = self.robot.equations.newton(now, places[:, k : k + 1])[0]
            angles[:, k] = now[:, 0]
        return angles

    def tube(self, statement: Statement, disturbance: Floats) -> tuple[Floats, Floats, Floats]:
        """Radii of x and ve (2, k) and of the heading (k,) on each step, for |d| (2, k).

        Jumps of the reference come in addition.
        """
        areas = self._areas(statement)[:, : disturbance.shape[1]]
        tubes = [
            channel.tube(
                statement.place[k], statement.speed[k], disturbance[k], self.step, areas[k]
            )
            for k, channel in enumerate(self.robot.channels)
        ]
        x, ve = np.array([t[0] for t in tubes]), np.array([t[1] for t in tubes])
        return x, ve, self.heading.wall(statement.heading, ve[0])

    def _areas(self, statement: Statement) -> Floats:
        """Integrals over each step of what jumps of the reference add to |d|, (2, steps)."""
        found, hold = np.zeros((2, self.count)), (statement.period + statement.delay) * (1 + 1e-9)
        for knot, jump in zip(self.knots.tolist(), self.jumps.T, strict=True):
            times = np.clip(hold - self.step * np.arange(self.count - knot), 0.0, self.step)
            found[:, knot:] += jump[:, None] * times
        return found

    def _jump(self, statement: Statement, k: int) -> Floats:
        """Jumps of the reference from which torques are still held in a segment, (2,)."""
        hold = (statement.period + statement.delay) * (1 + 1e-9)
        late = self.knots * self.step + hold >= self.first[k] * self.step
        return np.asarray(
            self.jumps[:, late & (self.knots < self.last[k]) & (hold > 0.0)].sum(axis=1)
        )

    def march(
        self,
        statement: Statement,
        edge: float,
        progress: Callable[[int, int], None] | None = None,
    ) -> March:
        """Find a disturbance for each segment that its own tube does not exceed, in order of time.

        Tube and wall at a time depend on earlier disturbances only, so no segment is computed
        again when a later one is.
        """
        lattices = stack_of_lattices(self.robot, edge, statement, bool(self.jumps.any()))
        n = len(self.first)
        none = np.zeros((2, 0))
        found = March(none, [], [], [], none, none, none[0])
        wanted, room = np.full(2, LEAST), np.zeros((2, 2))
        for k in range(n):
            steps, jump = int(self.last[k] - self.first[k]), self._jump(statement, k)
            grown, scale = np.inf, None
            for trial in range(TRIALS):
                d = np.hstack([found.disturbance, np.repeat(wanted[:, None], steps, axis=1)])
                tube = self.tube(statement, d)
                tried = replace(found, x=tube[0], ve=tube[1], wall=tube[2])
                if not np.isfinite(tube[2]).all():
                    return replace(tried, fault="heading")
                largest, leaves, fault = self.segment(statement, k, tube, wanted, lattices, room)
                if fault:
                    return replace(tried, fault=fault)
                # Held torques may come from segments before.
                late = [*found.largest[self._reach(statement, k) :], largest]
                sources = {
                    name: part[:, -1]
                    for name, part in disturbances(statement, _stacked(late)).items()
                }
                own = np.asarray(sum(sources.values()))
                if jump.any():
                    sources[JUMPS] = sources[JUMPS] + jump
                moved = largest.get("moved", np.full(4, -1.0)).reshape(2, 2)
                if (SLACK * own < wanted).all() and (moved < room).all():
                    break
                scale = own if scale is None else scale
                before, wanted = wanted, np.maximum(wanted, HEADROOM * own + LEAST)
                growth = float(((wanted - before) / (scale + LEAST)).max())
                if trial > 2 and growth >= max(grown, SLOWER):
                    # Candidates that converge grow by less and less.
                    return replace(tried, sources=[*found.sources, sources], fault="disturbance")
                grown = growth
                room = np.maximum(room, ROOM * moved + LEAST)
            else:
                return replace(tried, sources=[*found.sources, sources], fault="disturbance")
            found.leaves.append(leaves)
            found.room.append(room)
            found.largest.append(largest)
            found.sources.append(sources)
            found = replace(found, disturbance=d, x=tube[0], ve=tube[1], wall=tube[2])
            wanted = HEADROOM * own + LEAST
            if progress:
                progress(k + 1, n)
        return found

    def _reach(self, statement: Statement, k: int) -> int:
        """First segment that torques of a segment may come from."""
        hold = (statement.period + statement.delay) * (1 + 1e-9)
        begin = self.first[k] * self.step - hold
        return min(k, int(np.searchsorted(self.last * self.step, begin, side="right")))

    @np.errstate(all="ignore")
    def segment(
        self,
        statement: Statement,
        k: int,
        tube: tuple[Floats, Floats, Floats],
        disturbance: Floats,
        lattices: list[Lattice],
        room: Floats | None = None,
    ) -> tuple[dict[str, Floats], np.ndarray, str]:
        """Largest values over the cells of a segment, and the cells (m, 4) with level; or a fault.

        `lattices` are those of the cells and of their halves; `disturbance` (2,) bounds |d| without
        jumps of the reference. The cells also contain what the law reads, if errors of the measured
        state move x and ve of both outputs by at most `room` (2, 2).
        """
        here = slice(int(self.first[k]), int(self.last[k]))
        read = np.zeros((2, 2)) if room is None else room
        x, ve = (
            part[:, here].max(axis=1, keepdims=True) + own[:, None]
            for part, own in zip(tube[:2], read, strict=True)
        )
        jump = self._jump(statement, k)[:, None]
        radii = Radii(x, ve, disturbance[:, None] + jump, jump)
        wall = tube[2][here].max(keepdims=True)
        wall = wall + (statement.reading.heading if statement.reading else 0.0)
        nominal = self.centre.nominal(
            self.heading,
            self.first[k : k + 1],
            self.last[k : k + 1],
            wall,
            lattices[0].added.points,
        )
        # Halves only where whole cells are too near a singularity.
        for base in range(min(2, len(lattices))):
            lattice = lattices[base]
            near = reached(nominal.relative, x[:, 0], lattice.edge)
            if near is None:
                return {}, np.zeros((0, 3), dtype=int), WIDE
            cells = near
            fault = lattice.add(cells, np.repeat(self.angles[:, [k]], len(cells), axis=1))
            if not fault:
                break
        if not fault and k == 0:
            home = np.asarray(self.robot.place(self.q0[self.robot.arm])).ravel()
            fault = lattice.holds(home, self.q0[self.robot.arm])
        if fault:
            return {}, cells, fault
        largest, leaves, core = dict[str, Floats](), [], np.zeros((2, 1))
        for level in range(base, len(lattices)):
            lattice = lattices[level]
            assert lattice.arm is not None
            whole = lattice.arm.take(lattice.numbers(cells))
            parts = []
            for i in range(0, len(cells), BATCH):
                some = np.arange(i, min(i + BATCH, len(cells)))
                parts.append(
                    quantities(self.robot, whole.take(some), nominal, radii, lattice.added)
                )
            bounds = {name: np.concatenate([p[name] for p in parts], axis=-1) for name in parts[0]}
            wide = self._wide(statement, bounds, core) & (level < LEVELS)
            _gather(largest, bounds, ~wide)
            leaves.append(np.column_stack([np.full((~wide).sum(), level), cells[~wide]]))
            if not wide.any():
                break
            halves = (2 * cells[wide][:, None] + CORNERS[None]).reshape(-1, 3)
            near = reached(nominal.relative, x[:, 0], lattices[level + 1].edge, halves)
            if near is None:
                return {}, cells, WIDE
            cells = near
            if len(cells):
                fault = lattices[level + 1].add(cells, lattice.halves(cells))
            if fault or not len(cells):
                break
        return largest, np.vstack(leaves), fault

    def _wide(self, statement: Statement, bounds: dict[str, Floats], core: Floats) -> np.ndarray:
        """Cells whose halves may have better bounds that count; `core` (2, 1) keeps the largest.

        Those with a torque beyond its limit, and those with a disturbance far above the largest one
        without remainders.
        """
        period = statement.period + statement.delay
        whole = statement.masses * bounds["weights"] + period * bounds["held"]
        rest = statement.masses * bounds["weights_rest"] + period * bounds["held_rest"]
        core[:] = np.maximum(core, np.nan_to_num(whole - rest, nan=0.0).max(axis=1, keepdims=True))
        wide = ~(whole <= (1.0 + LOOSE) * core + MINOR * core.max()).all(axis=0)
        for i, name in enumerate(self.robot.servo.model.control_names):
            wide |= ~(bounds["torque"][i] <= statement.torques.get(name, np.inf))
        limits = statement.limits
        for made, values in zip(statement.added, bounds["added"], strict=True):
            wide |= ~(values <= made.sign * limits.get(made.key, made.sign * np.inf))
        return np.asarray(wide)


def stack_of_lattices(
    robot: Robot, edge: float, statement: Statement, jumps: bool = False
) -> list[Lattice]:
    """Lattices of cells and of their halves."""
    lattices = [Lattice(robot, edge, Added(robot, statement, jumps))]
    for _ in range(LEVELS):
        lattices.append(Lattice(robot, lattices[-1].edge / 2, lattices[0].added, lattices[-1]))
    return lattices


def prove(
    servo: Servo,
    reference: Reference,
    duration: float,
    q0: ArrayLike,
    s0: ArrayLike,
    statement: Statement,
    edge: float = 0.0125,
    progress: Callable[[int, int], None] | None = None,
) -> TaskProof:
    """Prove that a task keeps its limits for all starts and imperfections of a statement.

    Parameters
    ----------
    servo : Servo
        Law.
    reference : Reference
        Declared motion of the outputs.
    duration : float
        Length of the task (s).
    q0, s0 : array_like
        Declared start: configuration and shape velocities.
    statement : Statement
        Starts, imperfections and limits.
    edge : float
        Edge of the cells of the hand's position relative to the base (m).
    progress : callable, optional
        Called with the number of cells that are done and that of all.

    Returns
    -------
    TaskProof
        Verdict and bounds.

    Raises
    ------
    OutputError
        If robot, law or reference are not covered.
    """
    return proof_of(Prover(servo, reference, duration, q0, s0), statement, edge, progress)


@np.errstate(all="ignore")
def proof_of(
    prover: Prover,
    statement: Statement,
    edge: float,
    progress: Callable[[int, int], None] | None = None,
) -> TaskProof:
    """Verdict about a statement on a declared motion; arguments as for `prove`."""
    found = _still(prover, statement)
    if np.isfinite(found.wall).all():
        found = prover.march(statement, edge, progress)
    if found.fault:
        return _undecided(prover, statement, edge, found)
    return _proof(prover, statement, edge, found)


def refuted(prover: Prover, statement: Statement, edge: float, reason: str) -> TaskProof:
    """Verdict about a statement with a counterexample: the reason."""
    verdict = (Status.REFUTED, reason, "Widen the limit, or change the motion or the gains.")
    return _result(prover, statement, edge, _still(prover, statement), verdict)


def _still(prover: Prover, statement: Statement) -> March:
    """Tube and wall of the starts alone, before any segment."""
    still = np.zeros((2, prover.count))
    return March(still, [], [], [], *prover.tube(statement, still), fault="heading")


def _grid(duration: float, knots: Floats, where: str) -> tuple[int, float]:
    """Steps of a uniform grid that contains the knots."""
    count = int(np.ceil(duration / STEP - 1e-9))
    inside = knots[(knots > 0.0) & (knots < duration)]
    for n in range(count, 4 * count):
        places = inside * n / duration
        if (np.abs(places - np.round(places)) < 1e-9).all():
            return n, duration / n
    raise OutputError(
        where,
        expected="times of the reference's points with a common step",
        came=str(inside.tolist()),
        cure="Use times that are multiples of a hundredth of a second.",
    )


def _gather(largest: dict[str, Floats], bounds: dict[str, Floats], kept: np.ndarray) -> None:
    """Largest values over the cells that are kept."""
    for name, values in bounds.items():
        own = np.where(np.isnan(values), np.inf, values)[..., kept].max(axis=-1, initial=-np.inf)
        largest[name] = np.maximum(largest.get(name, own), own)


def _stacked(parts: list[dict[str, Floats]]) -> dict[str, Floats]:
    return {name: np.stack([part[name] for part in parts], axis=-1) for name in parts[0]}


def _bounds(prover: Prover, statement: Statement, sweep: March) -> tuple[Bound, ...]:
    """Bounds of all quantities with their limits."""
    robot, times = prover.robot, prover.first * prover.step
    largest = _stacked(sweep.largest)
    corridor = [_corridor(prover, k, sweep.x[k]) for k in range(len(robot.channels))]
    parts = [largest[name] for name in ("torque", "speed", "low", "high", "margin", "pivot")]
    limits = statement.limits | {("pivot", "of the law"): robot.servo.margins.refused_below}
    values = np.vstack([*parts, *corridor, largest["added"]])
    return bounds_of([*robot.quantities, *statement.added], values, limits, times)


def _corridor(prover: Prover, k: int, x: Floats) -> Floats:
    """Largest distance of an output from its reference in each segment, for its tube x (n,)."""
    channel, step = prover.robot.channels[k], prover.step
    start = prover.start[:, channel.rows]
    flow, grid = channel.largest(step, prover.count), np.arange(prover.count) * step
    own = np.linalg.norm(start, axis=1)
    path = np.linalg.norm(np.einsum("jb,jd->db", channel.flow(grid)[0], start), axis=0)
    # Between two times of the grid the centre moves by at most its speed times the step.
    moved = step * (flow[1, 0] * own[0] + flow[1, 1] * own[1])
    return np.asarray(np.maximum.reduceat(path + moved + x, prover.first))


def _proof(prover: Prover, statement: Statement, edge: float, found: March) -> TaskProof:
    bounds = _bounds(prover, statement, found)
    broken, reason = [bound for bound in bounds if not bound.kept], ""
    if broken:
        k = int(np.argmin(broken[0].slacks))
        steps = slice(int(prover.first[k]), int(prover.last[k]))
        own = {name: float(values.max()) for name, values in found.sources[k].items()}
        source = max(own, key=lambda name: own[name])
        reason = (
            f"Not shown: {'; '.join(map(str, broken))}. At {steps.start * prover.step:.2f} s the "
            f"tubes are {_radii(found.x[:, steps].max(axis=1))}, and the largest source of "
            f"disturbances, {own[source]:.3g} m/s^2, is {source}"
        )
    cure = "Take smaller cells, calmer gains, a nearer start or wider limits." if broken else ""
    status = Status.UNDECIDED if broken else Status.UNVERIFIED
    return _result(prover, statement, edge, found, (status, reason, cure), bounds)


def _undecided(prover: Prover, statement: Statement, edge: float, found: March) -> TaskProof:
    growth, time = prover.heading.growth, prover.first[len(found.leaves)] * prover.step
    if found.fault == "heading" and growth > 10.0:
        reason = (
            f"the heading is unstable: an error of it grows up to {growth:.2g}-fold in "
            f"{prover.count * prover.step:.3g} s"
        )
        cure = "Put the base's point behind the axle for reversing, or drive forward."
    elif found.fault == "heading":
        k = int(np.argmax(~np.isfinite(found.wall)))
        speed = prover.robot.arm_length * float(prover.heading.forward[0][k])
        before = found.wall[k - 1] if k else statement.heading
        reason = (
            f"the heading has no wall at {k * prover.step:.2f} s: there its error is up to "
            f"{before:.3g} rad, the base's velocity error up to {found.ve[0, k]:.3g} m/s, and the "
            f"base's speed {speed:.3g} m/s"
        )
        cure = "Start nearer to the reference, or drive faster."
    elif found.fault == "disturbance":
        last = found.sources[-1]
        k = int(np.argmax(sum(last.values())))
        parts = {name: float(values[k]) for name, values in last.items() if values[k] > 0.0}
        order = sorted(parts, key=lambda name: -parts[name])
        name = prover.robot.servo.outputs[k].name
        reason = (
            f"the disturbance grows with the tube at {time:.2f} s, of `{name}` to "
            f"{sum(parts.values()):.3g} m/s^2 in a tube of {found.x[k, -1]:.3g} m: "
            + ", ".join(f"{source} {parts[source]:.3g} m/s^2" for source in order)
        )
        cure = f"Reduce {order[0]}, or raise the gains."
    else:
        here = slice(prover.first[len(found.leaves)], None)
        reason = (
            f"{found.fault}, at {time:.2f} s in tubes of {_radii(found.x[:, here].max(axis=1))} "
            f"and with a heading within {found.wall[here].max():.3g} rad"
        )
        cure = "Start nearer to the reference, or keep the arm bent."
    return _result(prover, statement, edge, found, (Status.UNDECIDED, reason, cure))


def _radii(x: Floats) -> str:
    """Radii of the tubes of base and hand (2,), in words."""
    return " and ".join(f"{r:.3g} m" for r in x)


def _result(
    prover: Prover,
    statement: Statement,
    edge: float,
    found: March,
    verdict: tuple[Status, str, str],
    bounds: tuple[Bound, ...] = (),
) -> TaskProof:
    done = len(found.leaves)
    # Nothing is shown beyond the last segment.
    end = prover.last[done - 1] if done else 0
    shown = np.vstack([found.x, found.ve, found.wall])[:, :end]
    tube = np.hstack([shown, np.full((len(shown), prover.count - end), np.inf)])
    return TaskProof(
        *verdict,
        statement,
        bounds,
        prover.first * prover.step,
        _stacked(found.sources) if found.sources else {},
        tube[:2],
        tube[2:4],
        tube[4],
        sum(map(len, found.leaves)),
        prover.heading.growth,
        found.disturbance[:, prover.first[:done]],
        tuple(found.leaves),
        edge,
        prover.step,
        prover.first,
        room=np.stack(found.room, axis=-1) if statement.reading and found.room else None,
    )
