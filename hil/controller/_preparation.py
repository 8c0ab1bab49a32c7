"""Before the loop: the operator, the drives, their round trips. After it: drives are released."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress

from hil.bus import Bus
from hil.clock import Clock
from hil.controller._exchange import Exchange
from hil.drives import AxisCheck, Drive, Finding, Wanted
from hil.errors import ArmError
from hil.operator import OperatorChannel
from hil.reasons import Reason
from hil.settings import Rig

OPERATOR_PATIENCE = 30.0
"""Time that a person may take to hold the deadman, s."""

POLL = 0.02
"""Time between questions for a heartbeat, s."""


def await_operator(
    rig: Rig, operator: OperatorChannel, clock: Clock, interrupted: Callable[[], bool]
) -> None:
    """Wait for the operator's heartbeat; ArmError if none comes, or a stop is requested."""
    where = f"rig `{rig.name}`, operator"
    began = clock.now()
    until = began + OPERATOR_PATIENCE
    while (reason := operator.poll(clock.now())) is Reason.DEADMAN:
        if clock.now() >= until or interrupted():
            raise ArmError(
                where,
                expected=f"a heartbeat at {rig.operator.host}:{rig.operator.port}",
                came=f"no heartbeat for {clock.now() - began:.1f} s",
                cure="Hold the deadman: a key in the terminal view, or a pendant. Nothing was "
                "armed.",
            )
        clock.sleep_until(clock.now() + POLL)
    if reason is Reason.OPERATOR:
        raise ArmError(
            where,
            expected="nobody who asks for a stop",
            came="a stop",
            cure="Remove its cause, then begin anew. Nothing was armed.",
        )


def await_heartbeat(
    rig: Rig, operator: OperatorChannel, clock: Clock, interrupted: Callable[[], bool]
) -> None:
    """Wait for the next heartbeat, as long as one may take: what was before took a while."""
    until = clock.now() + rig.operator.timeout
    while not interrupted() and clock.now() < until:
        if operator.poll(clock.now()) is not Reason.DEADMAN:
            return
        clock.sleep_until(clock.now() + POLL)


def prepare_drives(drives: Sequence[Drive], bus: Bus, resets: bool) -> list[AxisCheck]:
    """Write what the drives need, and try their watchdogs."""
    checks: list[AxisCheck] = []
    for drive in drives:
        if resets:
            drive.reset(bus)
        checks += drive.prepare(bus)
    for kind in dict.fromkeys(type(drive) for drive in drives):
        checks += kind.prove([d for d in drives if type(d) is kind], bus)
    return checks


def check_round_trips(rig: Rig, exchange: Exchange) -> list[AxisCheck]:
    """Refuse drives whose reports come too late for the cycle that they belong to."""
    loop, found = rig.loop, []
    for drive, trip in zip(exchange.drives, exchange.round_trips(), strict=True):
        # Drives that answer commands have until the next cycle.
        axis, opened = drive.axis, type(drive).opening_frames(rig)
        window = loop.receive_window if opened else loop.period
        if trip > window:
            raise ArmError(
                f"axis `{axis.name}`, round trip of a report",
                expected=f"at most {1e3 * window:.3g} ms, the "
                + ("receive window" if opened else "period of the loop"),
                came=f"{1e3 * trip:.3g} ms",
                cure="Find what delays frames: a gateway, an adapter's queue, the priority of "
                "the loop. If the delay is right, increase `receive_window` of `[loop]` (and "
                "`latency` of `[estimator]`), or reduce `rate`.",
            )
        finding = Finding.UNKNOWN if math.isnan(trip) else Finding.FOUND
        came = "" if math.isnan(trip) else f"{1e3 * trip:.3g}"
        what = "round trip of a report, ms"
        found.append(AxisCheck(axis.name, what, finding, f"{1e3 * window:.3g}", came))
    return found


def release_drives(rig: Rig, drives: Sequence[Drive], bus: Bus) -> list[str]:
    """Send cycles without torque, then release each drive, whatever happened before.

    Returns a sentence for each drive that is not known to be without power.
    """
    clock, left = bus.clock, []
    for _ in range(rig.policies.shutdown_cycles):
        for drive in drives:  # one that fails does not keep the others from their frames
            with suppress(Exception):
                bus.send(drive.command(Wanted.OFF, 0.0))
        with suppress(Exception):
            clock.sleep_until(clock.now() + rig.loop.period)
    for drive in drives:
        refused, why = bus.refused, ""
        try:
            drive.release(bus)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        else:
            why = "the bus did not take all frames" if bus.refused > refused else ""
        if why:
            left.append(f"axis `{drive.axis.name}` may still be under power: {why}")
    return left
