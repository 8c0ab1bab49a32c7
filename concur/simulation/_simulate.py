"""The closed loop in time: `simulate`, and one world of a campaign."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur._progress import track
from concur.codegen import CHUNK, Batch, Job, Rollout, Series, Trace, series_function
from concur.control import (
    KEPT,
    Law,
    TickStatus,
    TrackingLaw,
    lost_direction,
    singular_error,
    tracking_law,
)
from concur.errors import ConcurError, SimulationError
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.robot import Mechanism, Worlds, check_contacts, controls, mapping
from concur.simulation._adaptive import AdaptiveSteps, rates_of
from concur.simulation._drives import check_friction
from concur.simulation._imperfections import Imperfections, Scalar
from concur.simulation._integrator import (
    FASTEST,
    FIXED_STEP,
    Integrator,
    grid,
    machine_code,
    shape_start,
)
from concur.simulation._plant import Plant
from concur.simulation._program import Program, ideal_program, loop_program
from concur.simulation._record import Recorder, recorded_together
from concur.simulation._run import Run, run_of
from concur.simulation._slip import check_step
from concur.system import System

LEAP = 0.5
"""Distance per step, m or rad, from which on a sudden speed is no longer believed."""


@dataclass(frozen=True, eq=False)
class RealPlant:
    """A plant as it really is: with imperfections, deviations, noise and its own momentum.

    Parameters
    ----------
    plant : System or Plant, optional
        What moves, if it is not the robot of the simulation: the same joints with other parameters.
    imperfections : Imperfections, optional
        Friction, lags, delays, noise and disturbances. The law is then sampled, by default in each
        step, and the record has one row for each control period.
    momentum : array_like, optional
        True spatial momentum of a floating robot, shape (6,), kg m/s and kg m^2/s, if it differs
        from that of the servo's model. It takes the place of the imperfections' momentum error.
    world : mapping, optional
        Deviations of the uncertain numbers of the plant, as for `Plant.numbers`, of one world;
        default the nominal one.
    deviations : mapping, optional
        Deviations of imperfections from their values by kind and name, as for `Program.numbers`
        and `Program.delays`: those of one world of a campaign.
    seed, number : int
        Seed, and number of the world, of jitter and noise.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.simulation import Imperfections, RealPlant
    >>> real = RealPlant(imperfections=Imperfections(latency=0.002))
    >>> real.imperfections.latency
    0.002
    """

    plant: System | Plant | None = None
    imperfections: Imperfections | None = None
    momentum: ArrayLike | None = None
    world: Worlds | None = None
    deviations: Mapping[Scalar, float] | None = None
    seed: int = 0
    number: int = 0


def simulate(
    robot: System,
    servo: Law,
    reference: Reference | Callable[[float], ReferenceSample] | None,
    duration: float,
    q0: ArrayLike,
    s0: ArrayLike,
    dt: float | Integrator = 1e-3,
    plant: System | Plant | RealPlant | None = None,
) -> Run:
    """Simulate a control law on the full-order plant.

    Parameters
    ----------
    robot : System
        The robot: a `Mechanism`, or any other system.
    servo : Law
        The law: a `Servo`, or any other `concur.control.Law`.
    reference : Reference
        Reference of all outputs, a callable of time; None for a law that follows none.
    duration : float
        How long, s; a whole number of steps.
    q0, s0 : array_like
        Configuration and shape velocities at the start, shapes (nq,) and (ns,).
    dt : float or Integrator
        Step of integration and recording, s; or method, step, period of a sampled law, and whether
        to run machine code. Fixed steps have to resolve the friction of the plant, see
        `check_friction`; adaptive methods choose steps by their error, so that no friction is too
        stiff for them.
    plant : System, Plant or RealPlant, optional
        What moves, if it is not the robot itself: the same joints with other parameters, also with
        imperfections, or one world of uncertain numbers.

    Returns
    -------
    Run
        The record; its robot is that of the world.

    Raises
    ------
    SingularConfigurationError
        If the start is singular.
    SimulationError
        If the robot runs into a singular configuration or the state leaves the finite
        numbers: the run up to there is the error's attribute `run`. If it has to be compiled and
        cannot be. If a world is given and no quantity of the plant is uncertain. If imperfections
        are given and the method is adaptive. If friction or springs are too stiff for a fixed step.
    InertiaError
        If no rigid body has an inertia of the world.
    KeyboardInterrupt
        If it is interrupted: once there are steps, the run up to there is the attribute `run`.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
    >>> q0 = [0, 0, 0, 0, 0, -0.1, 1.0, -1.6]
    >>> goal = cc.references.hold(servo.output(q0))
    >>> run = cc.simulate(robot, servo, goal, 0.1, q0, [0] * 5, dt=0.01)
    >>> bool(abs(run.error).max() < 1e-9)
    True
    """
    law = tracking_law(servo, "simulate, `servo`")
    real = plant if isinstance(plant, RealPlant) else RealPlant(plant)
    stepped = _plant(robot, law, real.plant)
    moving, numbers = stepped, None
    if real.world is not None or stepped.n_numbers:
        deviating = {} if real.world is None else real.world
        numbers = stepped.numbers(deviating)
        moving = stepped.of_world(deviating)
    where = f"simulation of `{moving.name}`"
    demand = reference_for(reference, law.outputs, where)
    options = dt if isinstance(dt, Integrator) else Integrator(dt=dt)
    dt, hold = options.dt, options.control_period
    if options.method in FIXED_STEP:
        check_step(where, stepped.slip, dt)
        check_friction(moving, dt)
    steps, per_hold = grid(where, duration, dt, hold)
    if hold is not None:
        law.state_bounds.check_period(f"{where}, `control_period`", hold)
    q = stepped.robot.check_configuration(q0, "`q0`")
    if numbers is not None:
        # Wheels that follow guides fit those of the world.
        q = np.asarray(moving.robot.normalize(q))
    if isinstance(moving.robot, Mechanism):
        check_contacts(moving.robot, q, "`q0`")
    s = shape_start(where, law.model, s0)
    if real.momentum is not None and not law.model.takes_momentum:
        raise SimulationError(
            f"{where}, `momentum`",
            expected="none, for a robot that does not float",
            came=str(real.momentum),
            cure="Leave it out.",
        )
    deviations = {} if real.deviations is None else real.deviations
    deviations = mapping(f"{where}, `deviations`", deviations)
    if ideal := real.imperfections is None and not deviations:
        program = ideal_program(law, stepped, options.method, dt, per_hold)
        p = np.append(np.zeros((1, 0)) if numbers is None else numbers, [[dt]], axis=1)
    else:
        given = real.imperfections, tuple(deviations), dt, hold or dt
        program = loop_program(law, stepped, *given, options.method)
        p = program.numbers(numbers, deviations)
    x0 = program.start(q, s, real.momentum, p)
    fastest = np.abs(x0[0, program.states["v"]]).max()
    if not fastest < FASTEST:
        raise SimulationError(
            f"{where}, start",
            expected=f"velocities below {FASTEST:g} m/s or rad/s",
            came=f"{fastest:.3g}, which follow from the shape velocities and the momentum",
            cure="Give SI units; check masses and momentum.",
        )
    margin = law.margin(q)
    if margin < law.refused_below:
        raise singular_error(law, q, margin)
    delays = program.delays(deviations)
    ticks = -(-steps // (program.steps_per_tick or 1))
    if not ideal:
        ticks, _ = grid(where, duration, program.control_period, None)
    batch = Batch(x0, p, [real.number], real.seed, *delays)
    return program_run(program, demand, ticks, batch, moving, options=options, steps=steps)


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
        self._margins = np.full((2, self.steps + 1), np.nan)
        self._lost: SimulationError | None = None

    def run(self, world: Batch) -> tuple[Trace, BaseException | None]:
        """Let it move; with what interrupted it."""
        program, options, sizes = self.program, self.options, self.program.sizes
        # A law that acts continuously has a torque in the last row too.
        ticks = self.ticks + (not program.steps_per_tick)
        late = Job(sizes, world, program.reference(self.reference, ticks), ticks, (), None)
        series, adaptive = self._series(late, ticks)
        title = f"simulating {self.moving.name}"
        self._look(late.start[0][None], 0)
        with track(options.progress, title, self.steps) as report:

            def watch(trace: Trace, done: int) -> bool:
                done = min(done, self.steps)
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
        tolerances, end = (options.rtol or 1e-10, options.atol or 1e-12), self.steps * program.dt
        given = self.reference, end, self.moving.robot, rates, tolerances
        adaptive = AdaptiveSteps(program, *given)
        graph = partial(series_function, *adaptive.graphs, program.steps_per_tick, ring)
        return Series(graph, 1), adaptive

    def ended(self, trace: Trace, fault: BaseException | None) -> tuple[int, BaseException | None]:
        """Rows of a record that are valid, and why it ended early."""
        program, done = self.program, min(trace.done, self.steps) // self.stride
        if fault is not None:
            return (done + 1 if done else 0), fault
        if self._lost is not None:
            return round(self._lost.data["time"] / program.dt) + 1, self._lost
        if done * self.stride >= self.steps:
            return done + 1, None
        if program.ideal:
            last, failed = _diverged(self, trace.x[: done + 1])
            return last + 1, failed
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
        x = trace.x[:: len(trace.x) // len(trace.u) if not program.ideal else 1][:count]
        found = {name: state(x, name) for name in ("q", "v", "load")}
        found |= {"work": state(x, "work")[:, 0], "t": rows * program.dt * self.stride}
        # A held torque, and its residual, are those of the instant at which it was computed.
        held = np.minimum(rows, max(count - 2, 0)) // (self.per if program.ideal else 1)
        if not program.ideal:
            return found | {"u": trace.u[held], "z": state(x, "law")[:, KEPT:]}
        ticked = held if program.steps_per_tick else rows
        y, size = trace.y[ticked], law.size
        found |= {"acceleration_residual": y[:, 1 : size + 1], "scale": y[:, size + 1]}
        ends = trace.of_steps if program.steps_per_tick else trace.y[:, size + 2 :]
        ends = np.vstack([np.full(ends.shape[1], np.nan), ends[: count - 1]])
        found["low"], found["high"] = np.hsplit(ends, 2)
        return found | {"u": trace.u[ticked], "margin": self._margins[0, :count]}

    def _look(self, x: np.ndarray, first: int) -> None:
        """Compute the margins of some states."""
        q = x[:, self.program.states["q"]]
        self._margins[:, first : first + len(x)] = self.recorder.margins(q)

    def _singular(self, trace: Trace, done: int) -> bool:
        """Whether a singular configuration lies on the way from the last checked state."""
        first, law, dt = trace.done, self.program.law, self.program.dt
        if done <= first:
            return False
        self._look(trace.x[first + 1 : done + 1], first + 1)
        margins, orientations = self._margins[:, first : done + 1]
        crossed = orientations != orientations[0]
        low = np.flatnonzero((margins < law.refused_below) | crossed)
        if not low.size:
            return False
        k = first + int(low[0]) - int(crossed[low[0]])
        q, margin = trace.x[k, self.program.states["q"]], float(margins[k - first])
        came = f"a margin of {margin:.3g}"
        if crossed[low[0]]:
            came = f"a singular configuration that the next step jumps over, from {came}"
        self._lost = SimulationError(
            f"{self.where}, t = {k * dt:.6g} s",
            expected=f"a decoupling matrix with margin above {law.singular_margin:.3g}",
            came=f"{came}: {lost_direction(law, q)}",
            cure="Change the reference (`servo.feasibility` gives the motion that it requires), "
            "start nearer to it, or take a shorter step. The run up to here is in the attribute "
            "`run`.",
            time=k * dt,
            margin=margin,
        )
        return True


def _plant(robot: System, servo: TrackingLaw, given: System | Plant | None) -> Plant:
    """What moves: it may differ from the servo's robot in parameters only."""
    system = servo.model.system
    kind = Mechanism if isinstance(system, Mechanism) else type(system)
    for name, value, kinds in (("robot", robot, kind), ("plant", given, (kind, Plant, NoneType))):
        if not isinstance(value, kinds):
            raise SimulationError(
                f"simulate, `{name}`",
                expected=kind.__name__ if kinds is kind else f"a {kind.__name__} or a Plant",
                came=f"{type(value).__name__} {value!r:.40}",
                cure="See the documentation of simulate for the order of the arguments.",
            )
    plant = given if isinstance(given, Plant) else Plant(given or robot)
    moving = plant.tree if kind is Mechanism else plant.robot
    if _structure(moving) != _structure(system):
        names = "bodies, joints and drives" if kind is Mechanism else "coordinates and inputs"
        parts = getattr(plant.robot, "bodies", None)
        came = plant.robot.freedom_names if parts is None else [body.name for body in parts]
        raise SimulationError(
            f"simulation of `{plant.name}`, `plant`",
            expected=f"the {names} of `{system.name}`",
            came=f"another structure: {', '.join(came)}",
            cure="A plant may differ in parameters only.",
        )
    return plant


def _structure(system: System) -> tuple[Any, ...]:
    """Structure that a plant shares with the robot of the law."""
    if not isinstance(system, Mechanism):
        names = system.freedom_names, system.constraint_names
        return type(system), system.nq, *names, controls(system)
    bodies = [(body.name, body.parent, type(body.joint)) for body in system.bodies]
    driven = system.actuated, system.control_names, system.mimics, system.steering
    return Mechanism, bodies, *driven


def _diverged(loop: _Loop, x: np.ndarray) -> tuple[int, SimulationError]:
    """The last state to believe, and why the next one is not."""
    program, law, dt, last = loop.program, loop.program.law, loop.program.dt, len(x) - 1
    # Leave out the last states if their speed has grown beyond the resolution of a step.
    speeds = np.abs(x[:, program.states["v"]]).max(axis=1)
    usual = float(np.median(speeds))
    while last and speeds[last] > 10 * usual and speeds[last] * dt > LEAP:
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
        f"{loop.where}, t = {last * dt:.6g} s",
        expected="a finite state after the step",
        came=came,
        cure=f"{cure}. The run up to here is in the attribute `run`.",
        time=last * dt,
    )
