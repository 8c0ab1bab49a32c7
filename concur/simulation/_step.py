"""One fixed step of the closed loop as one function."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import casadi as ca

from concur.codegen import Array, Evaluator, Vector, normalised
from concur.control import TrackingLaw
from concur.simulation._friction import HeldShares
from concur.simulation._plant import Plant
from concur.simulation._runge_kutta import stepped


def closed_loop(servo: TrackingLaw, plant: Plant, held: bool) -> ca.Function:
    """Rates of the closed loop in one graph that shares what law and plant have in common.

    (q, v, command...) to (vdot, power, pivot, u, missed, scale); the command is u when held, else
    what the law takes as `sampled`, and the state z of a law that has one, the rate of which comes
    after the power. Uncertain numbers p of the plant, then the loads of wheels that slip, and then
    the shares of dry friction stand before the command; the rates of the loads
    come last behind the power.
    """
    kind = ca.SX if held else servo.symbols
    q, v = kind.sym("q", servo.nq), kind.sym("v", plant.nv)
    numbers = [kind.sym("p", plant.n_numbers)] if plant.n_numbers else []
    loads = [kind.sym("loads", plant.nl)] if plant.nl else []
    friction = plant.friction
    shares = [kind.sym("share", plant.nu)] if friction is not None and friction.dry else []
    # Within a step of an integrator quaternions leave the unit sphere.
    unit, _ = normalised(q, plant.quaternions)
    if held:
        u = kind.sym("u", servo.nu)
        command = [u]
        torque, pivot, missed, scale = u, kind(1), kind(0), kind(1)
        moving = [kind.zeros(servo.nz)] if servo.nz else []
    else:
        command = [kind.sym(name, size) for name, size in servo.sampled.items()]
        command += [kind.sym("z", servo.nz)] if servo.nz else []
        given = [unit, servo.law_velocities(v), *command]
        torque, pivot, missed, scale, *moving = servo.graph().call(given)
    own = numbers[0] if numbers else kind(0, 1)
    speeds, left = plant.speed_function()(unit, v, own), torque
    if friction is not None:
        left, plant = friction.left(torque, speeds, *shares), replace(plant, friction=None)
    if plant.slip is not None:
        load = loads[0] if loads else kind(0, 1)
        vdot, _, rate = plant.slip_acceleration(unit, v, load, left, own)
        moving.append(rate)
    elif numbers:
        vdot, _ = plant.world_acceleration(unit, v, left, *numbers)
    else:
        vdot, _ = plant.acceleration(unit, v, left)
    power = ca.vertcat(ca.dot(torque, speeds), *moving)
    names = ["u"] if held else [*servo.sampled, *(["z"] if servo.nz else [])]
    return ca.Function(
        "closed_loop",
        [q, v, *numbers, *loads, *shares, *command],
        [ca.densify(part) for part in (vdot, power, pivot, torque, missed, scale)],
        [
            *("q", "v"),
            *(["p"] if numbers else []),
            *(["loads"] if loads else []),
            *(["share"] if shares else []),
            *names,
        ],
        ["vdot", "power", "pivot", "torque", "missed", "scale"],
        {"cse": kind is ca.SX},
    )


def step_function(
    servo: TrackingLaw, plant: Plant, method: str, held: bool, stages: bool = False
) -> Evaluator:
    """One step of the closed loop, to be called.

    Parameters
    ----------
    servo : TrackingLaw
        The law.
    plant : Plant
        What it drives.
    method : str
        "rk4" or "rkmk4".
    held : bool
        Whether the control is held over the step.
    stages : bool
        Whether the extremes over the stages are outputs too.

    Returns
    -------
    Evaluator
        Inputs of `step_graph`, and of its outputs the first four; with `stages` also the last two.
        If quantities of the plant are uncertain, the values of `Plant.numbers` are the fifth input.
    """
    graph = step_graph(servo, plant, method, held)
    symbols = graph.mx_in()
    kept = [0, 1, 2, 3, *([7, 8] if stages else [])]
    results, names = graph.call(symbols), graph.name_out()
    function = ca.Function(
        graph.name(),
        symbols,
        [results[i] for i in kept],
        graph.name_in(),
        [names[i] for i in kept],
    )
    reach = (servo.nq + plant.nv + servo.nu,)
    shapes = [
        (servo.nq,),
        (plant.nv,),
        (1 + servo.nz + plant.nl,),
        (),
        *([reach, reach] if stages else []),
    ]
    return Evaluator(function, shapes, f"step of `{plant.name}`")


def step_graph(servo: TrackingLaw, plant: Plant, method: str, held: bool) -> ca.Function:
    """One step of the closed loop.

    Inputs (q, v, work, h, p, command...): p only where quantities of the plant are uncertain; the
    work with the law's state z behind it, which is constant when held, and then loads of wheels
    that slip, (1 + nz + nl,); the command is u
    when held, else what the law takes as `sampled` at the
    start, the middle and the end of the step, as three columns each. Outputs (q, v, work, pivot,
    torque, missed, scale, low, high): the state after the step, the smallest pivot met, the law at
    the start of the step, and the smallest and the largest (q, v, u) of all stages.
    """
    rates = closed_loop(servo, plant, held)
    q, v = ca.MX.sym("q", servo.nq), ca.MX.sym("v", plant.nv)
    work, h = ca.MX.sym("work", 1 + servo.nz + plant.nl), ca.MX.sym("h")
    numbers = [ca.MX.sym("p", plant.n_numbers)] if plant.n_numbers else []
    if held:
        command = [ca.MX.sym("u", servo.nu)]
    else:
        command = [ca.MX.sym(name, size, 3) for name, size in servo.sampled.items()]

    own, friction = numbers[0] if numbers else ca.MX(0, 1), plant.friction
    shares = None
    if friction is not None and friction.dry:
        shares = HeldShares(plant.sticking_functions(), plant.nu)
    pivots, given, stages = [ca.MX(1)], list[ca.MX](), list[ca.MX]()

    def forces(node: float, q: Vector, v: Vector, work: Vector) -> tuple[Array, Array]:
        column = 0 if held else round(2 * node)
        state = [work[1 : 1 + servo.nz, :]] if servo.nz and not held else []
        loads = [work[1 + servo.nz :, :]] if plant.nl else []
        demand = [*(part[:, column] for part in command), *state]
        before = [shares.share] if shares else []
        vdot, power, pivot, *law = rates(q, v, *numbers, *loads, *before, *demand)
        pushed = loads[0] if loads else ca.MX(0, 1)
        for change in shares.slowed(q, v, pushed, law[0], vdot, own, h) if shares else []:
            vdot += change
        pivots.append(pivot)
        stages.append(ca.vertcat(q, v, law[0]))
        given.extend(law)
        return vdot, power

    def stop(q: ca.MX, v: ca.MX, work: ca.MX) -> tuple[ca.MX, ...]:
        assert shares is not None
        jump, faster = shares.stopped(q, v, own, h=h)
        return jump, ca.vertcat(work[0] + h / 2 * ca.dot(given[0], faster), work[1:, 0])

    normalize = plant.normalize_function()
    q_next, v_next, work_next = stepped(
        plant.robot,
        method,
        forces,
        [q, v, work],
        h,
        lambda q: normalize(q, own),
        stop if shares else None,
    )
    return ca.Function(
        f"step_{method}",
        [q, v, work, h, *numbers, *command],
        [
            *(q_next, v_next, work_next, reduce(ca.fmin, pivots), *given[:3]),
            *(reduce(least, stages) for least in (ca.fmin, ca.fmax)),
        ],
        [
            *("q", "v", "work", "h"),
            *(["p"] if numbers else []),
            *(["u"] if held else servo.sampled),
        ],
        ["q_next", "v_next", "work_next", "pivot", "torque", "missed", "scale", "low", "high"],
    )
