"""The cycle in C beside the loop in Python: the same reports for both, and their results."""

from __future__ import annotations

import ctypes
import subprocess
from typing import ClassVar

import numpy as np

from hil._compiled import finding_of
from hil.controller import Controller, Mode
from hil.reasons import Reason, State
from hil.session import SessionOptions, run_session
from hil.spine import export_rig
from hil.spine._export import CYCLE
from hil.spine._memory import input_of, output_of
from hil.state import CAUSES

OWN = Reason.DRIVE_FAULT, Reason.DRIVE_OFF, Reason.STALE
"""Reasons from outside that the cycle in C finds by itself."""


def compiled(folder, rig, machine=False):
    """The exported cycle of a rig as a library.

    Its graphs are compiled as they are interpreted, or with `machine` as the machine code in
    Python: with the flags of the README.
    """
    written = export_rig(rig, folder)
    graphs = [path.name for path in written.files if path.name.startswith("graphs")]
    exact = ["cc", "-O2", "-std=c99", "-fPIC", "-ffp-contract=off"]
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    words = ["cc", *written.flags] if machine else [*exact, "-O0", "-w"]
    subprocess.run([*exact, *strict, "-c", *CYCLE], cwd=folder, check=True)
    subprocess.run([*words, "-c", *graphs], cwd=folder, check=True)
    objects = [name.replace(".c", ".o") for name in (*CYCLE, *graphs)]
    subprocess.run(["cc", "-shared", *objects, "-lm", "-o", "rig.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "rig.so"))


class CCycle:
    """`rig_step` of a library, with its memory."""

    def __init__(self, library, rig, law):
        self.input, self.output = input_of(rig, law)(), output_of(rig, law)()
        self._step, self._check = library.rig_step, library.rig_check
        self._memory = ctypes.create_string_buffer(1 << 20)  # more than any rig needs
        library.rig_init(self._memory, None)

    def check(self, now):
        """Check the reports again, before the commands."""
        pointers = self._memory, ctypes.byref(self.input)
        self._check(*pointers, ctypes.c_double(now), ctypes.byref(self.output))

    def step(self, **given):
        """One cycle; the outputs as numbers and arrays."""
        for name, value in given.items():
            held = getattr(self.input, name)
            if isinstance(held, ctypes.Array):
                np.ctypeslib.as_array(held)[: np.size(value)] = value
            else:
                setattr(self.input, name, value)
        self._step(self._memory, ctypes.byref(self.input), ctypes.byref(self.output))
        found = {}
        for name, _ in self.output._fields_:
            value = getattr(self.output, name)
            array = isinstance(value, ctypes.Array)
            found[name] = np.ctypeslib.as_array(value).copy() if array else value
        return found


class Recorded(Controller):
    """The loop in Python; `given` and `found` have what each cycle was given, and its results."""

    last = None
    before: ClassVar[dict] = {}  # what happens before a cycle of RUN, by its number, counted from 0

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        type(self).last = self
        self.given, self.found, self._runs = [], [], 0
        self.active = 0  # cycles in which the law keeps a limit

    def _cycle(self, deadline):
        self._now = {"deadline": deadline, "skipped": self._failures.skipped}
        self._now["stop"] = self._now["release"] = 0
        before = self.latch.state
        if before is State.RUN:
            self.before.get(self._runs, lambda _: None)(self)
            self._runs += 1
        self._now["index"] = self._law.index
        self._now["sent"] = float(self._row["command_time"][0])
        super()._cycle(deadline)
        self._now["run"] = before is State.ARMED and self.latch.state is State.RUN
        self.given.append(self._now)
        law, feedback = self._law, self.feedback
        self.active += bool(law.buffers.active.any())
        self._now |= {
            name: getattr(feedback, name).copy()
            for name in ("position", "velocity", "time", "count", "fault", "enabled")
        }
        index = self._now.pop("index")
        self._now["last"] = before is State.RUN and index + 1 >= len(self.plan)
        at = min(index, len(self.plan) - 1)
        self._now["t"] = at * self.plan.period
        for name in ("pose", "twist", "acceleration"):
            self._now[name] = getattr(self.plan, name)[at]
        self.found.append(
            {
                "torque": self._torque.sent.copy(),
                "action": int(self.latch.action),
                "state": int(self.latch.state),
                "phase": int(self.latch.phase),
                "reason": int(self.latch.reason),
                "axis": self._axis,
                "flags": int(self._torque.flags),
                "status": int(law.status),
                "q": self.estimator.q.copy(),
                "s": self.estimator.s.copy(),
                "error": law.error.copy(),
                "residual": self.residual.torque.copy(),
                "allowed": self.residual.allowed.copy(),
                "detail": self._detail if self.latch.reason in CAUSES else "",
            }
        )

    def _reason_outside(self, now):
        reason = super()._reason_outside(now)
        if reason not in OWN:
            self._now["stop"] = int(reason)
        return reason

    def _estimate(self, start, now):
        exchange = self._exchange
        self._now |= {"start": start, "now": now, "paused": exchange.paused, "late": exchange.late}
        self._now["doubtful"] = [exchange.doubts(k) for k in range(len(self.drives))]
        return super()._estimate(start, now)

    def _end_holding(self, now):
        holds = self.latch.action
        super()._end_holding(now)
        self._now["release"] = self.latch.action is not holds


def recorded(rig, folder, duration, faults=(), before=None):
    """Run a rig in mode MOCK; its outcome and its loop."""
    kind = type("Recorded", (Recorded,), {"before": before or {}})
    options = SessionOptions(
        Mode.MOCK, duration=duration, folder=folder, heartbeat="auto", faults=tuple(faults)
    )
    result = run_session(rig, options, controller=kind)
    return result.outcome, kind.last


def differences(cycle, loop):
    """Names and cycles in which C and Python differ in a bit."""
    wrong = []
    for k, (inputs, expected) in enumerate(zip(loop.given, loop.found, strict=True)):
        results = cycle.step(**inputs)
        detail = expected["detail"]
        name = loop.rig.axes[results["finding"].axis].name
        results["detail"] = finding_of(results["finding"], name).detail if detail else ""
        for name, value in expected.items():
            own = results[name]
            if isinstance(value, np.ndarray):
                own = own[: value.size]
                if value.tobytes() != own.tobytes() and not (
                    np.isnan(value).all() and np.isnan(own).all()
                ):
                    wrong.append((k, name, value - own))
            elif value != own:
                wrong.append((k, name, value, own))
    return wrong
