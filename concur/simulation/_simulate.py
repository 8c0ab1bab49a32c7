"""The closed loop in time: `simulate`, and one world of a campaign."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur._progress import busy, track
from concur.codegen import Batch, Rollout
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
from concur.simulation._drives import check_friction
from concur.simulation._imperfections import Imperfections, Scalar
from concur.simulation._integrator import (
    FASTEST,
    FIXED_STEP,
    Integrator,
    grid,
    is_compiled,
    machine_code,
    shape_start,
)
from concur.simulation._loop import Adaptive, FixedStep, Loop, most_periods, rates_of
from concur.simulation._loop_program import ideal_program, loop_program
from concur.simulation._plant import Plant
from concur.simulation._program import Program
from concur.simulation._record import Recorder, recorded_together
from concur.simulation._recorded import recorded_run, run_of
from concur.simulation._run import Run
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
        p = np.zeros((1, 0)) if numbers is None else numbers
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
    if ideal:
        return _ideal_run(where, program, (demand, p[0], x0[0], steps), moving, options)
    ticks, _ = grid(where, duration, program.control_period, None)
    delays = program.delays(deviations)
    batch = Batch(x0, p, [real.number], real.seed, *delays)
    with busy(options.progress, f"simulating {moving.name}"):
        return program_run(program, demand, ticks, batch, moving, compiled=options.compiled)


def _ideal_run(
    where: str,
    program: Program,
    given: tuple[Reference, np.ndarray, np.ndarray, int],
    moving: Plant,
    options: Integrator,
) -> Run:
    """Run a loop without imperfections, from the reference, numbers, start and number of steps."""
    started, (demand, *_, steps) = time.perf_counter(), given
    loop, recorder = _prepared(where, program, given, moving, options)
    _look(recorder, loop, 0, 1)
    fault: ConcurError | None = None
    stop: KeyboardInterrupt | None = None
    first = done = 0
    try:
        with track(options.progress, f"simulating {moving.name}", steps) as report:
            while done < steps and fault is None:
                first = done
                done, sound = loop.advance(first)
                _look(recorder, loop, first + 1, loop.finite(done, first))
                fault = _singular(where, loop, first, done)
                if fault is None and not sound:
                    fault = _diverged(where, loop, done)
                report(done)
    except KeyboardInterrupt as error:
        # The steps since the last check may be invalid.
        stop, done = error, first
        if not done:
            raise
    count = loop.finite(done) if fault or stop else steps + 1
    loop.complete(count, done)
    rows = recorder.rows(demand, loop.arrays(count))
    seconds = time.perf_counter() - started
    run = run_of(recorder, rows, options.control_period, options.method, seconds)
    if stop is not None:
        stop.run = run  # type: ignore[attr-defined]
        raise stop
    if fault is not None:
        fault.data["run"] = run
        raise fault
    return run


def program_run(
    program: Program,
    reference: Reference | Callable[[float], ReferenceSample] | None,
    ticks: int,
    world: Batch,
    moving: Plant | None = None,
    rollout: Rollout | None = None,
    compiled: bool | None = None,
) -> Run:
    """Run one world of a program.

    Parameters
    ----------
    program : Program
        The sampled loop.
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
    compiled : bool, optional
        Whether to compile, as of `Integrator`, if no `rollout` is given.

    Returns
    -------
    Run
        The record with a row for each control period; ranges are over these rows, and `u` is the
        command. Its robot is that of the world.

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
    plant, law = program.plant, program.law
    where = f"simulation of `{plant.name}`"
    known = reference_for(reference, law.outputs, where)
    if rollout is None:
        graphs = program.tick, program.step, program.steps_per_tick, program.noises
        machine = is_compiled(where, compiled, ticks * program.steps_per_tick)
        rollout = Rollout(*graphs, interpreted=not machine)
    # One tick more than periods: its state is the last one of the run.
    rows = program.reference(known, ticks + 1)
    found = rollout(world, rows, ticks=ticks + 1, record=1)
    done = min(int(found.stopped[0]), ticks)
    run = None
    if done and found.record is not None:
        x, u = found.record.x[0, : done + 1], found.record.u[0, :done]
        arrays = {name: program.state(x, name) for name in ("q", "v", "load")}
        arrays |= {"u": u[np.minimum(np.arange(done + 1), done - 1)]}
        arrays |= {"t": np.arange(done + 1) * program.control_period}
        arrays |= {"work": program.state(x, "work")[:, 0], "z": program.state(x, "law")[:, KEPT:]}
        seconds = time.perf_counter() - started
        given = known, program.control_period, arrays, program.method, seconds
        run = recorded_run(law, moving or plant, *given, program.imperfections)
    if run is not None and done == ticks:
        return run
    status = int(found.status[0])
    error = SimulationError(
        f"{where}, t = {done * program.control_period:.6g} s",
        expected="a tick that gives torques, and a finite state",
        came="a diverged state" if status < 0 else f"the status {TickStatus(status).name}",
        cure="Lower the gains or the imperfections, or take a shorter step."
        + " The run up to here is in the attribute `run`." * (run is not None),
        time=done * program.control_period,
        status=status,
    )
    if run is not None:
        error.data["run"] = run
    raise error


def _prepared(
    where: str,
    program: Program,
    given: tuple[Reference, np.ndarray, np.ndarray, int],
    moving: Plant,
    options: Integrator,
) -> tuple[Loop, Recorder]:
    """Make the loop and what records it, interpreted or as machine code.

    What steps is the same code for all worlds and steps; what records has the numbers of one world.
    """
    law, fixed, per_tick = program.law, program.method in FIXED_STEP, program.steps_per_tick

    def graphs() -> list[ca.Function]:
        loop = program.advance(most_periods(program)) if fixed else rates_of(program)
        return [loop, *([] if program.plant.n_numbers else recorded_together(law, moving))]

    kind = (program.method, per_tick) if fixed else ("adaptive", bool(per_tick))
    value = (law, program.plant, program.imperfections, *kind)
    made = machine_code(where, options, given[-1], value, graphs)
    function, *recorded = made or (None,)
    recorder = Recorder(law, moving, recorded)
    if fixed:
        return FixedStep(program, *given, function), recorder
    tolerances = options.rtol or 1e-10, options.atol or 1e-12
    return Adaptive(program, *given, moving.robot, function, tolerances), recorder


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


def _diverged(where: str, loop: Loop, done: int) -> ConcurError:
    law, dt, last = loop.program.law, loop.program.dt, loop.finite(done) - 1
    # Leave out the last states if their speed has grown beyond the resolution of a step.
    speeds = np.abs(loop.v[: last + 1]).max(axis=1)
    usual = float(np.median(speeds))
    while last and speeds[last] > 10 * usual and speeds[last] * dt > LEAP:
        last -= 1
    loop.q[last + 1 :] = np.nan
    q, step = loop.q[last], loop.program.control_period
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
        held = loop.program.steps_per_tick
        act = "hold the torque for less than" if held else "take a step below"
        cure = f"Lower the gains, or {act} {1.0 / fastest:.1g} s"
    elif law.linearizes:
        came += f", nearest to lost: {lost_direction(law, q)}"
    return SimulationError(
        f"{where}, t = {last * dt:.6g} s",
        expected="a finite state after the step",
        came=came,
        cure=f"{cure}. The run up to here is in the attribute `run`.",
        time=last * dt,
    )


def _look(recorder: Recorder, loop: Loop, first: int, last: int) -> None:
    """Fill in the margins of some states."""
    if first < last:
        rows = slice(first, last)
        loop.margin[rows], loop.orientation[rows] = recorder.margins(loop.q[rows])


def _singular(where: str, loop: Loop, first: int, done: int) -> ConcurError | None:
    law, dt, rows = loop.program.law, loop.program.dt, slice(first, loop.finite(done, first))
    margins, orientations = loop.margin[rows], loop.orientation[rows]
    crossed = orientations != orientations[0]
    low = np.flatnonzero((margins < law.refused_below) | crossed)
    if not low.size:
        return None
    k = first + int(low[0]) - int(crossed[low[0]])
    q = loop.q[k].copy()
    loop.q[k + 1 :] = np.nan
    came = f"a margin of {margins[k - first]:.3g}"
    if crossed[low[0]]:
        came = f"a singular configuration that the next step jumps over, from {came}"
    return SimulationError(
        f"{where}, t = {k * dt:.6g} s",
        expected=f"a decoupling matrix with margin above {law.singular_margin:.3g}",
        came=f"{came}: {lost_direction(law, q)}",
        cure="Change the reference (`servo.feasibility` gives the motion that it requires), "
        "start nearer to it, or take a shorter step. The run up to here is in the attribute `run`.",
        time=k * dt,
        margin=float(margins[k - first]),
    )
