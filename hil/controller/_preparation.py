"""Preparation of operator and drives before the loop, and release of the drives after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress

from hil.clock import Clock
from hil.controller._exchange import Exchange
from hil.drives import AxisCheck, Drive, Finding, Wanted
from hil.errors import ArmError
from hil.links import Links
from hil.operator import OperatorChannel
from hil.reasons import Reason
from hil.settings import Rig

OPERATOR_PATIENCE = 30.0
"""Time in which a person must hold the enabling device, s."""

POLL = 0.02
"""Time between checks for a heartbeat, s."""


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
                cure="Hold the enabling device: a key in the terminal view, or a pendant. No drive "
                "was armed.",
            )
        clock.sleep_until(clock.now() + POLL)
    if reason is Reason.OPERATOR:
        raise ArmError(
            where,
            expected="no stop request",
            came="a stop request",
            cure="Remove its cause and start again. No drive was armed.",
        )


def await_heartbeat(
    rig: Rig, operator: OperatorChannel, clock: Clock, interrupted: Callable[[], bool]
) -> None:
    """Wait for a new heartbeat, at most for its time-out: the preparation took some time."""
    until = clock.now() + rig.operator.timeout
    while not interrupted() and clock.now() < until:
        if operator.poll(clock.now()) is not Reason.DEADMAN:
            return
        clock.sleep_until(clock.now() + POLL)


def prepare_drives(
    drives: Sequence[Drive],
    links: Links,
    resets: bool,
    approve: Callable[[Sequence[AxisCheck]], None] = lambda checks: None,
) -> list[AxisCheck]:
    """Write the settings of the drives, and test their watchdogs once `approve` has seen them."""
    checks: list[AxisCheck] = []
    for k, drive in enumerate(drives):
        if resets:
            drive.reset(links.of(k))
        checks += drive.prepare(links.of(k))
    approve(checks)
    groups: dict[tuple[int, type[Drive]], list[Drive]] = {}
    for bus, drive in zip(links.bus_of, drives, strict=True):
        groups.setdefault((bus, type(drive)), []).append(drive)
    for (bus, kind), group in groups.items():
        checks += kind.prove(group, links[bus])
    return checks


def check_round_trips(rig: Rig, exchange: Exchange) -> list[AxisCheck]:
    """Reject drives whose reports arrive too late for their cycle."""
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


def rehearse(rig: Rig, drives: Sequence[Drive], links: Links) -> list[AxisCheck]:
    """Prepare emulated drives as before a run, measure their round trips, and release them.

    Parameters
    ----------
    rig : Rig
        The rig.
    drives : sequence of Drive
        One drive for each axis.
    links : Links
        The open buses.

    Returns
    -------
    list of AxisCheck
        Checks of the drives.

    Raises
    ------
    ArmError, DriveError, UnitError
        If the rig may not be armed.
    """
    try:
        checks = prepare_drives(drives, links, resets=False)
        return checks + check_round_trips(rig, Exchange(rig, drives, links, talks=True))
    finally:
        release_drives(rig, drives, links)


def release_drives(rig: Rig, drives: Sequence[Drive], links: Links) -> list[str]:
    """Send cycles without torque, then release each drive, also after errors.

    Returns a sentence for each drive that did not confirm its release.
    """
    clock, left = links.clock, []
    for _ in range(rig.policies.shutdown_cycles):
        for k, drive in enumerate(
            drives
        ):  # an error of one drive must not stop the frames to others
            with suppress(Exception):
                links.of(k).send(drive.command(Wanted.OFF, 0.0))
        with suppress(Exception):
            clock.sleep_until(clock.now() + rig.loop.period)
    for k, drive in enumerate(drives):
        bus = links.of(k)
        refused, why = bus.refused, ""
        try:
            drive.release(bus)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        else:
            why = "the bus rejected frames" if bus.refused > refused else ""
        if why:
            left.append(f"axis `{drive.axis.name}` may still be under power: {why}")
    return left
