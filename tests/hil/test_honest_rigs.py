"""Rigs on which nothing is wrong: none is stopped, whatever its gears, encoders and rate are.

Rovers drawn by a seed; they drive forward, reverse and rest. CONCUR_SEED in the environment draws
others.
"""

import os
import shutil

import numpy as np
import pytest

from hil.reasons import Reason
from tests.hil.bench import EXAMPLES, Bench, rig_of

SEED = int(os.environ.get("CONCUR_SEED", "0"))
GEARS = 1.0, 20.0, 200.0
RATES = 100.0, 125.0, 200.0, 250.0, 400.0, 500.0
DURATION = 2.5


def drawn(k):
    """Numbers of the k-th rig."""
    rng = np.random.default_rng([SEED, k])
    return {
        "gear": GEARS[k % len(GEARS)],
        "rate": RATES[k // len(GEARS) % len(RATES)],
        "counts": int(2 ** rng.uniform(10.0, 20.0)),
        "coulomb": float(rng.choice([0.0, 0.01, 0.04])),
        "points": [[0.0, 0.0], *rng.uniform(-0.15, 0.15, (2, 2)).tolist()],
    }


def rover(folder, gear, rate, counts, coulomb, points):
    """Rig file of a rover with other motors, dry friction (of their torque), rate and path."""
    shutil.copytree(EXAMPLES / "rover_rig", folder)

    def change(name, changes):
        lines = (folder / name).read_text().splitlines()
        keys = [line.partition(" = ")[0] for line in lines]
        changed = [changes.get(key, lambda old: old) for key in keys]
        lines = [new(line) for new, line in zip(changed, lines, strict=True)]
        (folder / name).write_text("\n".join(lines))

    def number(line):
        return float(line.partition(" = ")[2].partition("#")[0])

    def divided(line):
        return f"{line.partition(' = ')[0]} = {number(line) / gear!r}"

    robot = {
        "torque": lambda line: f"{divided(line)}\ncoulomb = {coulomb * number(line) / gear!r}",
        "speed": lambda line: f"speed = {number(line) * gear!r}",
        "encoder": lambda _: f"encoder = {counts}\ngear = {gear!r}",
    }
    latency = min(1e-3, 0.2 / rate)
    rig = dict.fromkeys(("rated_torque", "torque_rate_limit"), divided) | {
        "certificate": lambda _: "",
        "rate": lambda _: f"rate = {rate!r}",
        "receive_window": lambda _: f"receive_window = {0.7 / rate!r}",
        "latency": lambda _: f"latency = {latency!r}",
        "dt": lambda _: "dt = 5e-4",
    }
    times = [0.0, 1.0, 1.8, 2.1, 9.0]  # rest at the end
    points = [*points, points[-1], points[-1]]
    task = {
        "dt": lambda _: "dt = 5e-4",
        "control_period": lambda _: f"control_period = {1.0 / rate!r}",
        "times": lambda _: f"times = {times}",
        "points": lambda _: f"points = {points}\nignored = [",
        "rates": lambda _: "rates = [[0.0, 0.0], [0.0, 0.0]]",
    }
    change("robot.toml", robot)
    change("rig.toml", rig)
    change("task.toml", task)
    text = (folder / "task.toml").read_text()
    begin, end = text.index("ignored = ["), text.index("rates = ")
    (folder / "task.toml").write_text(text[:begin] + text[end:])
    return folder / "rig.toml"


@pytest.mark.extended
@pytest.mark.parametrize("k", range(18))
def test_a_rig_without_a_fault_is_not_stopped(k, tmp_path):
    numbers = drawn(k)
    file = rover(tmp_path / "rig", **numbers)
    rig = rig_of(
        file,
        policies={"max_consecutive_faults": 5, "stop_time": 0.1},
        loop={"receive_window": 0.7 / numbers["rate"]},
    )
    with Bench(rig=rig, file=file, duration=DURATION) as bench:
        outcome = bench.run()
        run = bench.run_rows
        residual, allowed = bench["residual"][run], bench["allowed"][run]
    assert outcome.reason is Reason.END, f"{outcome.reason}: {outcome.detail}; {numbers}"
    assert (np.abs(residual) <= allowed).all(), numbers
