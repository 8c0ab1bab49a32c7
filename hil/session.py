"""A session at the rig: opens all resources of a run in order, and closes them also on errors."""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack

from hil._commission import Commissioner, load_commission
from hil._compiled import CompiledController
from hil._concur import Law, Tick, TrackingLaw, tracking_law
from hil._machine import base_of
from hil._plan import Plan, sample_plan
from hil._proof import load_proof
from hil._pushes import pushed_plan
from hil.clock import Clock, MonotonicClock, SteppedClock
from hil.controller import Controller, Mode, Outcome
from hil.drives import make_drives
from hil.emulator import Fault, World, scheduled_faults
from hil.errors import ArmError
from hil.links import may_have_drives, open_links
from hil.operator import OperatorChannel
from hil.reasons import Reason
from hil.record.recorder import Recorder
from hil.record.rows import Layout
from hil.rig.busload import refuse_overload
from hil.settings import Rig
from hil.spine import why_in_python
from hil.state.pose_source import PoseReceiver, PoseSender
from hil.views.console import Heartbeat, facts_of, start_console
from hil.views.dashboard import start_dashboard

SHARE = 0.5
"""Fraction of the ring that may wait for the disk before the rig stops."""


@dataclass(frozen=True)
class SessionOptions:
    """Settings of one session.

    Parameters
    ----------
    mode : Mode
        Mode of the loop.
    duration : float or None
        Duration of the run, s; None: that of the task.
    folder : Path or None
        Folder of the record; None: named after rig and time.
    heartbeat : {"keys", "auto", "port"}
        Source of the operator's heartbeat. "keys": the space bar held in this terminal. "auto":
        automatic, for emulated rigs only. "port": another program that sends to the operator's
        port.
    token : str
        The operator's secret, for programs that send heartbeats; "": random.
    live : bool
        Whether to show the loop in this terminal.
    dashboard : int or None
        Port of the dashboard; None: no dashboard.
    resets : bool
        Whether to clear earlier faults of the drives.
    emulated : bool
        Whether the rig is emulated; has no effect on a bus that may have motors.
    faults : tuple of Fault
        Injected faults in mode MOCK.

    Examples
    --------
    >>> import hil
    >>> options = hil.SessionOptions(hil.Mode.MOCK, duration=2.0)
    >>> options.mode.name
    'MOCK'
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
    """Result of a session.

    Parameters
    ----------
    outcome : Outcome
        Result of the run.
    folder : Path
        Folder of its record.
    recorded : int
        Number of cycles in the record.
    complete : bool
        Whether the record contains every cycle. If not, a completed task has the reason RECORDER.
    note : str
        Error that kept cycles from the record; "" if there was none.
    loop : str
        Where the loop ran: "C", or "Python", in mode DRIVE with the reason.

    Examples
    --------
    >>> from pathlib import Path
    >>> import hil
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> options = hil.SessionOptions(
    ...     hil.Mode.MOCK, duration=0.1, folder=Path("record"), heartbeat="auto")
    >>> result = hil.run_session(rig, options)
    >>> result.complete, result.recorded > 25
    (True, True)
    """

    outcome: Outcome
    folder: Path
    recorded: int
    complete: bool
    note: str = ""
    loop: str = ""


def run_session(
    rig: Rig,
    options: SessionOptions,
    servo: Law | None = None,
    progress: Callable[[str, float], Any] | None = None,
    controller: type[Controller] = Controller,
    clock: Clock | None = None,
) -> Result:
    """Run a rig, from the opening of the bus to the closing of the record.

    Parameters
    ----------
    rig : Rig
        The rig.
    options : SessionOptions
        Settings of the session.
    servo : Law, optional
        Another law, or the servo of the rig's task if it has been built already; default: that
        servo.
    progress : callable, optional
        Called with the name and the completed fraction of each step of the preparation.
    controller : type
        Class of the loop, `Controller` or a derived class.
    clock : Clock, optional
        The loop's clock, `EmulatorProcesses.clock` for an emulated rig; default: the machine's
        monotonic clock. Mode MOCK uses simulated time.

    Returns
    -------
    Result
        Result of the run, and the folder of its record.

    Raises
    ------
    RigError
        If the rig may not be run with these options; no torque was sent.

    Examples
    --------
    >>> from pathlib import Path
    >>> import hil
    >>> rig = hil.load_rig("examples/rover_rig/rig.toml")
    >>> options = hil.SessionOptions(
    ...     hil.Mode.MOCK, duration=0.1, folder=Path("record"), heartbeat="auto")
    >>> result = hil.run_session(rig, options)
    >>> result.outcome.reason.name
    'END'
    """
    emulated = options.emulated and not may_have_drives(rig)
    if options.heartbeat == "auto" and not (emulated or options.mode is Mode.MOCK):
        raise ArmError(
            f"rig `{rig.name}`, operator",
            expected="a heartbeat from a person",
            came="an automatic heartbeat",
            cure="Hold the space bar, or send heartbeats from a pendant; `auto` is for emulated "
            "rigs only.",
        )
    report = progress or (lambda _, __: None)
    mock = options.mode is Mode.MOCK
    wired = rig  # with the buses of the rig file
    if mock:
        rig = mocked(rig)
        scheduled_faults(rig, options.faults)  # reject a wrong axis before compiling the law
    law = tracking_law(rig.task.law if servo is None else servo, f"rig `{rig.name}`, law")
    proof = None
    if options.mode in (Mode.MOCK, Mode.DRIVE):
        report("proof", 0.0)
        proof = load_proof(rig, law)
        if proof is not None:
            proof.require(rig, rehearsal=mock)
        report("proof", 1.0)
    known, commissions = None, issubclass(controller, Commissioner)
    if options.mode is Mode.DRIVE and not commissions and may_have_drives(rig):
        known = load_commission(rig)
    refuse_overload(wired, make_drives(wired))
    report("reference", 0.0)
    if commissions:
        plan: Plan = pushed_plan(rig, law)
    else:
        plan = sample_plan(
            rig.task,
            law,
            rig.loop.period,
            options.duration,
            lambda share: report("reference", share),
        )
    report("law", 0.0)
    tick = Tick(law)
    law.compile_functions("errors")
    report("law", 1.0)
    if mock:
        clock = SteppedClock()
    elif clock is None:
        clock = MonotonicClock(rig.loop.spin)
    layout = Layout.of([axis.name for axis in rig.axes], law)
    with ExitStack() as stack:
        pose = None
        if rig.pose is not None and (base := base_of(law.model.system)) is not None:
            pose = stack.enter_context(PoseReceiver(rig.pose, base.name))
        if mock:
            _emulate(stack, rig, clock, pose, options.faults)
        links = stack.enter_context(open_links(rig, clock))
        where = ""  # the loop runs in Python, with the reason
        if options.mode is Mode.DRIVE and controller is Controller:
            why = why_in_python(rig, law, links)
            if not isinstance(clock, MonotonicClock):
                why = "its clock is that of the emulated rig"
            where = f"Python: {why}" if why else ""
            controller = Controller if why else CompiledController
        operator = None
        if not mock:
            operator = stack.enter_context(
                OperatorChannel(rig.operator, clock, rig.loop.period, options.token or None)
            )
        recorder = stack.enter_context(
            Recorder(
                rig,
                layout,
                options.folder,
                servo=law,
                clock=clock,
                mode=options.mode.name.lower(),
                facts={
                    "compiled": tick.compiled,
                    "duration": plan.duration,
                    "commission": commissions,
                },
            )
        )
        _show(stack, rig, options, law, recorder, operator, plan.duration)
        loop = controller(
            rig,
            law,
            tick,
            plan,
            make_drives(rig),
            links,
            recorder.ring,
            mode=options.mode,
            operator=operator,
            pose=pose,
            recording=_keeping(recorder, mock),
            resets=options.resets,
            attended=options.heartbeat != "auto",
            start=None if proof is None else proof.start,
            **({} if known is None else {"approve": known.require}),
        )
        outcome = loop.run()
        outcome.quality.unrecorded = recorder.lost
        recorder.stop(outcome.reason.name, outcome.quality.to_dict(), outcome.left)
        if outcome.done and not recorder.complete:
            outcome = dataclasses.replace(outcome, reason=Reason.RECORDER)
    record = recorder.folder, recorder.recorded, recorder.complete, recorder.note
    return Result(outcome, *record, where or loop.place)


def mocked(rig: Rig) -> Rig:
    """Copy a rig for mode MOCK: on buses in this process, without real-time settings.

    Parameters
    ----------
    rig : Rig
        The rig.

    Returns
    -------
    Rig
        A copy on new virtual buses, without real-time priority.
    """
    pose = None if rig.pose is None else dataclasses.replace(rig.pose, host="127.0.0.1", port=0)
    channel = f"mock-{secrets.token_hex(4)}"
    buses = tuple(
        dataclasses.replace(bus, interface="virtual", channel=f"{channel}-{k}", options={})
        for k, bus in enumerate(rig.buses)
    )
    return dataclasses.replace(
        rig,
        buses=buses,
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
    options: SessionOptions,
    servo: TrackingLaw,
    recorder: Recorder,
    operator: OperatorChannel | None,
    duration: float,
) -> None:
    """Start the terminal view and the dashboard."""
    token, port = ("", 0) if operator is None else (operator.token, operator.port)
    beats = operator is not None and options.mode is Mode.DRIVE
    by = options.heartbeat if beats else "none"
    if options.live or by in ("keys", "auto"):
        outputs = tuple((output.name, output.dim) for output in servo.outputs)
        facts = facts_of(rig, outputs, options.mode.name, duration)
        heartbeat = Heartbeat(rig.operator.host, port, token, by)
        console = start_console(facts, recorder.ring.name, heartbeat, options.live)
        stack.callback(_end, console)
    if options.dashboard is not None:
        page = start_dashboard(
            rig.path, recorder.ring.name, port, port=options.dashboard, duration=duration
        )
        stack.callback(_end, page)


def _end(process: Any) -> None:
    process.terminate()
    process.join(2.0)
    if process.is_alive():
        process.kill()


def _keeping(recorder: Recorder, mock: bool) -> Callable[[], bool]:
    """Make a function that returns whether every cycle is in the record, or still can be."""
    ring = recorder.ring

    def keeping() -> bool:
        if mock:
            recorder.relieve()
        # The slowest check, `failed`, is the last one and runs in few cycles.
        waits = ring.written - recorder.recorded > SHARE * ring.rows
        return not (recorder.lost or (waits and recorder.failed))

    return keeping
