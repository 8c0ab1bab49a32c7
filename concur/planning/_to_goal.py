"""From a goal to a motion that reaches it within limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.codegen import finite_floats
from concur.errors import ConcurError, InfeasibleReferenceError, ReductionError, ShapeError
from concur.outputs import Output, checked_outputs
from concur.planning._around import ways_around
from concur.planning._clearances import check_apart, clearance_of
from concur.planning._direct import direct_guess, legs_of, rest_of
from concur.planning._graphs import FINE, STEPS
from concur.planning._made_for import made_for
from concur.planning._motion_plan import MotionPlan
from concur.planning._nearest import Nearest, nearest_posture
from concur.planning._path_limits import PlanLimits, bounds_of, ground_of
from concur.planning._program import SHORTEST, Found, Search
from concur.planning._splines import Splines
from concur.planning._targets import Target, targets_of, vias_of
from concur.planning._transcription import Path, Start, Transcription
from concur.planning._verdict import KEPT, ROUNDED, is_held, misses_of, rows_of
from concur.reduction import ReducedModel, check_model
from concur.results import Row
from concur.robot import Clearance, Obstacle
from concur.tables import is_number

GUESSES = 8
"""Largest number of guesses."""

MOST_GUESSES = 1000
"""Largest number of guesses that may be asked for."""

LONGEST = 1e6
"""Longest motion, s."""

ENOUGH = 2
"""Motions after which the fastest is taken."""

PROGRAMS = 40
"""Programs after which a guess waits until the others have been tried; and least number of programs
that look for a faster motion once there is one."""

BLOCKED = 3
"""Guesses that pass a limit alike, after which no more are tried."""

ALIKE = 0.01
"""Relative difference of excesses that count as alike."""

SAME = 1e-9
"""Largest difference of guesses of which one is tried, rad, m and s."""

SLOWER = (2.0, 4.0, 8.0)
"""Durations that are tried where no shortest motion holds, in that of the nearest one."""

EDGE = 0.3
"""Sum of misses of the nearest motion up to which slower ones are tried, m and rad."""

DEARER = (30.0, 1000.0)
"""Efforts that are tried where no motion of a given duration holds, in that of the first guess."""

POINTS, MORE_POINTS = 14, 3
"""Control points of the splines, and more of them for each goal on the way."""

SHIFTS, FASTER = 6, 0.995
"""Rounds in which goals on the way are passed earlier or later, while these save time."""

ROUNDS = 8
"""Largest number of refinements after the dense check."""

BINDING = 0.97
"""Share of its limit from which a quantity counts as what forbids a goal."""

Floats = NDArray[np.float64]
State = tuple[Floats, Floats, Floats]
"""Configuration, shape velocities and shape accelerations."""


def plan(
    model: ReducedModel,
    outputs: Sequence[Output],
    start: ArrayLike | tuple[ArrayLike, ArrayLike],
    goals: Mapping[str, Any],
    limits: PlanLimits | None = None,
    obstacles: Clearance | Sequence[Obstacle] = (),
    *,
    time: float | str = "least",
    via: Sequence[Mapping[str, Any]] = (),
    guesses: int = GUESSES,
    progress: Callable[[float], Any] | None = None,
) -> MotionPlan:
    """Plan a motion from a state to a goal within limits.

    The shape moves along quintic B-splines; the base follows by the reduced kinematics, of wheels
    or of a constant momentum, torques by inverse dynamics. Sequential quadratic programs find the
    motion of least duration, or of a given one with the least torques, from several guesses, of
    which the best is returned. Limits hold at ten times as many points as the programs have, to
    1e-3 of each, and the goal to 1e-6 m and rad; otherwise `reached` is false, and `why` states
    which limits forbid it.

    At the end the joints rest. On a base that drifts with a momentum the outputs with whole poses
    as goals rest instead, unless they are on the base.

    Parameters
    ----------
    model : ReducedModel
        The robot, with its momentum if it floats.
    outputs : sequence of Output
        Outputs of the reference.
    start : array_like, or tuple of two or three of them
        Configuration, shape (nq,), at rest; or configuration and shape velocities, shape (ns,); or
        these and shape accelerations, shape (ns,), so that torques do not jump.
    goals : mapping of str to any
        Goal by output: its pose, with nan for free coordinates of R^n; a matrix (4, 4) or a `Pose`;
        or a table with `position`, nan for free coordinates, with `within` a largest distance of
        each, m; and `direction`, a vector in inertial axes, along which `axis` of the output's
        frame, default z, points.
    limits : PlanLimits, optional
        Limits beside those of the robot.
    obstacles : sequence of Obstacle, or Clearance
        Spheres, capsules and boxes that capsules around the shapes of the bodies keep away from,
        which meshes do not have; or own capsules on bodies, with obstacles.
    time : float or "least"
        Duration, s, or the least possible.
    via : sequence of mapping
        Goals on the way, up to 8 in their order, each as `goals`; with `within` regions. When they
        are passed follows from the way.
    guesses : int
        Largest number of guesses; two motions that reach the goal are enough.
    progress : callable, optional
        Called with the share of the guesses done.

    Returns
    -------
    MotionPlan
        The motion, or the nearest one that was found.

    Raises
    ------
    ReductionError
        If the shape has joints that turn about three axes, or too few controls.
    ConcurError
        If goals, limits or start are out of range, or no such output exists.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> limits = cc.planning.PlanLimits(torques=10.0, speeds=5.0)
    >>> start = [0, 0, 0, 0, 0, 0.2, 1.0, -1.6]
    >>> found = cc.plan(model, [base], start, {"base": [1.0, 0.3]}, limits)
    >>> found.status, 0.5 < found.duration < 5.0
    ('passed', True)
    """
    check_model(model, "plan")
    where = f"plan of `{model.name}`"
    limits = PlanLimits() if limits is None else limits
    if not isinstance(limits, PlanLimits):
        raise ConcurError(
            f"{where}, `limits`",
            expected="a concur.planning.PlanLimits",
            came=f"{limits!r:.40}",
            cure="Write for example PlanLimits(torques=10.0, speeds=2.0).",
        )
    if any(q is None for q in model.shape_coordinates) or len(model.shape_coordinates) < model.ns:
        raise ReductionError(
            where,
            expected="shape velocities that are rates of coordinates",
            came="a joint that turns about three axes",
            cure="Model it as joints with one axis each.",
        )
    if model.nu < model.ns:
        raise ReductionError(
            where,
            expected=f"a control for each of {', '.join(model.shape_names)}",
            came=f"{model.nu} controls",
            cure="Add motors.",
        )
    known = tuple(checked_outputs(model.system, outputs, where))
    _check_options(time, guesses, progress, where)
    targets, vias = tuple(targets_of(known, goals, where)), vias_of(known, via, where)
    state = _state(model, start, where)
    bounds = bounds_of(model, limits, where)
    clearance = clearance_of(model.robot, obstacles, where)
    check_apart(model.robot, clearance, limits.apart, where)
    form = Transcription(
        *(model, known, targets, bounds, clearance),
        *(limits.apart, float(limits.singular), state[0], ground_of(model, limits, where), vias),
        splines=Splines(POINTS + MORE_POINTS * len(vias)),
    )
    made = partial(_made_for, model, known, limits, obstacles, time)
    planner = Planner(form, where, None if time == "least" else float(time), guesses, made, via)
    return planner.run(state, goals, targets, None, progress)


def _check_options(time: Any, guesses: Any, progress: Any, where: str) -> None:
    """Reject an invalid duration, number of guesses or report of progress."""
    least = isinstance(time, str) and time == "least"
    if not least and not (is_number(time) and SHORTEST <= time <= LONGEST):
        raise ConcurError(
            f"{where}, `time`",
            expected=f'a duration from {SHORTEST:g} to {LONGEST:.0e} s, or "least"',
            came=f"{time!r:.40}",
            cure="Correct it.",
        )
    whole = isinstance(guesses, int | np.integer) and not isinstance(guesses, bool)
    if not whole or not 1 <= guesses <= MOST_GUESSES:
        raise ConcurError(
            f"{where}, `guesses`",
            expected=f"a whole number from 1 to {MOST_GUESSES}",
            came=f"{guesses!r:.40}",
            cure="Leave it out for the default.",
        )
    if progress is not None and not callable(progress):
        raise ConcurError(
            f"{where}, `progress`",
            expected="a function of the share that is done",
            came=f"{progress!r:.40}",
            cure="Leave it out for no reports.",
        )


def _state(model: ReducedModel, start: Any, where: str) -> State:
    """Configuration, shape velocities and shape accelerations of a start."""
    given = start if isinstance(start, tuple) and len(start) in (2, 3) else (start,)
    q0 = np.array(model.robot.check_configuration(given[0], f"{where}, `start`"), dtype=float)
    rates = [np.zeros(model.ns), np.zeros(model.ns)]
    for k, (name, value) in enumerate(zip(("speeds", "accelerations"), given[1:], strict=False)):
        rates[k] = np.array(finite_floats(value, f"{where}, {name} of `start`"), dtype=float)
        if rates[k].shape != (model.ns,):
            raise ShapeError(
                f"{where}, {name} of `start`",
                expected=f"{model.ns} numbers: {', '.join(model.shape_names)}",
                came=f"shape {rates[k].shape}",
                cure="Give one for each.",
            )
    return q0, rates[0], rates[1]


def _made_for(
    model: ReducedModel,
    outputs: Sequence[Output],
    limits: PlanLimits,
    obstacles: Clearance | Sequence[Obstacle],
    time: float | str,
    via: Sequence[Mapping[str, Any]],
    start: State,
    goals: Mapping[str, Any],
) -> dict[str, str]:
    """Digests of what a plan is made for."""
    momentum = model.momentum if model.takes_momentum else None
    speeds = dict(zip(model.shape_names, start[1].tolist(), strict=True))
    names = [f"acceleration of {name}" for name in model.shape_names]
    given = start[0], speeds | dict(zip(names, start[2].tolist(), strict=True))
    return made_for(model.robot, momentum, outputs, given, goals, limits, obstacles, time, via)


@dataclass(frozen=True, eq=False)
class Planner:
    """Guesses, refinement and verdict for one problem with any start and goal numbers."""

    form: Transcription
    where: str
    duration: float | None
    guesses: int
    made: Callable[..., dict[str, str]]
    via: Sequence[Mapping[str, Any]] = ()

    def run(
        self,
        state: State,
        goals: Mapping[str, Any],
        targets: Sequence[Target],
        warm: Floats | None,
        progress: Callable[[float], Any] | None,
    ) -> MotionPlan:
        """Best of the motions from several guesses, with goals on the way where it is fastest."""
        form = self.form
        start = Start(state[0][form.rest], state[0][form.shape], *state[1:])
        self._check_start(start)
        wanted = np.concatenate([t.wanted for own in (targets, *form.vias) for t in own])
        places = legs_of(form, start, wanted) if form.vias else ()
        made_for = self.made(self.via, state, goals)

        def passing(
            places: tuple[int, ...], warm: Floats | None, guesses: int
        ) -> tuple[MotionPlan, Floats]:
            planner = replace(self, form=replace(form, places=places), guesses=guesses)
            own = planner if form.vias else self
            found, unknowns = own._run(start, wanted, goals, targets, warm, progress)
            again = partial(self._again, (start, unknowns), tuple(targets), goals)
            return replace(found, made_for=made_for, _again=again), unknowns

        best, unknowns = passing(places, warm, self.guesses)
        for _ in range(SHIFTS if best.reached and self.duration is None else 0):
            before = best.duration
            for k, by in product(range(len(places)), (2, -2)):
                other = (*places[:k], places[k] + by, *places[k + 1 :])
                if np.diff([0, *other, STEPS]).min() < 2:
                    continue
                found, moved = passing(other, unknowns, 1)
                if found.reached and found.duration < best.duration:
                    best, unknowns, places = found, moved, other
            if best.duration > FASTER * before:
                break
        return best

    def _run(
        self,
        start: Start,
        wanted: Floats,
        goals: Mapping[str, Any],
        targets: Sequence[Target],
        warm: Floats | None,
        progress: Callable[[float], Any] | None,
    ) -> tuple[MotionPlan, Floats]:
        """Best of the motions from several guesses, and its unknowns."""
        form = self.form
        search = Search(
            *(form, start, wanted, self.duration),
            *(np.full(len(form.facts), 1.0 - KEPT), np.full(3, 1.0 - KEPT)),
            np.zeros(form.within.size),
        )
        reach = nearest_posture(form, targets, form.configuration(start.x, start.r))
        own = np.concatenate([reach.wanted, wanted[reach.wanted.size :]])
        if self.duration is not None:
            first = direct_guess(form, start, wanted, self.duration) if warm is None else warm
            search = search.measured(first)
        aimed = search if reach.solved else replace(search, wanted=own)
        guesses = chain([] if warm is None else [warm], self._guesses(aimed, reach))
        if aimed is not search:
            best, tries = self._towards(aimed, islice(guesses, min(self.guesses, ENOUGH)))
            path, u = form.dense(start, best.unknowns, wanted)
            notes = tuple(found.note for found in tries)
            failed = self._result(best, path, u, False, notes, targets, goals, reach.why)
            return failed, best.unknowns
        enough = ENOUGH if warm is None and not form.vias else 1
        few = islice(_distinct(islice(guesses, 2 * self.guesses)), self.guesses)
        made, tries = self._tried(search, few, enough, progress)
        if made is None and not self._blocked(tries):
            made = self._longer(search, tries)
        if made is not None:
            best, path, u = made
        else:
            best = min(tries, key=_off)
            path, u = form.dense(start, best.unknowns, wanted)
        notes = tuple(found.note for found in tries)
        result = self._result(best, path, u, made is not None, notes, targets, goals)
        return result, best.unknowns

    def _towards(self, search: Search, guesses: Iterator[Floats]) -> tuple[Found, list[Found]]:
        """Motion to the nearest goal within reach, which needs no dense check, and all tries."""
        tries = list[Found]()
        for guess in guesses:
            tries.append(search.solve(np.array(guess), PROGRAMS))
            if tries[-1].kept:
                break
        return min(tries, key=_off), tries

    def _tried(
        self,
        search: Search,
        guesses: Iterator[Floats],
        enough: int,
        progress: Callable[[float], Any] | None,
    ) -> tuple[tuple[Found, Path, Floats] | None, list[Found]]:
        """Best motion that holds in the dense check, if any, and what each guess led to.

        Of the first motions that are enough; fewer, if as many programs as led to the first of them
        led to no other. Guesses that need many programs are continued last.
        """
        tries, fresh, left = list[Found](), list[Found](), PROGRAMS
        for guess in guesses:
            found = search.solve(np.array(guess), min(left, PROGRAMS))
            tries.append(found)
            left -= found.programs if fresh else 0
            if found.kept:
                spent = sum(one.programs for one in tries)
                left = left if fresh else max(PROGRAMS, spent)
                fresh.append(found)
            if progress is not None:
                progress(len(tries) / self.guesses)
            if len(fresh) >= enough or left <= 0:
                made = self._best(search, fresh)
                if made is not None:
                    return made, tries
                fresh, left = [], PROGRAMS
            if self._blocked(tries):
                break
        return self._best(search, fresh), tries

    def _longer(self, search: Search, tries: list[Found]) -> tuple[Found, Path, Floats] | None:
        """Motion from the nearest of those that were left after some programs, or a slower one."""
        left = sorted((one for one in tries if one.programs >= PROGRAMS), key=_off)
        for one in left[:ENOUGH]:
            tries.append(search.solve(one.unknowns))
            made = self._best(search, tries[-1:]) if tries[-1].kept else None
            if made is not None:
                return made
        return self._slower(search, tries) if self.duration is None else self._dearer(search, tries)

    def _dearer(self, search: Search, tries: list[Found]) -> tuple[Found, Path, Floats] | None:
        """Motion with more effort, which near the end of the reach outweighs a miss of the goal."""
        near = min(tries, key=_off)
        for factor in DEARER:
            tries.append(replace(search, unit=factor * search.unit).solve(near.unknowns))
            made = self._best(search, tries[-1:]) if tries[-1].kept else None
            if made is not None:
                return made
        return None

    def _blocked(self, tries: list[Found]) -> bool:
        """Whether the last motions pass the same limits by as much, or all of them at the goal."""
        last = tries[-BLOCKED:]
        if len(last) < BLOCKED or self.form.drifts or any(found.excess <= KEPT for found in last):
            return False
        values = [np.where(self.form.one_sided, x.path.g, np.abs(x.path.g)) for x in last]
        at_goal = all(g.size and int(g.max(axis=1).argmax()) == len(g) - 1 for g in values)
        excess = [found.excess for found in last]
        return at_goal or max(excess) - min(excess) <= ALIKE * max(excess)

    def _again(
        self,
        motion: tuple[Start, Floats],
        last: tuple[Target, ...],
        known: Mapping[str, Any],
        q: ArrayLike,
        s: ArrayLike | None,
        goals: Mapping[str, Any] | None,
        passed: int,
        a: ArrayLike | None,
    ) -> MotionPlan:
        """Plan from another state, beginning with a motion."""
        form = self.form
        goals = known if goals is None else goals
        targets = tuple(targets_of(form.outputs, goals, self.where))
        if [target.kept for target in targets] != [target.kept for target in last]:
            raise ConcurError(
                f"{self.where}, `goals`",
                expected="goals of the same outputs and kinds",
                came="others",
                cure="Call `concur.plan`.",
            )
        still = np.zeros(form.model.ns)
        own = [still if one is None else one for one in (s, a)]
        state = _state(form.model, (q, *own), self.where)
        whole = isinstance(passed, int | np.integer) and not isinstance(passed, bool)
        if not whole or not 0 <= passed <= len(form.vias):
            raise ConcurError(
                f"{self.where}, `passed`",
                expected=f"a whole number from 0 to {len(form.vias)}",
                came=f"{passed!r:.40}",
                cure="Count the goals on the way of this plan that are behind.",
            )
        left = replace(form, vias=form.vias[passed:])
        planner = replace(self, form=left, via=self.via[passed:])
        start = Start(state[0][form.rest], state[0][form.shape], *state[1:])
        return planner.run(state, goals, targets, rest_of(form, *motion, start), None)

    def _best(self, search: Search, found: list[Found]) -> tuple[Found, Path, Floats] | None:
        """First of the motions, the best first, that holds in the dense check."""
        for one in sorted(found, key=search.cost):
            refined = self._refined(search, one)
            if refined is not None:
                return refined
        return None

    def _slower(self, search: Search, tries: list[Found]) -> tuple[Found, Path, Floats] | None:
        """Motion of a longer duration, then shortened: near the edge of reach misses are cheap."""
        near = min(tries, key=_off)
        for factor in SLOWER if near.missed <= EDGE else ():
            given = replace(search, duration=factor * near.time)
            slowed = np.array([*near.unknowns[:-1], given.duration])
            given = given.measured(slowed)
            tries.append(given.solve(slowed))
            made = self._best(given, tries[-1:]) if tries[-1].kept else None
            made = made or self._dearer(given, tries[-1:])
            if made is not None:
                shorter = search.solve(made[0].unknowns)
                return (self._best(search, [shorter]) if shorter.kept else None) or made
        return None

    def _check_start(self, start: Start) -> None:
        """Reject starts outside of ranges and speeds."""
        bounds, names = self.form.bounds, self.form.model.shape_names
        for k, name in enumerate(names):
            if not bounds.low[k] <= start.r[k] <= bounds.high[k]:
                raise ConcurError(
                    f"{self.where}, `start`",
                    expected=f"`{name}` from {bounds.low[k]:.6g} to {bounds.high[k]:.6g}",
                    came=f"{start.r[k]:.6g}",
                    cure="Start inside the range of the joint.",
                )
            if abs(start.s[k]) > bounds.speeds[k]:
                raise ConcurError(
                    f"{self.where}, `start`",
                    expected=f"a speed of `{name}` up to {bounds.speeds[k]:.6g}",
                    came=f"{start.s[k]:.6g}",
                    cure="Start slower.",
                )
        rest = self.form.at_rest(start)
        signed = np.where(self.form.one_sided, rest, np.abs(rest))
        worst = int(np.argmax(signed)) if signed.size else 0
        if signed.size and signed[worst] > 1.0 + KEPT:
            name, unit, limit, offset = self.form.facts[worst]
            least, value = limit < 0.0, limit * signed[worst] + offset
            bound = f"{limit + offset:.4g} {unit}".strip()
            raise InfeasibleReferenceError(
                f"{self.where}, `start`",
                expected=f"{name} of at {'least' if least else 'most'} {bound}",
                came=f"{value:.4g} {unit}".strip() + ", with the joints at rest",
                cure="Start elsewhere, or change the limit.",
            )

    def _guesses(self, search: Search, reach: Nearest) -> Iterator[Floats]:
        """Outputs straight to goals; straight lines of the shape; and ways around obstacles."""
        start, bounds, rng = search.start, self.form.bounds, np.random.default_rng(0)
        still = first = self._straight(start, start.r)
        if self.form.drifts or not self.form.is_crowded:
            first = direct_guess(self.form, start, search.wanted, self.duration)
            yield first
        yield still
        # A robot that stands meets no obstacle, one that drifts does.
        yield from ways_around(search, still if self.form.drifts else first)
        moved = np.isfinite(bounds.low) | ~self.form.rolling
        yield self._straight(start, np.where(moved, reach.q[self.form.shape], start.r))
        for k in count(1):
            away = rng.normal(size=start.r.size) * 0.3 * k
            yield self._straight(start, np.clip(start.r + away, bounds.low, bounds.high))

    def _straight(self, start: Start, end: Floats) -> Floats:
        """Unknowns of a straight line to a shape."""
        form, speeds = self.form, self.form.bounds.speeds
        speeds = np.where(np.isfinite(speeds), speeds, 1.0)
        time = self.duration or max(2.0, float((2.0 * np.abs(end - start.r) / speeds).max()))
        share = np.linspace(0.0, 1.0, form.splines.free)[1:, None]
        table = np.concatenate([start.r + share * (end - start.r), np.zeros((1, start.r.size))])
        return np.concatenate([table.ravel(), [time]])

    def _refined(self, search: Search, found: Found) -> tuple[Found, Path, Floats] | None:
        """Motion that holds in the dense check: limits shrink, and the goal moves, until then."""
        form = self.form
        for _ in range(ROUNDS):
            path, u = form.dense(search.start, found.unknowns, search.wanted)
            rows = rows_of(form, path, found.time)
            if is_held(form, path, rows):
                return found, path, u
            peak = self._peaks(path)
            over = peak - 1.0
            shares = np.where(
                over > 0.5 * KEPT,
                np.where(
                    form.one_sided, search.shares - over - 1e-4, search.shares / peak * 0.9998
                ),
                search.shares,
            )
            raw = search.path(found.unknowns).e - search.bias
            hulls = search.hulls / np.maximum(_speeding(rows), 1.0)
            search = replace(search, shares=shares, hulls=hulls, bias=path.e - raw)
            found = search.solve(found.unknowns, 12)
        return None

    def _peaks(self, path: Path) -> Floats:
        """Largest value of each row along a path after its start, relative to its limit."""
        signed = np.where(self.form.one_sided, path.g, np.abs(path.g))
        return np.asarray(np.maximum(signed[1:].max(axis=0), 1e-12))

    def _result(
        self,
        found: Found,
        path: Path,
        u: Floats,
        reached: bool,
        notes: tuple[str, ...],
        targets: Sequence[Target],
        goals: Mapping[str, Any],
        why: str = "",
    ) -> MotionPlan:
        form = self.form
        inside = np.clip(path.r, form.bounds.low, form.bounds.high)
        if np.abs(inside - path.r).max() <= ROUNDED:
            path = replace(path, r=inside)
        time = np.linspace(0.0, found.time, len(path.x))
        kept = slice(None, None, FINE // 2)
        coordinates, velocity, acceleration = form.samples(path)
        samples, at, own = {}, 0, 0
        for output in form.outputs:
            size, dim = output.pose_size, output.lie.dim
            samples[output.name] = (
                coordinates[kept, at : at + size],
                velocity[kept, own : own + dim],
                acceleration[kept, own : own + dim],
            )
            at, own = at + size, own + dim
        rows = rows_of(form, path, found.time)
        missed = misses_of(form, path, targets)
        if not reached and not why:
            peaks = self._peaks(path)
            near = [form.facts[k][0] for k in np.flatnonzero(peaks >= BINDING)]
            why = self._reason(rows, missed, samples, notes, near)
        return MotionPlan(
            model=form.model,
            outputs=form.outputs,
            reached=reached,
            why=why or "reached",
            t=time[kept],
            q=form.configuration(path.x, path.r)[kept],
            s=path.s[kept],
            a=path.a[kept],
            u=u[kept],
            samples=samples,
            rows=(Row("duration", found.time, unit="s"), *rows),
            starts=notes,
            missed=missed,
            limits=form.bounds,
        )

    def _reason(
        self,
        rows: list[Row],
        missed: Mapping[str, float],
        samples: Mapping[str, tuple[Floats, ...]],
        notes: tuple[str, ...],
        near: Sequence[str] = (),
    ) -> str:
        """Sentence: what is missed, what forbids it, and what is nearest.

        `near` are the rows of the path that come near their limits.
        """
        broken = [row for row in rows if row.holds is False]
        if broken and max(missed.values()) <= KEPT:
            # A slower motion keeps the others, which exceed their limits because these are.
            lasting = ("distance", "position", "decoupling", "load", "tipping")
            worst = next((row for row in broken if row.quantity.startswith(lasting)), broken[0])
            return (
                f"not reached in {len(notes)} guesses: {worst.quantity} is {worst.shown} at "
                f"{worst.place}, its limit {worst.shown_limit}"
            )
        name = max(missed, key=lambda key: missed[key])
        if name not in samples:
            return f"not reached in {len(notes)} guesses: {name} is {missed[name]:.3g} (m, rad) off"
        nearest = np.array2string(samples[name][0][-1], precision=4, separator=", ")
        binding = [
            row.quantity
            for row in rows
            if isinstance(row.value, float)
            and row.limit is not None
            and row.quantity.startswith(("position", "distance"))
            and abs(row.value - row.limit) <= (1.0 - BINDING)
        ]
        if self.duration is not None:
            binding += [
                row.quantity
                for row in rows
                if isinstance(row.value, float)
                and row.limit is not None
                and row.quantity.startswith(("torque", "speed", "acceleration"))
                and row.value >= BINDING * row.limit
            ]
            binding += [name for name in near if name.startswith(("load", "grip", "tipping"))]
        cause = f"limited by the {', the '.join(binding[:3])}" if binding else "out of reach"
        return (
            f"not reached in {len(notes)} guesses: `{name}` misses its goal by "
            f"{missed[name]:.3g} (m, rad), {cause}; the nearest is {nearest}"
        )


def _distinct(guesses: Iterator[Floats]) -> Iterator[Floats]:
    """Guesses without those that are there already."""
    known = list[Floats]()
    for guess in guesses:
        if not any(np.abs(guess - other).max() <= SAME for other in known):
            known.append(guess)
            yield guess


def _off(found: Found) -> float:
    """How far a motion is from one that counts."""
    return found.excess + 10.0 * found.missed


def _speeding(rows: Sequence[Row]) -> Floats:
    """Excess of speeds, accelerations and jerks over their limits; 0 where all rows hold."""
    excess = np.zeros(3)
    for row in rows:
        for k, kind in enumerate(("speed of ", "acceleration of ", "jerk of ")):
            if row.holds is False and row.quantity.startswith(kind):
                assert isinstance(row.value, float)
                assert row.limit is not None
                excess[k] = max(excess[k], abs(row.value / row.limit) * 1.0002)
    return excess
