"""Public calls with wrong values."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import concur as cc
from concur.groups import se3, so3
from hil.emulator import Fault as EmulatedFault
from hil.record import Record
from hil.rig import load_rig
from tests.fuzz._mutate import wrong
from tests.fuzz._watch import Fault, watch

ROOT = Path(__file__).parents[2]
Call = tuple[str, Callable[..., Any], dict[str, Any]]

EVALUATED = (
    *("mass_matrix", "bias", "jacobian", "pose", "forward", "twist", "configuration"),
    *("kinetic_energy", "potential_energy", "momentum", "momentum_matrix", "integrate"),
    *("difference", "rate", "inverse_dynamics", "constraints", "normalize", "velocity_product"),
)


def _sound(folder: Path) -> list[Call]:
    """Calls with the arguments that they expect."""
    task = cc.load_task(ROOT / "examples" / "rover_arm.toml")
    servo = task.servo
    robot, model, outputs = task.robot, servo.model, list(task.outputs)
    floating = cc.robots.planar_floater()
    drift = cc.reduce(floating)
    q0, s0 = task.q0, task.shape_velocities(servo)
    v0 = model.velocity(q0, s0)
    sample = task.reference(0.0)
    base = cc.Body("base", cc.joints.Planar(), inertia=cc.Inertia(2.0, moments=(1.0, 1.0, 1.0)))
    arm = cc.Body("arm", cc.joints.Revolute((0, 0, 1)), "base", inertia=base.inertia)
    path = cc.references.waypoints([0.0, 1.0, 2.0], [[0.0], [0.5], [1.0]])
    still = cc.references.hold([1.0, 2.0, 3.0])
    pose = cc.references.hold([0, 0, 0, 0, 0, 0, 1], "SE3")
    calls: list[Call] = [
        ("Pose", cc.Pose, {"translation": (0, 0, 1), "rotation": (0, 0, 0, 1)}),
        ("Inertia", cc.Inertia, {"mass": 1.0, "com": (0, 0, 0), "moments": (1, 1, 1)}),
        (
            "Body",
            cc.Body,
            {
                "name": "arm",
                "joint": arm.joint,
                "parent": "base",
                "placement": cc.Pose(),
                "inertia": base.inertia,
                "limits": (-1.0, 1.0),
            },
        ),
        (
            "Wheel",
            cc.Wheel,
            {
                "body": "arm",
                "radius": 0.1,
                "kind": "mecanum",
                "roller_angle": 0.7,
                "axis": (0, 1, 0),
                "center": (0, 0, 0),
                "ground": 0.0,
            },
        ),
        (
            "Mechanism",
            cc.Mechanism,
            {
                "name": "r",
                "bodies": [base, arm],
                "wheels": (),
                "gravity": (0, 0, -9.81),
                "actuated": ["arm"],
            },
        ),
        (
            "helical_plane",
            cc.robot.helical_plane,
            {"name": "h", "normal": (0, 0, 1), "pitch": 0.1},
        ),
        ("Revolute", cc.joints.Revolute, {"axis": (0, 0, 1)}),
        ("Prismatic", cc.joints.Prismatic, {"axis": (0, 0, 1)}),
        ("Helical", cc.joints.Helical, {"axis": (0, 0, 1), "pitch": 0.1}),
        ("Cylindrical", cc.joints.Cylindrical, {"axis": (0, 0, 1)}),
        ("Sliding", cc.joints.Sliding, {"normal": (0, 0, 1)}),
        ("Planar", cc.joints.Planar, {"normal": (0, 0, 1)}),
        ("PlanarPrismatic", cc.joints.PlanarPrismatic, {"normal": (0, 0, 1)}),
        (
            "Output",
            cc.Output,
            {
                "name": "o",
                "body": "arm",
                "group": "SE2",
                "point": (0, 0, 0),
                "axes": None,
                "orientation": (0, 0, 0, 1),
                "normal": (0, 0, 1),
            },
        ),
        (
            "ReferenceSample",
            cc.ReferenceSample,
            {"pose": [0.0], "twist": [0.0], "acceleration": [0.0]},
        ),
        (
            "Redundancy",
            cc.control.Redundancy,
            {
                "weight": "energy",
                "objective": "posture",
                "stiffness": 1.0,
                "damping": 2.0,
                "posture": {"arm": 0.1},
                "base_weight": 10.0,
            },
        ),
        ("Plant", cc.Plant, {"robot": robot, "stabilisation": 10.0}),
        (
            "Servo",
            cc.Servo,
            {
                "model": model,
                "outputs": outputs,
                "stiffness": task.stiffness,
                "damping": task.damping,
                "inertia": None,
                "singular_margin": 1e-3,
                "redundancy": None,
                "damping_threshold": None,
                "torque_limits": 20.0,
                "use_measured_velocity": False,
            },
        ),
        ("reduce", cc.reduce, {"robot": floating, "momentum": np.zeros(6), "stages": None}),
        (
            "design_gains",
            cc.design_gains,
            {"outputs": outputs, "settling_time": 1.0},
        ),
        ("loop_margins", cc.control.loop_margins, {"servo": servo}),
        ("conservation", cc.reduction.conservation, {"model": drift, "joint": "upper_arm"}),
        (
            "simulate",
            cc.simulate,
            {
                "robot": robot,
                "servo": servo,
                "reference": task.reference,
                "duration": 0.02,
                "q0": q0,
                "s0": s0,
                "dt": 0.01,
                "plant": None,
            },
        ),
        (
            "Integrator",
            cc.simulation.Integrator,
            {"method": "rk4", "dt": 0.01, "control_period": None, "compiled": False},
        ),
        (
            "forced_motion",
            cc.simulation.forced_motion,
            {
                "model": drift,
                "torque": lambda t, q, s: np.zeros(drift.nu),
                "duration": 0.02,
                "q0": floating.neutral(),
                "s0": np.zeros(drift.ns),
                "dt": 0.01,
            },
        ),
        (
            "reconstruct",
            cc.simulation.reconstruct,
            {
                "model": drift,
                "q0": floating.neutral(),
                "times": [0.0, 0.1],
                "speeds": lambda t: np.zeros(drift.ns),
                "rtol": 1e-6,
                "atol": 1e-6,
            },
        ),
        (
            "singularities",
            cc.singularities,
            {"robot": robot, "outputs": outputs, "q": q0, "model": model, "threshold": 1e-3},
        ),
        ("load", cc.load, {"path": ROOT / "examples" / "my_robot.toml"}),
        ("load_task", cc.load_task, {"path": ROOT / "examples" / "rover_arm.toml"}),
        ("load_rig", load_rig, {"path": ROOT / "examples" / "rover_rig" / "rig.toml"}),
        ("recheck", cc.recheck, {"path": folder / "none.json"}),
        ("Record.load", Record.load, {"folder": folder / "none"}),
        ("Fault", EmulatedFault, {"kind": "drop", "axis": "*", "at": 0.0, "probability": 0.5}),
        ("servo.torque", servo.torque, {"q": q0, "s": s0, "sample": sample}),
        ("servo.error", servo.error, {"q": q0, "s": s0, "sample": sample}),
        ("servo.margin", servo.margin, {"q": q0}),
        ("servo.decoupling", servo.decoupling, {"q": q0}),
        ("model.velocity", model.velocity, {"q": q0, "s": s0}),
        ("model.mass_matrix", model.mass_matrix, {"q": q0}),
        ("model.acceleration", model.acceleration, {"q": q0, "s": s0, "u": np.zeros(model.nu)}),
        ("se3.exp", se3.exp, {"twist": np.zeros(6)}),
        ("so3.exp", so3.exp, {"w": np.zeros(3)}),
        ("robot.check_configuration", robot.check_configuration, {"q": q0}),
        ("robot.index", robot.index, {"body": "turret"}),
        ("references.hold", cc.references.hold, {"point": [0.0, 1.0], "group": None}),
        (
            "references.polynomial",
            cc.references.polynomial,
            {"coefficients": [[0.0], [1.0]], "start": None, "group": None},
        ),
        (
            "references.rest_to_rest",
            cc.references.rest_to_rest,
            {"start": [0.0], "end": [1.0], "duration": 1.0, "begin": 0.0, "group": None},
        ),
        (
            "references.circle",
            cc.references.circle,
            {
                "center": [0.0, 0.0, 0.0],
                "radius": 1.0,
                "period": 2.0,
                "normal": (0, 0, 1),
                "phase": 0.0,
                "attitude": (0, 0, 0, 1),
                "turning": True,
                "group": "SE3",
            },
        ),
        (
            "references.waypoints",
            cc.references.waypoints,
            {"times": [0.0, 1.0], "points": [[0.0], [1.0]], "rates": None, "group": None},
        ),
        (
            "references.screw",
            cc.references.screw,
            {"start_pose": np.eye(4), "twist": np.ones(6), "group": "SE3", "frame": "body"},
        ),
        ("references.moving", cc.references.moving, {"reference": pose, "twist": np.ones(6)}),
        (
            "references.drifting",
            cc.references.drifting,
            {"reference": still, "velocity": [1, 0, 0]},
        ),
        (
            "references.stack",
            lambda first, second: cc.references.stack(first, second),
            {"first": path, "second": still},
        ),
        (
            "references.relative",
            cc.references.relative,
            {"reference": still, "to": path, "components": [0]},
        ),
        ("references.composed", cc.references.composed, {"base": pose, "group": "SE3"}),
        ("references.planar", cc.references.planar, {"reference": still}),
        ("reference(t)", task.reference.__call__, {"t": 0.5}),
        ("path(t)", path.__call__, {"t": 0.5}),
    ]
    for name in EVALUATED:
        method = getattr(robot, name)
        known = {
            **{
                "q": q0,
                "v": v0,
                "dv": v0,
                "q0": q0,
                "q1": q0,
                "body": "turret",
                "point": (0, 0, 0),
            },
            **{"acceleration": v0, "vdot": v0, "s": s0, "a": v0, "b": v0, "coordinates": q0},
        }
        needed = [n for n in inspect.signature(method).parameters if n in known]
        calls.append((f"robot.{name}", method, {n: known[n] for n in needed}))
    return calls


def fuzz_calls(folder: Path, count: int, seed: int, only: str = "") -> Iterator[Fault]:
    """Call everything public with one or two wrong values.

    Parameters
    ----------
    folder : Path
        A folder, in which nothing is written.
    count : int
        How many calls.
    seed : int
        Of the choices: call k is the same whatever the count.
    only : str
        The only call; all if empty.

    Yields
    ------
    Fault
        One for each call that did not end in a result or an error of ours.
    """
    calls = [call for call in _sound(folder) if only in ("", call[0])]
    for name, function, sound in calls:
        fault = watch(f"{name} as it should be", lambda f=function, a=sound: f(**a))
        if fault is not None:
            yield fault
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        name, function, sound = calls[number % len(calls)]
        given = dict(sound)
        for argument in rng.sample(sorted(sound), min(len(sound), rng.choice((1, 1, 2)))):
            spoilt = _spoilt(sound[argument], rng)
            given[argument] = wrong(rng, folder) if spoilt is None else spoilt
        changed = {n: v for n, v in given.items() if v is not sound[n]}
        told = ", ".join(f"{n}={_told(v)}" for n, v in changed.items())
        fault = watch(f"{number} {name}({told})", lambda f=function, a=given: f(**a))
        if fault is not None:
            yield fault


def _spoilt(value: Any, rng: random.Random) -> Any:
    """An array of the right shape with one wrong number, half the time."""
    if rng.random() < 0.5:
        return None
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        return None
    if not array.size:
        return None
    array.flat[rng.randrange(array.size)] = rng.choice(
        (np.nan, np.inf, 1e300, 1e200, 1e30, 1e18, 1e9, 1e6, 1e-12, 5e-324, -1.0, 0.0)
    )
    return array if array.ndim else array.item()


def _told(value: Any) -> str:
    try:
        return f"{value!r:.60}"
    except ValueError:
        return "a huge number"
