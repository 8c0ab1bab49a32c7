"""The closed loop in time: `simulate`, and the real plant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Batch
from concur.control import Law, TrackingLaw, singular_error, tracking_law
from concur.errors import SimulationError
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.robot import Mechanism, Worlds, check_contacts, controls, mapping
from concur.simulation._driver import program_run
from concur.simulation._drives import check_friction
from concur.simulation._imperfections import Imperfections, Scalar
from concur.simulation._integrator import FASTEST, FIXED_STEP, Integrator, grid, shape_start
from concur.simulation._plant import Plant
from concur.simulation._program import ideal_program, loop_program
from concur.simulation._run import Run
from concur.simulation._slip import check_step
from concur.system import System


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
    if isinstance(moving.robot, Mechanism):
        # Wheels that follow guides fit those of the world.
        there = q if numbers is None else np.asarray(moving.robot.normalize(q))
        check_contacts(moving.robot, there, "`q0`")
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
    if margin < law.margins.refused_below:
        raise singular_error(law, q, margin)
    delays = program.delays(deviations)
    ticks = -(-steps // (program.steps_per_tick or 1))
    if not ideal:
        ticks, _ = grid(where, duration, program.control_period, None)
    batch = Batch(x0, p, [real.number], real.seed, *delays)
    return program_run(program, demand, ticks, batch, moving, options=options, steps=steps)


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
