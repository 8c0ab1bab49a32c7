"""A rig of twelve axes on four buses: four arms of three joints on a table, hands on circles."""

from __future__ import annotations

from pathlib import Path

import concur as cc

BUSES = 4
START = {"turn": 0.1, "lift": 0.9, "bend": -1.5}
ARM = """
[[bodies]]
name = "turn{k}"
parent = "table"
joint = {{ type = "Revolute", axis = [0.0, 0.0, 1.0] }}
placement = {{ translation = [{x}, 0.0, 0.0] }}
inertia = {{ mass = 2.0, com = [0.0, 0.2, 0.0], moments = [0.03, 0.01, 0.03] }}

[[bodies]]
name = "lift{k}"
parent = "turn{k}"
joint = {{ type = "Revolute", axis = [1.0, 0.0, 0.0] }}
placement = {{ translation = [0.0, 0.4, 0.0] }}
inertia = {{ mass = 2.0, com = [0.0, 0.2, 0.0], moments = [0.03, 0.01, 0.03] }}

[[bodies]]
name = "bend{k}"
parent = "lift{k}"
joint = {{ type = "Revolute", axis = [1.0, 0.0, 0.0] }}
placement = {{ translation = [0.0, 0.4, 0.0] }}
inertia = {{ mass = 1.0, com = [0.0, 0.1, 0.0], moments = [0.01, 0.004, 0.01] }}
"""
MOTOR = """
[[motors]]
name = "{name}"
joints = "{name}"
torque = 60.0
speed = 8.0
encoder = 262144
"""
OUTPUT = """
[[outputs]]
name = "hand{k}"
body = "bend{k}"
group = "R3"
point = [0.0, 0.2, 0.0]
stiffness = 36.0
damping = 12.0
"""
CIRCLE = """
[reference.hand{k}]
kind = "circle"
center = {center}
radius = 0.05
period = 4.0
normal = [1.0, 0.0, 0.0]
"""
RIG = """name = "four arms"
task = "task.toml"

[loop]
rate = 1000.0
receive_window = 0.6e-3

[policies]
max_consecutive_faults = 30
stop_time = 0.2

[estimator]
bandwidth = 40.0
latency = 0.2e-3
"""
BUS = """
[[bus]]
name = "arm{k}"
interface = "virtual"
channel = "arm{k}"
largest_load = 0.9  # three axes
"""
AXIS = """
[[axes]]
name = "{name}"
drive = "cia402"
bus = "arm{k}"
node = {node}
rated_torque = 20.0
torque_rate_limit = 20000.0
watchdog = 0.05
"""


def made(folder):
    """Path of the rig file; robot and task are beside it."""
    folder = Path(folder)
    names = [f"{part}{k}" for k in range(BUSES) for part in START]
    robot = 'name = "four_arms"\n\n[[bodies]]\nname = "table"\njoint = { type = "Fixed" }\n'
    robot += "".join(ARM.format(k=k, x=1.5 * k) for k in range(BUSES))
    robot += "".join(MOTOR.format(name=name) for name in names)
    (folder / "robot.toml").write_text(robot, encoding="utf-8")
    found = cc.load(folder / "robot.toml")
    q = [value for _ in range(BUSES) for value in START.values()]
    task = 'name = "circles"\nrobot = "robot.toml"\n'
    task += "".join(OUTPUT.format(k=k) for k in range(BUSES))
    for k in range(BUSES):
        pose = found.pose(q, f"bend{k}")
        hand = pose[:3, 3] + 0.2 * pose[:3, 1]
        task += CIRCLE.format(k=k, center=[round(float(x), 3) for x in hand])
    task += "\n[initial.q]\n" + "".join(
        f"{part}{k} = {value}\n" for k in range(BUSES) for part, value in START.items()
    )
    task += "\n[simulation]\nduration = 120.0\ndt = 0.001\ncontrol_period = 0.001\n"
    (folder / "task.toml").write_text(task, encoding="utf-8")
    axes = "".join(
        AXIS.format(name=name, k=k // len(START), node=1 + k % len(START))
        for k, name in enumerate(names)
    )
    buses = "".join(BUS.format(k=k) for k in range(BUSES))
    (folder / "rig.toml").write_text(RIG + buses + axes, encoding="utf-8")
    return folder / "rig.toml"
