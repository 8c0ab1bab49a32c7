"""The closed loop in time: law and full-order plant."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur._progress import busy, track
from concur.control import Law, TrackingLaw, lost_direction, singular_error, tracking_law
from concur.errors import ConcurError, SimulationError
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.robot import Mechanism, Worlds, controls, mapping
from concur.simulation._imperfections import Imperfections, Scalar
from concur.simulation._integrator import FIXED_STEP, Integrator
from concur.simulation._loop import Adaptive, FixedStep, Loop, most_periods, rates_of
from concur.simulation._machine_code import is_compiled, machine_code
from concur.simulation._plant import Plant
from concur.simulation._program import FORCE_UNIT, Program, ideal_program, loop_program
from concur.simulation._program_run import program_run
from concur.simulation._record import Recorder, recorded_together
from concur.simulation._recorded import run_of
from concur.simulation._run import Run
from concur.simulation._slip import check_step
from concur.simulation._start import FASTEST, grid, shape_start
from concur.simulation._stiffness import check_friction
from concur.system import System

LEAP = 0.5
"""Distance per step, m or rad, from which on a sudden speed is no longer believed."""


def simulate(
    robot: System,
    servo: Law,
    reference: Reference | Callable[[float], ReferenceSample] | None,
    duration: float,
    q0: ArrayLike,
    s0: ArrayLike,
    dt: float | None = None,
    plant: System | Plant | None = None,
    *,
    progress: bool | Callable[[float], Any] = False,
    momentum: ArrayLike | None = None,
    integrator: Integrator | None = None,
    world: Worlds | None = None,
    imperfections: Imperfections | None = None,
    deviations: Mapping[Scalar, float] | None = None,
    seed: int = 0,
    number: int = 0,
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
    dt : float, optional
        Step of integration and recording, s, where no `integrator` is given; default 1e-3.
    plant : System or Plant, optional
        What moves, if it is not the robot itself: the same joints with other parameters.
    progress : bool or callable
        Show a progress bar, or call with the fraction done.
    momentum : array_like, optional
        True spatial momentum of a floating robot, shape (6,), kg m/s and kg m^2/s, if it differs
        from that of the servo's model.
    integrator : Integrator, optional
        Method, step, period of a sampled law, and whether to run machine code. Fixed steps have to
        resolve the friction of the plant, see `check_friction`; adaptive methods choose steps by
        their error, so that no friction is too stiff for them.
    world : mapping, optional
        Deviations of the uncertain numbers of the plant, as for `Plant.numbers`, of one world;
        default the nominal one.
    imperfections : Imperfections, optional
        Friction, lags, delays, noise and disturbances. The law is then sampled, by default in each
        step, and the record has one row for each control period. A `momentum` takes the place of
        their momentum error.
    deviations : mapping, optional
        Deviations of imperfections from their values by kind and name, as for `Program.numbers`
        and `Program.delays`: those of one world of a campaign.
    seed, number : int
        Seed, and number of the world, of jitter and noise.

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
    started = time.perf_counter()
    law = tracking_law(servo, "simulate, `servo`")
    stepped = _plant(robot, law, plant)
    moving, numbers = stepped, None
    if world is not None or stepped.n_numbers:
        deviating = {} if world is None else world
        numbers = stepped.numbers(deviating)[0]
        moving = stepped.of_world(deviating)
    where = f"simulation of `{moving.name}`"
    demand = reference_for(reference, law.outputs, where)
    options = _options(integrator, dt)
    dt, hold = options.dt, options.control_period
    if options.method in FIXED_STEP:
        check_step(where, stepped.slip, dt)
        check_friction(moving, dt)
    steps, per_hold = grid(where, duration, dt, hold)
    if hold is not None:
        law.check_period(f"{where}, `control_period`", hold)
    q = stepped.robot.check_configuration(q0, "`q0`")
    if numbers is not None:
        q = np.asarray(
            moving.robot.normalize(q)
        )  # wheels that follow guides fit those of the world
    if isinstance(moving.robot, Mechanism):
        moving.robot.check_contacts(q, "`q0`")
    s = shape_start(where, law.model, s0)
    v = _start_velocity(where, law, moving, q, s, momentum)
    margin = law.margin(q)
    if margin < law.refused_below:
        raise singular_error(law, q, margin)

    deviations = mapping(f"{where}, `deviations`", {} if deviations is None else deviations)
    if imperfections is not None or deviations:
        period = hold or dt
        ticks, _ = grid(where, duration, period, None)
        given = imperfections, tuple(deviations), dt, period
        program = loop_program(law, stepped, *given, options.method)
        p = program.numbers(None if numbers is None else numbers[None], deviations)
        x0 = program.start(q, s, momentum, p)
        delay, jitter = (float(times[0]) for times in program.delays(deviations))
        with busy(progress, f"simulating {moving.name}"):
            return program_run(
                program,
                demand,
                ticks,
                x0[0],
                p[0],
                delay,
                jitter,
                seed=seed,
                number=number,
                world=world,
                compiled=options.compiled,
            )

    program = ideal_program(law, stepped, options.method, dt, per_hold)
    p = np.zeros(0) if numbers is None else numbers
    x = np.zeros(program.nx)
    x[program.states["q"]], x[program.states["v"]] = q, v
    x[program.states["load"]] = _start_loads(moving, q, v) / FORCE_UNIT
    loop, recorder = _prepared(where, program, (demand, p, x, steps), moving, progress, options)
    _look(recorder, loop, 0, 1)
    fault: ConcurError | None = None
    stop: KeyboardInterrupt | None = None
    first = done = 0
    try:
        with track(progress, f"simulating {moving.name}", steps) as report:
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
    run = run_of(recorder, rows, hold, options.method, time.perf_counter() - started)
    if stop is not None:
        stop.run = run  # type: ignore[attr-defined]
        raise stop
    if fault is not None:
        fault.data["run"] = run
        raise fault
    return run


def _options(integrator: Integrator | None, dt: float | None) -> Integrator:
    """The integrator, also from a step alone."""
    if integrator is None:
        return Integrator() if dt is None else Integrator(dt=dt)
    if not isinstance(integrator, Integrator) or dt is not None:
        raise SimulationError(
            "simulate, `integrator`",
            expected="an Integrator, which holds all options",
            came=f"{integrator!r:.40}" if dt is None else "`dt` beside it",
            cure="Write integrator=Integrator(dt=0.005).",
        )
    return integrator


def _prepared(
    where: str,
    program: Program,
    given: tuple[Reference, np.ndarray, np.ndarray, int],
    moving: Plant,
    progress: bool | Callable[[float], Any],
    options: Integrator,
) -> tuple[Loop, Recorder]:
    """Make the loop and what records it, interpreted or as machine code.

    What steps is the same code for all worlds and steps; what records has the numbers of one world.
    """
    law, fixed, per_tick = program.law, program.method in FIXED_STEP, program.steps_per_tick

    def graphs() -> list[ca.Function]:
        loop = program.advance(most_periods(program)) if fixed else rates_of(program)
        return [loop, *([] if program.plant.n_numbers else recorded_together(law, moving))]

    made = None
    if is_compiled(where, options.compiled, given[-1]):
        kind = (program.method, per_tick) if fixed else ("adaptive", bool(per_tick))
        value = (law, program.plant, program.imperfections, *kind)
        made = machine_code(where, value, graphs, progress, demanded=bool(options.compiled))
    function, *recorded = made or (None,)
    recorder = Recorder(law, moving, recorded)
    if fixed:
        return FixedStep(program, *given, function), recorder
    return Adaptive(program, *given, moving.robot, function), recorder


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
    if not isinstance(system, Mechanism):
        return _alike(servo, plant)
    robot, other = system, plant.tree
    same = [(b.name, b.parent, type(b.joint)) for b in robot.bodies] == [
        (b.name, b.parent, type(b.joint)) for b in other.bodies
    ]
    driven = [(r.actuated, r.control_names, r.mimics, r.steering) for r in (robot, other)]
    if not same or driven[0] != driven[1]:
        raise SimulationError(
            f"simulation of `{other.name}`, `plant`",
            expected=f"the bodies, joints and drives of `{robot.name}`",
            came=f"another structure: {', '.join(b.name for b in other.bodies)}",
            cure="A plant may differ in parameters only.",
        )
    return plant


def _alike(servo: TrackingLaw, plant: Plant) -> Plant:
    """A plant without bodies, of the servo's coordinates, velocities and controls."""
    known, other = servo.model.system, plant.robot
    parts = [(x.nq, x.freedom_names, x.constraint_names, controls(x)) for x in (known, other)]
    if type(known) is not type(other) or parts[0] != parts[1]:
        raise SimulationError(
            f"simulation of `{other.name}`, `plant`",
            expected=f"the coordinates, velocities, constraints and inputs of `{known.name}`",
            came=f"another structure: {', '.join(other.freedom_names)}",
            cure="A plant may differ in parameters only.",
        )
    return plant


def _start_velocity(
    where: str,
    servo: TrackingLaw,
    plant: Plant,
    q: np.ndarray,
    s: np.ndarray,
    momentum: ArrayLike | None,
) -> np.ndarray:
    """Lift the shape velocities as what moves does: without slip, at its own momentum."""
    model = servo.model
    if momentum is not None:
        if not model.takes_momentum:
            raise SimulationError(
                f"{where}, `momentum`",
                expected="none, for a robot that does not float",
                came=str(momentum),
                cure="Leave it out.",
            )
        model = model.at_momentum(momentum)
    if _differs(plant.robot, model.system):
        model = model.on(plant.robot)
    v = np.asarray(model.velocity(q, s))
    if not np.abs(v).max() < FASTEST:
        raise SimulationError(
            f"{where}, start",
            expected=f"velocities below {FASTEST:g} m/s or rad/s",
            came=f"{np.abs(v).max():.3g}, which follow from the shape velocities and the momentum",
            cure="Give SI units; check masses and momentum.",
        )
    return v


def _differs(one: System, other: System) -> bool:
    """Whether two systems can have other velocities for the same shape velocities."""
    if isinstance(one, Mechanism) and isinstance(other, Mechanism):
        return one.wheels != other.wheels or one.bodies != other.bodies
    return one is not other


def _start_loads(plant: Plant, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Loads of wheels that slip, with all velocities constant."""
    if not plant.nl:
        return np.zeros(0)
    return np.asarray(plant.loads(q, v, np.zeros(plant.nv), np.zeros(0)))


def _diverged(where: str, loop: Loop, done: int) -> ConcurError:
    law, dt, last = loop.program.law, loop.program.dt, loop.finite(done) - 1
    # Leave out the last states if their speed has grown beyond the resolution of a step.
    speeds = np.abs(loop.v[: last + 1]).max(axis=1)
    usual = float(np.median(speeds))
    while last and speeds[last] > 10 * usual and speeds[last] * dt > LEAP:
        last -= 1
    loop.q[last + 1 :] = np.nan
    q, held = loop.q[last], loop.program.steps_per_tick
    step = loop.program.control_period
    shorter = f", hold the torque for less than {step:g} s" if held else ""
    margin = law.margin(q)
    came = f"a singular law or a diverged state; margin before it {margin:.3g}"
    cure = (
        "Check that the reference is feasible (`servo.feasibility`), lower the gains, take a "
        f"shorter step{shorter}"
    )
    fastest = float(np.abs(np.linalg.eigvals(law.error_dynamics.matrix)).max(initial=0.0))
    if margin > 0.1 and fastest * step > 2.0:
        # The law is far from singular, but too fast for explicit steps or held torques.
        came = (
            f"a diverged state; the law's fastest rate {fastest:.3g} /s is too stiff for steps of "
            f"{step:.3g} s (margin before it {margin:.3g}, far from singular)"
        )
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
