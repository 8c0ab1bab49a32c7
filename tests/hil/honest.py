"""Rigs on which nothing is wrong, drawn by a seed: robots, motors, encoders, drives, rates, paths.

The numbers of every axis are drawn on their own, log-uniformly: gears from 1 to 200, encoders of
1024 to 2^20 counts, units of torque, signs, friction. The rate is from 100 to 2000 Hz. Paths
reverse, creep and rest.
"""

from __future__ import annotations

import math
import os
import tomllib
from pathlib import Path

import numpy as np

from tests.hil.rig.test_rig import written

SEED = int(os.environ.get("CONCUR_SEED", "0"))
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"

MOST_CYCLES = 2500
"""Cycles of a run: paths at high rates are shorter."""

ROBOTS = ("rover", "six axes", "rover on MIT", "floater", "mecanum", "swerve")
FILES = {
    "rover": (EXAMPLES / "rover_rig/robot.toml", EXAMPLES / "rover_rig/task.toml"),
    "six axes": (HERE / "six_axes/robot.toml", HERE / "six_axes/task.toml"),
    "floater": (EXAMPLES / "floater_rig/robot.toml", EXAMPLES / "floater_rig/task.toml"),
    "mecanum": (EXAMPLES / "drives/mecanum.toml", EXAMPLES / "drives/mecanum_task.toml"),
    "swerve": (EXAMPLES / "drives/swerve.toml", EXAMPLES / "drives/swerve_task.toml"),
}
WHEEL, ARM = (8.0, 10.0), (12.0, 3.0)
"""Largest torque, N m, and speed, rad/s, of wheels and joints where files give none."""

JOINTS = {
    "six axes": dict(
        zip(
            ("left_wheel", "right_wheel", "yaw", "shoulder", "elbow", "wrist"),
            ((10.0, 20.0), (10.0, 20.0), (30.0, 3.0), (50.0, 3.0), (30.0, 3.0), (10.0, 3.0)),
            strict=True,
        )
    ),
    "mecanum": dict.fromkeys(("front_left", "front_right", "rear_left", "rear_right"), (3.0, 20.0))
    | {"mast": (3.0, 3.0)},
    "swerve": {
        f"{kind}_{place}": {"steer": (6.0, 6.0), "wheel": (6.0, 20.0)}[kind]
        for place in ("fl", "fr", "rl", "rr")
        for kind in ("steer", "wheel")
    },
}


def tables(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _spread(rng, low, high):
    """Draw log-uniformly."""
    return float(math.exp(rng.uniform(math.log(low), math.log(high))))


def _motor(rng, joint, ends, largest, protocol, period):
    """Motor and drive of a joint with its ends, and its largest torque and speed, each drawn."""
    torque, speed = largest
    mit = protocol == "mit"
    gear = float(f"{_spread(rng, 1.0, 200.0):.4g}")
    watchdog = 0.1
    if mit:  # turns are counted even if reports are lost for the time of the watchdog
        watchdog = max(0.02, 3.0 * period)
        span = ends[1] - ends[0]
        gear = min(gear, 6.0 / (speed * watchdog), 20.0 / span if span else math.inf)
    largest = torque / gear
    coulomb = float(rng.choice([0.0, 0.01, 0.04])) * largest
    motor = {
        "name": joint,
        "joints": joint,
        "gear": gear,
        "torque": largest,
        "speed": speed * gear,
        "coulomb": coulomb,
        "stribeck": float(rng.choice([0.0, 0.5])) * coulomb,
        "viscous": float(rng.choice([0.0, 0.02])) * largest / (speed * gear),
    }
    axis = {
        "name": joint,
        "drive": protocol,
        "watchdog": watchdog,
        "direction": int(rng.choice([-1, 1])),
        "offset": (sum(ends) / 2.0) * gear + float(rng.uniform(-1.0, 1.0)),
        "torque_rate_limit": 50.0 * largest,
    }
    if mit:
        span = largest * rng.uniform(1.1, 2.5)
        axis["ranges"] = {
            "position": [-12.5, 12.5],
            "velocity": [-1.5 * speed * gear, 1.5 * speed * gear],
            "torque": [-span, span],
            "kp": [0.0, 500.0],
            "kd": [0.0, 5.0],
        }
        return motor, axis
    motor["encoder"] = round(_spread(rng, 2.0**10, 2.0**20))
    unit = str(rng.choice(["rated", "maximum", "count"]))
    if unit == "count":
        axis |= {"torque_unit": unit, "torque_count": max(largest / _spread(rng, 2e3, 2e4), 1e-6)}
    else:  # whole mN m
        rated = max(1, math.ceil(1e3 * largest * rng.uniform(0.4, 2.0))) * 1e-3
        axis |= {"torque_unit": unit, "rated_torque": rated}
    return motor, axis


def _path(rng, points, scale):
    """Waypoints that reverse, creep and rest, beginning at a point."""
    begin = np.atleast_1d(np.array(points, dtype=float))
    size = scale[0] * np.array(scale[1:])
    there = begin + size * rng.uniform(-1.0, 1.0, len(begin))
    back = begin + size * rng.uniform(-1.0, 1.0, len(begin))
    creeping = back + float(rng.choice([0.0, 0.02])) * size
    found = [p.tolist() if len(p) > 1 else float(p[0]) for p in (begin, there, back, creeping)]
    return [*found, found[-1]]


def _task(rng, robot, data, period, share):
    """Task of a robot: its paths last `share` of 2.5 s, and are shorter by its square."""
    data = {k: v for k, v in data.items() if k not in ("operating", "proof", "tolerances")}
    times = [round(share * t, 9) for t in (0.0, 1.0, 1.8, 2.2, 9.0)]

    def waypoints(begin, *scale):
        points = _path(rng, begin, (share**2, *scale))
        zero = [0.0] * np.size(begin)
        return {"kind": "waypoints", "times": times, "points": points, "rates": [zero, zero]}

    reference = data["reference"]
    match robot:
        case "rover":
            reference["base"] = waypoints([0.0, 0.0], 0.15, 0.15)
        case "six axes":
            reference["base"] = waypoints([0.2, 0.0], 0.15, 0.15)
            reference["hand"] = waypoints([0.62, 0.1, 0.42], 0.1, 0.1, 0.1)
        case "floater":
            reference["hand"] |= {"begin": 0.2 * share, "duration": 8.0 * share}
            data["momentum"] = (np.array(data["momentum"]) * rng.uniform(-1.0, 1.0, 6)).tolist()
        case "mecanum":
            reference["base"] = waypoints([0.0, 0.0, 0.0], 0.12, 0.12, 0.2)
            reference["mast"] = waypoints(0.0, 0.3)
            data.pop("servo", None)
        case "swerve":
            reference["nose"] = waypoints([0.5, 0.25], 0.12, 0.12)
            reference["heading"] = waypoints(0.0, 0.1)
    simulation = data["simulation"]
    duration = round(math.ceil(9.0 * share / period) * period, 6)
    simulation |= {"control_period": period, "dt": period, "duration": duration}
    return data


def honest_rig(folder, k, seed=SEED):
    """Write the k-th rig of a seed; return its file, and the duration of its run, s."""
    rng = np.random.default_rng([seed, k])
    kind = ROBOTS[k % len(ROBOTS)]
    robot = kind.removesuffix(" on MIT")
    body, task = map(tables, FILES[robot])
    period = round(round(1e6 / _spread(rng, 100.0, 2000.0)) * 1e-6, 6)
    joints = JOINTS.get(robot)
    if joints is None:
        joints = {
            m["name"]: (m["torque"] * m.get("gear", 1.0), m["speed"] / m.get("gear", 1.0))
            for m in body["motors"]
        }
    ends = {part["name"]: part["limits"] for part in body["bodies"] if "limits" in part}
    protocol = "cia402" if kind == robot else "mit"
    drives = [
        _motor(rng, name, ends.get(name, (0.0, 0.0)), largest, protocol, period)
        for name, largest in joints.items()
    ]
    return _saved(folder, rng, kind, body, task, drives, period)


def known_rig(folder, gears, counts, rated, wrist):
    """A rig that was stopped although nothing was wrong: its motors, by their gears."""
    body, task = map(tables, FILES["six axes"])
    drives = []
    for (name, (torque, speed)), gear in zip(JOINTS["six axes"].items(), gears, strict=True):
        motor = {"name": name, "joints": name, "gear": gear, "encoder": counts}
        motor |= {"torque": torque / gear, "speed": speed * gear}
        axis = {"name": name, "drive": "cia402", "torque_rate_limit": 50.0 * torque / gear}
        if name == "wrist":
            axis |= {"torque_unit": "count", "torque_count": wrist}
        else:
            axis["rated_torque"] = rated
        drives.append((motor, axis))
    rig = {"loop": {"rate": 200.0, "receive_window": 3e-3}, "estimator": {"latency": 1e-3}}
    return _write(folder, body, task, drives, rig)


def _saved(folder, rng, kind, body, task, drives, period):
    share = min(1.0, MOST_CYCLES * period / 2.5)
    task = _task(rng, kind.removesuffix(" on MIT"), task, period, share)
    latency = float(min(rng.uniform(0.05, 0.3) * period, 1.5e-3))
    jitter = float(rng.choice([0.0, 0.5])) * min(1e-4, 0.1 * period)
    window = float(rng.uniform(0.7, 0.9)) * period
    if latency > 0.2 * period:
        window = 0.9 * period  # shorter than a round trip there, and then arming refuses the rig
    steps = math.ceil(period / 5e-4)
    rig = {
        "loop": {"rate": 1.0 / period, "receive_window": window},
        "estimator": {
            "latency": latency,
            "bandwidth": float(rng.uniform(15.0, min(40.0, 0.25 / period))),
        },
        "emulator": {
            "latency": latency,
            "jitter": jitter,
            "dt": period / steps,
            "seed": int(rng.integers(1000)),
        },
        "policies": {"start_error": 1.0},
    }
    return _write(folder, body, task, drives, rig), 2.5 * share


def _write(folder, body, task, drives, rig):
    """Write the files of a rig."""
    folder.mkdir(parents=True)
    task.get("servo", {}).pop("torque_limits", None)
    body.pop("actuated", None)  # motors replace it, and limits of torque
    for part in body["bodies"]:
        part.pop("torque_limit", None)
    body["motors"] = [motor for motor, _ in drives]
    task["robot"] = "robot.toml"
    rig = {
        "name": "honest",
        "task": "task.toml",
        "bus": {"interface": "virtual", "channel": "honest"},
        "axes": [axis | {"node": 1 + k} for k, (_, axis) in enumerate(drives)],
        **rig,
    }
    for name, table in (("robot", body), ("task", task), ("rig", rig)):
        text = "".join(f"{k} = {written(v)}\n" for k, v in table.items())
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder / "rig.toml"
