"""A session at the rig: everything that a run needs, opened in order and closed in any case."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack

from concur.control import Law, Tick, TrackingLaw, tracking_law
from hil._plan import sample_plan
from hil.bus import may_have_drives, open_bus
from hil.clock import Clock, MonotonicClock, SteppedClock
from hil.controller import Controller, Mode, Outcome
from hil.drives import make_drives
from hil.emulator import Fault, World, scheduled_faults
from hil.errors import ArmError
from hil.operator import OperatorChannel
from hil.reasons import Reason
from hil.record.recorder import Recorder
from hil.record.rows import Layout
from hil.rig.busload import refuse_overload
from hil.settings import BusSettings, Rig
from hil.state.pose_source import PoseReceiver, PoseSender
from hil.views.console import Heartbeat, facts_of, start_console
from hil.views.dashboard import start_dashboard

SHARE = 0.5
"""Share of the ring that may wait for the disk before the rig stops."""


@dataclass(frozen=True)
class Wishes:
    """How a session is to be run.

    Parameters
    ----------
    mode : Mode
        What the loop may do.
    duration : float or None
        Length of the run, s; the task's if None.
    folder : Path or None
        Folder of the record; named after rig and time if None.
    heartbeat : {"keys", "auto", "port"}
        What the operator's heartbeat comes from: the space bar held in this terminal; by itself,
        for emulated rigs only; another program that sends to the operator's port.
    token : str
        The operator's secret, for programs that send heartbeats; "" for a random one.
    live : bool
        Whether to show the loop in this terminal.
    dashboard : int or None
        Port of the dashboard; None: no dashboard.
    resets : bool
        Whether to clear faults that the drives have.
    emulated : bool
        Whether the rig is known to be emulated.
    faults : tuple of Fault
        What goes wrong in mode MOCK.
    """

    mode: Mode
    duration: float | None = None
    folder: Path | None = None
    heartbeat: str = "keys"
    token: str = ""
    live: bool = False
    dashboard: int | None = None
    resets: bool = False
    emulated: bool = False
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, eq=False)
class Result:
    """What a session left behind.

    Parameters
    ----------
    outcome : Outcome
        How the run ended.
    folder : Path
        Folder of its record.
    recorded : int
        Cycles in the record.
    complete : bool
        Whether every cycle is in it. If not, a run that came to its end has ended as RECORDER.
    note : str
        What kept cycles from the record; "" if nothing did.
    """

    outcome: Outcome
    folder: Path
    recorded: int
    complete: bool
    note: str = ""


def run_session(
    rig: Rig,
    wishes: Wishes,
    servo: Law | None = None,
    progress: Callable[[str, float], Any] | None = None,
    controller: type[Controller] = Controller,
    clock: Clock | None = None,
) -> Result:
    """Run a rig, from opening the bus to closing the record.

    Parameters
    ----------
    rig : Rig
        The rig.
    wishes : Wishes
        How.
    servo : Law, optional
        Another law than the servo of the rig's task, or that servo, if it has been built already.
    progress : callable, optional
        Called with what is being done before the run, and the share of it that is done.
    controller : type
        Class of the loop, `Controller` or one derived from it.
    clock : Clock, optional
        The loop's clock: `EmulatorProcesses.clock` beside an emulated rig. Default the machine's
        monotonic clock; simulated time in mode MOCK.

    Returns
    -------
    Result
        How it ended, and where the record is.

    Raises
    ------
    RigError
        If the rig may not be run so; no torque has left then.
    """
    emulated = wishes.emulated and not may_have_drives(rig.bus)
    if wishes.heartbeat == "auto" and not (emulated or wishes.mode is Mode.MOCK):
        raise ArmError(
            f"rig `{rig.name}`, operator",
            expected="a person who keeps the rig running",
            came="a heartbeat that goes by itself",
            cure="Hold the space bar, or send heartbeats from a pendant; `auto` is for rigs that "
            "are emulated.",
        )
    say = progress or (lambda _, __: None)
    mock = wishes.mode is Mode.MOCK
    if mock:
        rig = mocked(rig)
        scheduled_faults(rig, wishes.faults)  # a wrong axis is told before the law is compiled
    law = tracking_law(rig.task.servo() if servo is None else servo, f"rig `{rig.name}`, law")
    drives = make_drives(rig)
    refuse_overload(rig, drives)
    say("reference", 0.0)
    plan = sample_plan(
        rig.task, law, rig.loop.period, wishes.duration, lambda share: say("reference", share)
    )
    say("law", 0.0)
    tick = Tick(law)
    law.compile_functions("errors")
    say("law", 1.0)
    if mock:
        clock = SteppedClock()
    elif clock is None:
        clock = MonotonicClock(rig.loop.spin)
    layout = Layout(tuple(a.name for a in rig.axes), law.nq, law.nw, law.pose_size, law.size)
    with ExitStack() as stack:
        pose = None
        if rig.pose is not None:
            pose = stack.enter_context(PoseReceiver(rig.pose, law.model.robot.base.name))
        if mock:
            _emulate(stack, rig, clock, pose, wishes.faults)
        bus = stack.enter_context(open_bus(rig.bus, clock))
        operator = None
        if not mock:
            operator = stack.enter_context(
                OperatorChannel(rig.operator, clock, rig.loop.period, wishes.token or None)
            )
        recorder = stack.enter_context(
            Recorder(
                rig,
                layout,
                wishes.folder,
                servo=law,
                clock=clock,
                mode=wishes.mode.name.lower(),
                facts={"compiled": tick.compiled},
            )
        )
        _show(stack, rig, wishes, law, recorder, operator, plan.duration)
        loop = controller(
            rig,
            law,
            tick,
            plan,
            drives,
            bus,
            recorder.ring,
            mode=wishes.mode,
            operator=operator,
            pose=pose,
            recording=_keeping(recorder, mock),
            resets=wishes.resets,
            attended=wishes.heartbeat != "auto",
        )
        outcome = loop.run()
        outcome.quality.unrecorded = recorder.lost
        recorder.stop(outcome.reason.name, outcome.quality.to_dict(), outcome.left)
        if outcome.done and not recorder.complete:
            outcome = dataclasses.replace(outcome, reason=Reason.RECORDER)
    return Result(outcome, recorder.folder, recorder.recorded, recorder.complete, recorder.note)


def mocked(rig: Rig) -> Rig:
    """The rig on a bus within this process, without asking the system for anything.

    Parameters
    ----------
    rig : Rig
        The rig.

    Returns
    -------
    Rig
        The same one on a virtual bus of its own, without real-time priority.
    """
    pose = None if rig.pose is None else dataclasses.replace(rig.pose, host="127.0.0.1", port=0)
    return dataclasses.replace(
        rig,
        bus=BusSettings("virtual", f"mock-{secrets.token_hex(4)}", rig.bus.bitrate),
        loop=dataclasses.replace(rig.loop, priority=0, lock_memory=False),
        pose=pose,
    )


def _emulate(
    stack: ExitStack,
    rig: Rig,
    clock: Clock,
    pose: PoseReceiver | None,
    faults: tuple[Fault, ...],
) -> World:
    send = None
    if pose is not None and rig.pose is not None:
        sender = stack.enter_context(PoseSender(rig.pose.kind, rig.pose.host, pose.port))

        def send(sample: Any) -> None:
            sender.send_bytes(msgpack.packb(dict(sample)))

    return stack.enter_context(World(rig, clock, faults, send_pose=send))


def _show(
    stack: ExitStack,
    rig: Rig,
    wishes: Wishes,
    servo: TrackingLaw,
    recorder: Recorder,
    operator: OperatorChannel | None,
    duration: float,
) -> None:
    """Start the terminal view and the dashboard."""
    token, port = ("", 0) if operator is None else (operator.token, operator.port)
    beats = operator is not None and wishes.mode is Mode.DRIVE
    by = wishes.heartbeat if beats else "none"
    if wishes.live or by in ("keys", "auto"):
        outputs = tuple((output.name, output.dim) for output in servo.outputs)
        facts = facts_of(rig, outputs, wishes.mode.name, duration)
        heartbeat = Heartbeat(rig.operator.host, port, token, by)
        console = start_console(facts, recorder.ring.name, heartbeat, wishes.live)
        stack.callback(_end, console)
    if wishes.dashboard is not None:
        page = start_dashboard(
            rig.path, recorder.ring.name, port, port=wishes.dashboard, duration=duration
        )
        stack.callback(_end, page)


def _end(process: Any) -> None:
    process.terminate()
    process.join(2.0)
    if process.is_alive():
        process.kill()


def _keeping(recorder: Recorder, mock: bool) -> Callable[[], bool]:
    """Whether each cycle still reaches the record, or will once the disk takes it."""
    ring = recorder.ring

    def keeping() -> bool:
        if mock:
            recorder.relieve()
        # The question that takes longest is asked last, in few cycles.
        waits = ring.written - recorder.recorded > SHARE * ring.rows
        return not (recorder.lost or (waits and recorder.failed))

    return keeping
