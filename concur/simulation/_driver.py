"""The driver of closed loops: a program in one world, as a run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import casadi as ca
import numpy as np

from concur._progress import track
from concur.codegen import CHUNK, Batch, Job, Rollout, Series, Trace, series_function
from concur.control import KEPT, TickStatus, lost_direction
from concur.errors import ConcurError, SimulationError
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.simulation._adaptive import AdaptiveSteps, rates_of
from concur.simulation._grid import Grid
from concur.simulation._integrator import FIXED_STEP, Integrator, machine_code
from concur.simulation._plant import Plant
from concur.simulation._program import Program
from concur.simulation._record import Recorder, recorded_together, run_of
from concur.simulation._run import Run

LEAP = 0.5
"""Distance per step, m or rad, from which on a sudden speed is no longer believed."""


def program_run(
    program: Program,
    reference: Reference | Callable[[float], ReferenceSample] | None,
    ticks: int,
    world: Batch,
    moving: Plant | None = None,
    rollout: Rollout | None = None,
    options: Integrator | None = None,
    steps: int | None = None,
) -> Run:
    """Run one world of a program.

    Parameters
    ----------
    program : Program
        The loop.
    reference : Reference or callable
        Reference of all outputs; None for a law that follows none.
    ticks : int
        Number of control periods.
    world : Batch
        One world: state at the start, numbers, seed, number, latency and jitter.
    moving : Plant, optional
        The plant of this world, `Plant.of_world`; default that of the program.
    rollout : Rollout, optional
        The compiled program of a campaign: then the states equal those of the campaign bit by bit.
    options : Integrator, optional
        Tolerances, whether to compile if no `rollout` is given, and progress.
    steps : int, optional
        Number of steps, of which the last period may have fewer than others.

    Returns
    -------
    Run
        The record. That of an ideal program has a row for each step; that of others one for each
        control period, with ranges over these rows, and `u` is the command. Its robot is that of
        the world.

    Raises
    ------
    SimulationError
        If a tick is refused or the state diverges: the run up to there is the attribute `run`, if
        it has a period.
    ShapeError, NonFiniteError
        If an array does not fit.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.codegen import Batch
    >>> from concur.simulation import Imperfections, loop_program, program_run
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [base], stiffness=4, damping=4)
    >>> program = loop_program(servo, cc.Plant(robot), Imperfections.of(robot, viscous=0.1))
    >>> world = Batch(program.start(robot.neutral(), [0.0] * 5), program.numbers(), [0])
    >>> run = program_run(program, cc.references.hold([0.3, 0.0]), 10, world)
    >>> run.u.shape
    (11, 5)
    """
    started = time.perf_counter()
    where = f"simulation of `{program.plant.name}`"
    known = reference_for(reference, program.law.outputs, where)
    options = Integrator(program.method) if options is None else options
    loop = _Loop(where, program, known, ticks, moving or program.plant, options, steps)
    fault: BaseException | None
    if rollout is not None:
        found = rollout(world, program.reference(known, ticks + 1), ticks=ticks + 1, record=1)
        assert found.record is not None
        record, done = found.record, min(int(found.stopped[0]), ticks)
        trace = Trace(record.x[0], record.u[0], record.y[0], record.y[0], done * loop.per)
        trace.status, fault = int(found.status[0]), None
    else:
        trace, fault = loop.run(world)
    rows, fault = loop.ended(trace, fault)
    run = None
    if rows:
        period = None if program.ideal and not program.steps_per_tick else program.control_period
        arrays, seconds = loop.arrays(trace, rows), time.perf_counter() - started
        real = None if program.ideal else program.imperfections
        run = run_of(
            loop.recorder, loop.recorder.rows(known, arrays), period, program.method, seconds, real
        )
    if fault is None:
        assert run is not None
        return run
    if isinstance(fault, ConcurError) and run is not None:
        fault.data["run"] = run
    elif run is not None:
        fault.run = run  # type: ignore[attr-defined]
    raise fault


class _Loop:
    """A program in one world, from its machine code or graphs to the rows of a record."""

    def __init__(
        self,
        where: str,
        program: Program,
        reference: Reference,
        ticks: int,
        moving: Plant,
        options: Integrator,
        steps: int | None,
    ) -> None:
        self.where, self.program, self.reference, self.options = where, program, reference, options
        self.ticks, self.per = ticks, program.steps_per_tick or 1
        self.stride = 1 if program.ideal else self.per
        self.steps = ticks * self.per if steps is None else steps
        self.moving, self.recorder = moving, Recorder(program.law, moving)
        knots = np.zeros(0) if program.steps_per_tick else reference.knots
        self.grid = Grid.of(self.steps, program.dt, knots)
        self._margins = np.full((2, len(self.grid.ends)), np.nan)
        self._lost: SimulationError | None = None

    def run(self, world: Batch) -> tuple[Trace, BaseException | None]:
        """Let it move; with what interrupted it."""
        program, options, sizes = self.program, self.options, self.program.sizes
        ticks, fine = self.ticks, len(self.grid.lengths)
        if program.steps_per_tick:
            rows = program.reference(self.reference, ticks)
        else:
            # A law that acts continuously has a torque in the last row too.
            ticks, rows = fine + 1, program.steps(self.grid, self.reference)
            each = np.tile(np.asarray(world.p, dtype=float), (ticks, 1))
            each[:-1, -1] = self.grid.lengths
            world = replace(world, p=each[None])
        late = Job(sizes, world, rows, ticks, (), None)
        series, adaptive = self._series(late, ticks)
        title = f"simulating {self.moving.name}"
        self._look(late.start[0][None], 0)
        with track(options.progress, title, fine) as report:

            def watch(trace: Trace, done: int) -> bool:
                done = min(done, fine)
                if adaptive is not None:
                    adaptive.step.check()
                stops = program.ideal and self._singular(trace, done)
                report(done)
                return stops

            try:
                return series.trace(late, 0, watch), None
            except KeyboardInterrupt as stop:
                return stop.trace, stop  # type: ignore[attr-defined]

    def _series(self, job: Job, ticks: int) -> tuple[Series, AdaptiveSteps | None]:
        """The loop of a job, and what steps it if this is SciPy."""
        program, options, law = self.program, self.options, self.program.law
        fixed, ring = program.method in FIXED_STEP, job.ring_length
        # The same widths for all runs as machine code, else no more than there are.
        most = max(1, CHUNK // self.per)
        count = -(-ticks // -(-ticks // most))

        def made(width: int) -> ca.Function:
            step = program.step if program.steps_per_tick else None
            return series_function(program.tick, step, program.steps_per_tick, ring, width)

        def graphs() -> list[ca.Function]:
            loop = made(most) if fixed else rates_of(program)
            own = program.ideal and not program.plant.n_numbers
            return [loop, *(recorded_together(law, self.moving) if own else [])]

        kind: tuple[object, ...] = ("adaptive", bool(program.steps_per_tick))
        if fixed:
            kind = program.method, program.steps_per_tick, ring, program.ideal or program.dt
        value = law, program.plant, program.imperfections, program.uncertain, *kind
        found = machine_code(self.where, options, self.steps, value, graphs)
        function, *recorded = found or (None,)
        if recorded:
            self.recorder = Recorder(law, self.moving, recorded)
        if fixed:
            return Series(made, count if function is None else most, function), None
        rates = rates_of(program) if function is None else function
        tolerances = options.rtol or 1e-10, options.atol or 1e-12
        given = self.reference, self.grid, self.moving.robot, rates, tolerances
        adaptive = AdaptiveSteps(program, *given)
        graph = partial(series_function, *adaptive.graphs, program.steps_per_tick, ring)
        return Series(graph, 1), adaptive

    def ended(self, trace: Trace, fault: BaseException | None) -> tuple[int, BaseException | None]:
        """Rows of a record that are valid, and why it ended early."""
        program, steps = self.program, min(trace.done, len(self.grid.lengths))
        done = (int(np.searchsorted(self.grid.places, steps, side="right")) - 1) // self.stride
        if fault is not None:
            return (done + 1 if done else 0), fault
        if self._lost is not None:
            time = self._lost.data["time"]
            return int(np.searchsorted(self.grid.ends[self.grid.places], time, "right")), self._lost
        if done * self.stride >= self.steps:
            return done + 1, None
        if program.ideal:
            last, failed = _diverged(self, trace.x[: steps + 1])
            return int(np.searchsorted(self.grid.places, last, side="right")), failed
        time_, status = done * program.control_period, trace.status
        given = " The run up to here is in the attribute `run`." * (done > 0)
        return (done + 1 if done else 0), SimulationError(
            f"{self.where}, t = {time_:.6g} s",
            expected="a tick that gives torques, and a finite state",
            came="a diverged state" if status < 0 else f"the status {TickStatus(status).name}",
            cure=f"Lower the gains or the imperfections, or take a shorter step.{given}",
            time=time_,
            status=status,
        )

    def arrays(self, trace: Trace, count: int) -> dict[str, np.ndarray]:
        """Rows of a record, as for `recorded_run`."""
        program, rows = self.program, np.arange(count)
        state, law = program.state, program.law
        places = self.grid.places[:count]
        x = trace.x[places if program.ideal else rows * max(1, (len(trace.x) - 1) // len(trace.u))]
        found = {name: state(x, name) for name in ("q", "v", "load", "heat")}
        found |= {"work": state(x, "work")[:, 0], "t": rows * program.dt * self.stride}
        # A held torque, and its residual, are those of the instant at which it was computed.
        held = np.minimum(rows, max(count - 2, 0)) // (self.per if program.ideal else 1)
        if not program.ideal:
            return found | {"u": trace.u[held], "z": state(x, "law")[:, KEPT:]}
        ticked = held if program.steps_per_tick else places
        sizes = np.cumsum([1, law.size, 1, len(law.limit_names)])
        parts = np.split(trace.y[ticked], sizes, axis=1)[1:4]
        found |= zip(("acceleration_residual", "scale", "active"), parts, strict=True)
        found["scale"] = found["scale"][:, 0]
        ends = trace.of_steps if program.steps_per_tick else trace.y[:, sizes[-1] :]
        none = np.full((1, ends.shape[1] // 2), np.nan)
        for name, part, over in zip(
            ("low", "high"), np.hsplit(ends, 2), (np.fmin, np.fmax), strict=True
        ):  # of the parts of divided steps
            inside = part[: places[-1]]
            whole = over.reduceat(inside, places[:-1]) if len(inside) else inside
            found[name] = np.vstack([none, whole])
        return found | {"u": trace.u[ticked], "margin": self._margins[0, places]}

    def _look(self, x: np.ndarray, first: int) -> None:
        """Compute the margins of some states."""
        q = x[:, self.program.states["q"]]
        self._margins[:, first : first + len(x)] = self.recorder.margins(q)

    def _singular(self, trace: Trace, done: int) -> bool:
        """Whether a singular configuration lies on the way from the last checked state."""
        first, law = trace.done, self.program.law
        if done <= first:
            return False
        self._look(trace.x[first + 1 : done + 1], first + 1)
        margins, orientations = self._margins[:, first : done + 1]
        crossed = orientations != orientations[0]
        low = np.flatnonzero((margins < law.margins.refused_below) | crossed)
        if not low.size:
            return False
        k = first + int(low[0]) - int(crossed[low[0]])
        q, margin = trace.x[k, self.program.states["q"]], float(margins[k - first])
        came = f"a margin of {margin:.3g}"
        if crossed[low[0]]:
            came = f"a singular configuration that the next step jumps over, from {came}"
        self._lost = SimulationError(
            f"{self.where}, t = {self.grid.ends[k]:.6g} s",
            expected=f"a decoupling matrix with margin above {law.singular_margin:.3g}",
            came=f"{came}: {lost_direction(law, q)}",
            cure="Change the reference (`servo.feasibility` gives the motion that it requires), "
            "start nearer to it, or take a shorter step. The run up to here is in the attribute "
            "`run`.",
            time=float(self.grid.ends[k]),
            margin=margin,
        )
        return True


def _diverged(loop: _Loop, x: np.ndarray) -> tuple[int, SimulationError]:
    """The last state to believe, and why the next one is not."""
    program, law, last = loop.program, loop.program.law, len(x) - 1
    # Leave out the last states if their speed has grown beyond the resolution of a step.
    speeds = np.abs(x[:, program.states["v"]]).max(axis=1)
    usual = float(np.median(speeds))
    while last and speeds[last] > 10 * usual and speeds[last] * program.dt > LEAP:
        last -= 1
    q, step = x[last, program.states["q"]], program.control_period
    margin = law.margin(q)
    came = f"a singular law or a diverged state; margin before it {margin:.3g}"
    cure = (
        "Check that the reference is feasible (`servo.feasibility`), lower the gains, or shorten "
        "the step or the control period"
    )
    fastest = float(np.abs(np.linalg.eigvals(law.error_dynamics.matrix)).max(initial=0.0))
    if margin > 0.1 and fastest * step > 2.0:
        # The law is far from singular, but too fast for explicit steps or held torques.
        rate = f"fastest rate {fastest:.3g} /s"
        came = f"a diverged state; {rate} is too stiff for steps of {step:.3g} s"
        act = "hold the torque for less than" if program.steps_per_tick else "take a step below"
        cure = f"Lower the gains, or {act} {1.0 / fastest:.1g} s"
    elif law.linearizes:
        came += f", nearest to lost: {lost_direction(law, q)}"
    return last, SimulationError(
        f"{loop.where}, t = {loop.grid.ends[last]:.6g} s",
        expected="a finite state after the step",
        came=came,
        cure=f"{cure}. The run up to here is in the attribute `run`.",
        time=float(loop.grid.ends[last]),
    )
