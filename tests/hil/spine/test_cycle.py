"""The cycle in C gives what the loop in Python gives, to the last bit, from the same reports."""

import dataclasses
import subprocess

import numpy as np
import pytest

from hil.emulator import Fault
from hil.errors import RigError
from hil.guard import Flag, Limits, State
from hil.latch import Action
from hil.reasons import Reason
from hil.rig import Policy, load_rig
from hil.spine import export_rig
from tests.hil.bench import EXAMPLES, FLOATER, ROVER, ROVER_MIT, USUAL
from tests.hil.honest import honest_rig
from tests.hil.spine.cycle import CCycle, compiled, differences, recorded
from tests.hil.test_motors_rig import COUPLED, GEARED, made

PERIOD = 0.004


def rig_of(file=ROVER, **parts):
    """An example; `policies={"end": "hold"}` changes a part of it."""
    rig = load_rig(EXAMPLES / file)
    names = {"policies", "loop", *parts}
    changes = {name: {**USUAL.get(name, {}), **parts.get(name, {})} for name in names}
    return dataclasses.replace(
        rig, **{name: dataclasses.replace(getattr(rig, name), **changes[name]) for name in names}
    )


def with_axes(rig, **changes):
    """The rig with other numbers of all its axes, given as factors."""
    axes = [
        dataclasses.replace(axis, **{k: getattr(axis, k) * f for k, f in changes.items()})
        for axis in rig.axes
    ]
    return dataclasses.replace(rig, axes=tuple(axes))


def late(share):
    """A cycle that starts late by a share of the period."""

    def act(loop):
        loop.clock.sleep_until(loop.clock.now() + share * PERIOD)

    return act


def shifted(axis, by):
    """An encoder that moves against its motor."""

    def act(loop):
        loop.drives[axis].scale._offset += by

    return act


def scaled(axis, factor):
    """From now on a drive gives a multiple of the torque that it is asked for."""

    def act(loop):
        scale = loop.drives[axis].scale
        scale._inverse_torque *= factor

    return act


class Multiple:
    """The scale of an MIT drive that gives a multiple of the torque."""

    def __init__(self, scale, factor):
        self.scale, self.factor = scale, factor

    def __getattr__(self, name):
        return getattr(self.scale, name)

    def torque_code(self, torque):
        return self.scale.torque_code(self.factor * torque)


def multiplied(axis, factor):
    """From now on an MIT drive gives a multiple of the torque that it is asked for."""

    def act(loop):
        loop.drives[axis].scale = Multiple(loop.drives[axis].scale, factor)

    return act


def counting(axis, factor):
    """From now on an encoder counts a multiple of the motion."""

    def act(loop):
        scale, start = loop.drives[axis].scale, loop.feedback.position[axis]
        scale._position *= factor
        scale._offset += (1.0 - factor) * (start - scale._offset)

    return act


class Delay:
    """The scale of a drive whose torque acts some cycles late."""

    def __init__(self, scale, cycles):
        self.scale, self.cycles, self.waiting = scale, cycles, []

    def __getattr__(self, name):
        return getattr(self.scale, name)

    def per_mille(self, torque):
        self.waiting.append(self.scale.per_mille(torque))
        return self.waiting.pop(0) if len(self.waiting) > self.cycles else self.waiting[0]


def delayed(axis, cycles):
    """From now on the torque of a drive acts some cycles late."""

    def act(loop):
        loop.drives[axis].scale = Delay(loop.drives[axis].scale, cycles)

    return act


def stuck(axis):
    """From now on an encoder stays where it is."""
    return counting(axis, 0.0)


def rough(rig):
    """Axes with friction, coarse encoders and a part of the model that is wrong."""
    friction = {axis.name: 0.02 * axis.torque_limit for axis in rig.axes}
    return dataclasses.replace(
        with_axes(rig, counts=0.1),
        emulator=dataclasses.replace(rig.emulator, friction=friction),
        estimator=dataclasses.replace(rig.estimator, model_error=0.3),
    )


def heated(rig):
    axes = [dataclasses.replace(a, continuous=0.2, thermal_time=0.05) for a in rig.axes]
    return dataclasses.replace(rig, axes=tuple(axes))


def fault(kind, axis="turret", cycles=4, **others):
    """A fault in RUN, which begins 1.5 s after the emulator."""
    return Fault(kind, axis, at=1.6, lasting=cycles * PERIOD, **others)


def with_ranges(rig, folder, **ends):
    """The rover in a folder, with other ranges of joints."""
    rover, old = EXAMPLES / "rover_rig", {"turret": "[-1.2, 1.2]", "upper_arm": "[0.2, 1.5]"}
    for name in ("robot.toml", "task.toml", "rig.toml"):
        text = (rover / name).read_text(encoding="utf-8").replace("certificate =", "# ")
        for joint, pair in ends.items():
            text = text.replace(f"limits = {old[joint]}", f"limits = {[*pair]}")
        (folder / name).write_text(text, encoding="utf-8")
    found = load_rig(folder / "rig.toml")
    return dataclasses.replace(found, policies=rig.policies, loop=rig.loop)


def case(reason, *faults, change=lambda rig: rig, file=ROVER, before=None, policies=None, **ends):
    """Reason of the stop, faults, and how to make the rig in a folder."""

    def make(folder):
        rig = rig_of(file, policies=policies or {})
        return with_ranges(rig, folder, **ends) if ends else change(rig)

    return reason, faults, before or {}, make


def mecanum(folder):
    """A platform of four wheels and a mast, of drawn motors with friction, in a folder."""
    file, _ = honest_rig(folder / "rig", 10, 0)
    return dataclasses.replace(load_rig(file), policies=rig_of().policies)


CASES = {
    "end, then hold": case("END", policies={"end": "hold"}),
    "MIT drives": case("END", file=ROVER_MIT),
    "MIT drive, torque times three": case(
        "TORQUE_SCALE", file=ROVER_MIT, before={20: multiplied(2, 3.0)}
    ),
    "end": case("END"),
    "floating": case("END", file=FLOATER, change=lambda rig: dataclasses.replace(rig, pose=None)),
    "missing, hold": case("END", fault("drop")),
    "missing, damp": case("END", fault("drop"), policies={"on_missing": Policy.DAMP}),
    "missing, stop": case("LOST", fault("drop"), policies={"on_missing": Policy.STOP}),
    "missing for long": case("LOST", fault("drop", cycles=12)),
    "missing, then hold": case(
        "LOST", fault("drop", cycles=12), policies={"stop_category": 2, "stop_time": 0.3}
    ),
    "some missing": case("END", fault("drop", "*", cycles=60, probability=0.05, way="to_host")),
    "all silent": case("POWER_LOST", fault("drop", "*", cycles=100, way="to_host")),
    "wrong bits": case("DRIVE_FAULT", fault("corrupt", cycles=60, probability=0.1, way="to_host")),
    "drive fault": case("DRIVE_FAULT", fault("drive_fault")),
    "faults of all drives": case("DRIVE_FAULT", fault("drive_fault", "*")),
    **{
        f"all drives report 0x{code:x}": case(reason, fault("drive_fault", "*", value=code))
        for code, reason in (
            (0x2FFF, "DRIVE_FAULT"),
            (0x3000, "POWER_LOST"),
            (0x3FFF, "POWER_LOST"),
            (0x4000, "DRIVE_FAULT"),
            (0x8130, "DRIVE_FAULT"),
        )
    },
    "power cycled": case("LOST", fault("power_cycle")),
    "encoder jumps": case("JUMP", before={40: shifted(2, 0.3)}),
    "late": case("END", before={k: late(0.7) for k in (20, 21, 40)}),
    "skipped": case("END", before={20: late(3.4), 50: late(1.7)}),
    "late, damp": case("END", before={20: late(3.4)}, policies={"on_late": Policy.DAMP}),
    "late, stop": case("LATE", before={20: late(0.7)}, policies={"on_late": Policy.STOP}),
    "late for long": case("LATE", before={k: late(0.7) for k in range(20, 30)}),
    "later than the watchdog": case("LATE", before={20: late(30.0)}),
    "weak": case("OVERSPEED", change=lambda rig: with_axes(rig, torque_limit=0.2)),
    "sluggish": case("END", change=lambda rig: with_axes(rig, torque_rate_limit=0.05)),
    "slow": case("OVERSPEED", change=lambda rig: with_axes(rig, speed_limit=0.2)),
    "near an end": case("END", turret=(-0.13, 1.2)),
    "out of its range": case("OUT_OF_RANGE", turret=(-0.13, 1.2), upper_arm=(0.97, 1.5)),
    "encoder counts too much": case(
        "COUNT_SCALE", before={k: shifted(2, -0.003) for k in range(20, 80)}
    ),
    "wrong sign": case("WRONG_SIGN", before={20: scaled(2, -1.0)}),
    "wheel turns against its torque": case("CONTACT", before={20: scaled(0, -1.0)}),
    "ignored": case("IGNORED", before={20: scaled(3, 0.0)}),
    "torque times three": case("TORQUE_SCALE", before={20: scaled(2, 3.0)}),
    "half the torque": case("TORQUE_SCALE", before={20: scaled(4, 0.5)}),
    "twice the counts": case("COUNT_SCALE", before={20: counting(2, 2.0)}),
    "reversed encoder": case("WRONG_SIGN", before={20: counting(0, -1.0)}),
    "encoder stays": case("STUCK", before={20: stuck(0)}),
    "rough axes": case("END", change=rough),
    "torque late": case("TORQUE_SCALE", before={8: delayed(2, 15)}),
    "commands late": case("STALE", fault("delay", cycles=400, value=0.02, way="to_drive")),
    "reports late": case("STALE", fault("delay", cycles=400, value=0.017, way="to_host")),
    "slow, wrong sign": case(
        "WRONG_SIGN",
        change=lambda rig: with_axes(rig, speed_limit=0.2),
        before={20: scaled(2, -1.0)},
    ),
    "little power": case("END", change=lambda rig: with_axes(rig, power_limit=0.05)),
    "hot": case("OVERHEATED", change=heated),
    "four motors for three velocities": ("END", (), {}, mecanum),
    "one of four motors pulls": ("WRONG_SIGN", (), {20: scaled(1, -4.0)}, mecanum),
    "far from the reference": case("TRACKING", policies={"largest_error": 0.19}),
}


FLAGS = {
    "missing, hold": Flag.HELD,
    "missing, damp": Flag.DAMPED,
    "late, damp": Flag.DAMPED,
    "weak": Flag.CLIPPED_TORQUE,
    "sluggish": Flag.CLIPPED_RATE,
    "slow": Flag.CLIPPED_SPEED,
    "little power": Flag.CLIPPED_POWER,
    "four motors for three velocities": 0,
    "one of four motors pulls": 0,
    "near an end": Flag.NEAR_END,
}
"""What some of the cases are there to show."""


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", CASES)
def test_c_gives_what_python_gives_to_the_last_bit(name, tmp_path):
    reason, faults, before, make = CASES[name]
    rig = make(tmp_path)
    outcome, loop = recorded(rig, tmp_path / "record", 0.4, faults, before)
    assert outcome.reason is Reason[reason]
    cycle = CCycle(compiled(tmp_path / "c", rig), rig, rig.task.servo)
    assert not differences(cycle, loop)
    flags = FLAGS.get(name, Flag.CLIPPED_RATE)
    assert not flags or any(found["flags"] & flags for found in loop.found)
    assert {State.ARMED, State.RUN, State.STOP} <= {found["state"] for found in loop.found}


LAWS = {
    "plain": str,
    "limits": lambda task: f"{task}\n[servo]\ntorque_limits = 0.17\n",
    "integral": lambda task: task.replace("\nstiffness", "\nintegral = 1.0\nstiffness"),
}


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("motors", [GEARED, COUPLED], ids=["geared", "differential"])
@pytest.mark.parametrize("law", LAWS)
def test_c_gives_what_machine_code_in_python_gives(law, motors, tmp_path):
    """Reports are lost, so that the torque of the law is held and jumps."""
    path = made(tmp_path, motors)
    task = (tmp_path / "task.toml").read_text(encoding="utf-8")
    # The comment keeps this task, whose law will be machine code, apart from those of other tests.
    text = f"# {law} of {motors['bend'][0]}, compiled\n{LAWS[law](task)}"
    (tmp_path / "task.toml").write_text(text, encoding="utf-8")
    rig = load_rig(path)
    drop = Fault("drop", at=1.6, lasting=0.3, probability=0.1, way="to_host")
    outcome, loop = recorded(rig, tmp_path / "record", 0.8, [drop])
    assert outcome.reason is Reason.END
    cycle = CCycle(compiled(tmp_path / "c", rig, machine=True), rig, rig.task.servo)
    assert not differences(cycle, loop)
    assert any(found["flags"] & Flag.HELD for found in loop.found)
    assert (loop.active > 20) == (law == "limits")


@pytest.mark.parametrize(("share", "late"), [(0.99, False), (1.01, True)])
def test_reports_that_grow_too_old_in_a_cycle_stop_it_before_its_commands(share, late, tmp_path):
    rig = rig_of()
    _, loop = recorded(rig, tmp_path / "record", 0.2)
    cycle = CCycle(compiled(tmp_path / "c", rig), rig, rig.task.servo)
    states = [found["state"] for found in loop.found]
    for given in loop.given[: states.index(State.RUN) + 20]:
        before = cycle.step(**given)
    assert before["state"] == State.RUN
    assert before["torque"].any()
    oldest = min(given["time"])
    cycle.check(oldest + share * Limits.from_rig(rig).largest_age)
    output = cycle.output
    assert output.reason == (Reason.LATE if late else Reason.NONE)
    assert output.action == (Action.BRAKE if late else Action.LAW)
    # Old reports brake nothing.
    expected = np.where(late, 0.0, before["torque"])
    assert (np.array(output.torque) == expected)[np.argmin(given["time"])]
    assert not cycle.step(**given)["torque"].any() or not late


def test_what_c_cannot_do_is_refused(tmp_path):
    with pytest.raises(RigError, match="without `\\[pose\\]`"):
        export_rig(load_rig(EXAMPLES / FLOATER), tmp_path / "c")
    rig = rig_of()
    (tmp_path / "file").write_text("")
    with pytest.raises(RigError, match="can be written"):
        export_rig(rig, tmp_path / "file" / "c")
    assert not (tmp_path / "c").exists()


def test_joints_that_follow_others_are_refused(tmp_path):
    path = made(tmp_path, {k: v for k, v in GEARED.items() if k != "bend"})
    robot = tmp_path / "robot.toml"
    mimic = '\n[[mimics]]\nbody = "forearm"\nof = "upper_arm"\noffset = -2.6\n'
    robot.write_text(robot.read_text(encoding="utf-8") + mimic, encoding="utf-8")
    task = tmp_path / "task.toml"
    text = task.read_text(encoding="utf-8").replace('group = "R3"', 'group = "R2"')
    text = text.replace("[0.15, 0.75, 0.15]", "[0.15, 0.75]").replace("normal = ", "# ")
    task.write_text(text, encoding="utf-8")
    with pytest.raises(RigError, match="follow others"):
        export_rig(load_rig(path), tmp_path / "c")


@pytest.mark.extended
def test_the_folder_builds_as_its_readme_says(tmp_path):
    rig = rig_of()
    folder = export_rig(rig, tmp_path / "c")
    assert {path.name for path in folder.files} == {
        path.name for path in (tmp_path / "c").iterdir()
    }
    readme = (tmp_path / "c" / "README.md").read_text(encoding="ascii")
    assert all(f"| {k} | {axis.name} |" in readme for k, axis in enumerate(rig.axes))
    commands = [line.strip() for line in readme.splitlines() if line.startswith("    cc ")]
    assert len(commands) == 2
    for command in commands:
        subprocess.run(command.split(), cwd=tmp_path / "c", check=True)
    example = readme.split("```c")[1].split("```")[0]
    main = f'#include "rig.h"\nint main(void) {{\n{example.replace("for (;;)", "")}return 0;\n}}\n'
    (tmp_path / "c" / "main.c").write_text(main, encoding="ascii")
    words = "cc -std=c99 -Wall -Wextra -Werror main.c rig.o residual.o graphs.o -lm -o main"
    subprocess.run(words.split(), cwd=tmp_path / "c", check=True)
    subprocess.run([tmp_path / "c" / "main"], check=True)
    fast = subprocess.run(
        ["cc", "-ffast-math", "-c", "rig.c"], cwd=tmp_path / "c", capture_output=True, text=True
    )
    assert fast.returncode
    assert "NaN" in fast.stderr
