"""The terminal view: its content and its keys."""

import codecs
import contextlib
import os
import pty
import signal
import subprocess
import sys
import termios
import time

import numpy as np
import pytest
from rich.console import Console

from hil.clock import MonotonicClock
from hil.latch import Reason, State
from hil.operator import OperatorChannel
from hil.record.ring import Ring
from hil.rig import OperatorSettings
from hil.views.console import Facts, _pressed, picture
from tests.hil._records import SMALL

FACTS = Facts("rover, DRIVE", ("wheel", "arm"), (8.0, 4.0), (("hand", 2),), 60.0)


def row_of(**values):
    row = np.zeros(SMALL.width)
    for name, value in values.items():
        row[SMALL.spans[name]] = value
    return row


def text(row, hint=""):
    console = Console(width=120, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file:
        console.print(picture(FACTS, SMALL.views(row), hint))
        return console.export_text()


def test_picture_of_a_run():
    row = row_of(
        state=State.RUN,
        cycle=1234,
        late=3,
        lost=4,
        clipped=6,
        elapsed=12.34,
        torque=[1.5, -3.9],
        position=[0.25, -1.125],
        error=[3e-3, 4e-3],
        enabled=[1, 0],
        time=10.00002,
        deadline=10.0,
        compute=250e-6,
    )
    shown = text(row, "hold SPACE")
    assert f"RUN: {State.RUN.sentence}" in shown
    assert "no reason to stop" not in shown  # without a reason
    for part in (
        "rover, DRIVE",
        "12.3 of 60.0 s",
        "hand 0.005",
        "cycles 1234, late 3, lost 4, clipped 6",
        "20 us after",
        "250 us",
        "hold SPACE",
    ):
        assert part in shown
    wheel = next(line for line in shown.splitlines() if "wheel" in line).split()
    arm = next(line for line in shown.splitlines() if "arm " in line).split()
    assert {"0.2500", "1.500", "19%", "on"} <= set(wheel)
    assert {"-1.1250", "-3.900", "98%", "off"} <= set(arm)


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason])
def test_picture_of_a_stop_shows_the_reason(reason):
    shown = text(row_of(state=State.STOP, reason=reason, elapsed=np.nan, fault=[0, 0x8611]))
    assert f"STOP: {State.STOP.sentence}" in shown
    assert f"{reason.name}: {reason.sentence}" in shown
    assert "fault 0x8611" in shown
    assert "not running" in shown


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e300])
def test_a_row_of_nonsense_does_not_end_the_view(value):
    shown = text(np.full(SMALL.width, value))
    assert "state unknown" in shown
    assert "reason unknown" in shown


def test_a_terminal_that_is_gone_presses_nothing():
    begin, end = os.pipe()
    os.write(end, b" x")
    assert _pressed(begin, 0.0) == " x"
    assert _pressed(begin, 0.0) == ""
    os.close(end)
    assert _pressed(begin, 0.0) is None
    os.close(begin)


# The terminal becomes the one of this process, and with it of the console.
PROGRAM = """
import os, sys
os.dup2(os.open(sys.argv[1], os.O_RDWR), 1)
from hil.views.console import Facts, Heartbeat, start_console
if __name__ == "__main__":
    heartbeat = Heartbeat("127.0.0.1", int(sys.argv[3]), "secret", "keys")
    facts = Facts("rover, DRIVE", ("wheel", "arm"), (8.0, 4.0), (("hand", 2),), 60.0)
    process = start_console(facts, sys.argv[2], heartbeat, True)
    print(process.pid, file=sys.stderr, flush=True)
    sys.stdin.read()  # until told to end
    process.terminate()
    process.join(20.0)
    print(process.exitcode, file=sys.stderr, flush=True)
"""


class Terminal:
    """A console process at a pseudo-terminal, and the channel that hears it."""

    def __init__(self, folder):
        self.closing = contextlib.ExitStack()
        # A read may end within a character.
        self.decode = codecs.getincrementaldecoder("utf-8")().decode
        self.ring = self.closing.enter_context(Ring.create(SMALL, 100))
        settings = OperatorSettings("127.0.0.1", 0, 0.3)
        self.channel = self.closing.enter_context(
            OperatorChannel(settings, MonotonicClock(), token="secret")
        )
        self.master, self.slave = pty.openpty()
        os.set_blocking(self.master, False)
        self.shown = ""
        self.before = termios.tcgetattr(self.slave)
        program = folder / "program.py"
        program.write_text(PROGRAM)
        self.process = subprocess.Popen(
            [
                sys.executable,
                program,
                os.ttyname(self.slave),
                self.ring.name,
                str(self.channel.port),
            ],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=os.getcwd(),
            env=os.environ | {"PYTHONPATH": os.getcwd()},
        )
        self.pid = int(self.process.stderr.readline())
        self.wait(lambda: termios.tcgetattr(self.slave)[3] != self.before[3])

    def press(self, keys):
        os.write(self.master, keys)

    def beats(self, seconds):
        """Valid datagrams that arrive within a time."""
        self.channel.poll()
        before = self.channel.received
        self.wait(lambda: False, seconds)
        return self.channel.received - before

    def wait(self, until, seconds=60.0):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.channel.poll()
            with contextlib.suppress(BlockingIOError):
                self.shown += self.decode(os.read(self.master, 1 << 16))
            if until():
                return True
            time.sleep(0.01)
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process.stdin.close()
        self.process.stderr.close()
        os.close(self.master)
        os.close(self.slave)
        self.closing.close()


@pytest.mark.extended
def test_keys_become_datagrams(tmp_path):
    with Terminal(tmp_path) as terminal:
        assert terminal.wait(lambda: "not armed yet" in terminal.shown)
        assert terminal.beats(0.5) == 0  # the space bar is not held
        terminal.ring.row[:] = row_of(state=State.RUN, cycle=77)
        terminal.ring.publish()
        assert terminal.wait(lambda: "cycles 77" in terminal.shown)
        terminal.press(b" ")
        assert terminal.wait(lambda: not np.isnan(terminal.channel.heartbeat))
        assert not terminal.channel.stopped
        # Let go: the heartbeat ends.
        assert terminal.wait(lambda: terminal.beats(0.5) == 0, 20.0)
        terminal.press(b"x")
        assert terminal.wait(lambda: terminal.channel.stopped)
        # Told to end, it leaves the terminal as it was.
        terminal.process.stdin.close()
        terminal.process.wait(60.0)
        assert terminal.process.stderr.readline().strip() == "0"
        assert termios.tcgetattr(terminal.slave) == terminal.before


def test_death_of_the_console_ends_the_heartbeat(tmp_path):
    with Terminal(tmp_path) as terminal:
        terminal.press(b" ")
        assert terminal.wait(lambda: not np.isnan(terminal.channel.heartbeat))
        os.kill(terminal.pid, signal.SIGKILL)
        terminal.wait(lambda: False, 0.2)
        for _ in range(3):
            terminal.press(b" ")
            assert terminal.beats(0.2) == 0
        assert not terminal.channel.alive(terminal.channel.clock.now() + 0.3)
