"""One world of a sampled loop with imperfections, in time and with a full record."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Batch, Rollout
from concur.control import TickStatus
from concur.errors import SimulationError
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.robot import Worlds
from concur.simulation._machine_code import is_compiled
from concur.simulation._program import KEPT, Program
from concur.simulation._recorded import recorded_run
from concur.simulation._run import Run


def program_run(
    program: Program,
    reference: Reference | Callable[[float], ReferenceSample] | None,
    ticks: int,
    x0: ArrayLike,
    p: ArrayLike | None = None,
    delay: float = 0.0,
    jitter: float = 0.0,
    *,
    seed: int = 0,
    number: int = 0,
    world: Worlds | None = None,
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
    x0 : array_like
        State at the start, a row of `Program.start`, shape (nx,).
    p : array_like, optional
        Numbers of the world, a row of `Program.numbers`, shape (np,); default nominal.
    delay, jitter : float
        Latency and jitter, control periods.
    seed, number : int
        Seed, and number of the world: the key of jitter and noise.
    world : mapping, optional
        Deviations of the robot, as for `Plant.numbers`: p must belong to them.
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
    >>> from concur.simulation import Imperfections, loop_program, program_run
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [base], stiffness=4, damping=4)
    >>> program = loop_program(servo, cc.Plant(robot), Imperfections.of(robot, viscous=0.1))
    >>> x0 = program.start(robot.neutral(), [0.0] * 5)[0]
    >>> run = program_run(program, cc.references.hold([0.3, 0.0]), 10, x0)
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
    numbers = program.numbers() if p is None else np.atleast_2d(p)
    batch = Batch(np.atleast_2d(x0), numbers, [number], seed, delay, jitter)
    found = rollout(batch, rows, ticks=ticks + 1, record=1)
    done = min(int(found.stopped[0]), ticks)
    run = None
    if done and found.record is not None:
        x, u = found.record.x[0, : done + 1], found.record.u[0, :done]
        moving = plant
        if plant.n_numbers:
            moving = plant.of_world(world or {})
        arrays = {name: program.state(x, name) for name in ("q", "v", "load")}
        arrays |= {"u": u[np.minimum(np.arange(done + 1), done - 1)]}
        arrays |= {"t": np.arange(done + 1) * program.control_period}
        arrays |= {"work": program.state(x, "work")[:, 0], "z": program.state(x, "law")[:, KEPT:]}
        seconds = time.perf_counter() - started
        given = known, program.control_period, arrays, program.method, seconds
        run = recorded_run(law, moving, *given, program.imperfections)
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
