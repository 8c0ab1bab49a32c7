"""The rig: sends the torques of a servo to the drives of wheels and joints.

The loop on the rig runs the same servo object that is certified and simulated. A change between
simulation and hardware changes one word and no control code. A guard between servo and bus checks
the whole torque vector before any of it is sent. The same guard runs in all modes: mock, listen,
shadow and drive.

Stop categories are those of IEC 60204-1. Software provides category 1 (damp, then remove power) and
category 2 (hold under power). Category 0, the immediate removal of power, must be wired: no program
is reliable enough for it.

The names below are imported at first use, and need the extra `rig`. The manual is docs/rig.md; the
command line is `concur-rig`.

Examples
--------
>>> rig = hil.load_rig("examples/rover_rig/rig.toml")
>>> rig.loop.rate
250.0
>>> result = hil.run_session(rig, hil.SessionOptions(hil.Mode.MOCK, duration=1.0))
>>> result.outcome.reason.name
'END'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hil import errors
    from hil.controller import Controller, Mode, Outcome
    from hil.drives import Drive, register_drive
    from hil.emulator import EmulatorProcesses, Fault, FaultKind, World
    from hil.guard import Flag, Limits, Verdict, judge
    from hil.latch import Latch
    from hil.operator import OperatorSender
    from hil.reasons import Reason, State
    from hil.record import Record
    from hil.rig import Rig, load_rig
    from hil.session import Result, SessionOptions, run_session
    from hil.state.estimator import Estimator
    from hil.state.pose_source import PoseSender
    from hil.views.report import write_report

_PLACES = {
    "Controller": "controller",
    "Drive": "drives",
    "EmulatorProcesses": "emulator",
    "Estimator": "state.estimator",
    "Fault": "emulator",
    "FaultKind": "emulator",
    "Flag": "guard",
    "Latch": "latch",
    "Limits": "guard",
    "Mode": "controller",
    "OperatorSender": "operator",
    "Outcome": "controller",
    "PoseSender": "state.pose_source",
    "Reason": "reasons",
    "Record": "record",
    "Result": "session",
    "Rig": "rig",
    "State": "reasons",
    "Verdict": "guard",
    "SessionOptions": "session",
    "World": "emulator",
    "judge": "guard",
    "load_rig": "rig",
    "register_drive": "drives",
    "run_session": "session",
    "write_report": "views.report",
}

__all__ = [
    "Controller",
    "Drive",
    "EmulatorProcesses",
    "Estimator",
    "Fault",
    "FaultKind",
    "Flag",
    "Latch",
    "Limits",
    "Mode",
    "OperatorSender",
    "Outcome",
    "PoseSender",
    "Reason",
    "Record",
    "Result",
    "Rig",
    "SessionOptions",
    "State",
    "Verdict",
    "World",
    "errors",
    "judge",
    "load_rig",
    "register_drive",
    "run_session",
    "write_report",
]


def __getattr__(name: str) -> object:
    """Import a name at first use: the recorder's process needs no names and must start fast."""
    if name == "errors":
        return import_module("hil.errors")
    if name not in _PLACES:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    from hil._extras import require_extra

    require_extra()
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
