"""Checks of a rig file across fields; those of a table are checked as it is built."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hil._concur import Mechanism, Refusal, suggest, unknown
from hil.drives import check_fields, check_units, identifiers
from hil.drives.mit_models import mit_ranges
from hil.emulator import Fault
from hil.errors import RigError
from hil.settings import Axis, AxisTable

if TYPE_CHECKING:
    from hil._concur import Task
    from hil._transmission import Transmission
    from hil.settings import BusSettings, Rig

WATCHDOG = (0.02, 0.2)
"""Shortest and longest time of a drive's watchdog, s."""

LARGEST_LOAD = 0.25
"""Largest torque of the watchdog test, as a fraction of the torque limit."""

OF_SHAFT = "mit", "moteus", "odrive"
"""Kinds of drives whose numbers may be those of the output of a gearbox."""

FINEST = 1e5
"""Steps per turn of the position in reports of moteus drives, and of ODrives without encoder."""

PROTOCOLS = {"cia402": "a CiA 402 drive", "mit": "an MIT drive", "moteus": "a moteus drive"}
PROTOCOLS["odrive"] = "an ODrive"
"""Kinds of drives of which one bus carries one."""
MOST_BUSES = 16
"""Largest number of buses, that of the loop in C."""

LONGEST_PATIENCE = 0.2
"""Longest time for which consecutive faulty cycles are tolerated, s."""


def _refusal(rig: Rig, table: str) -> Refusal:
    return Refusal(str(rig.path), table)


def _label(name: str) -> str:
    return f'[[axes]] "{name}"'


# --- names ------------------------------------------------------------------------------------


def check_buses(buses: Sequence[BusSettings], axes: Iterable[AxisTable], path: str) -> None:
    """Reject buses and axes of which one does not name the other."""
    refuse, names = Refusal(path, "[[bus]]"), [bus.name for bus in buses]
    if not 1 <= len(buses) <= MOST_BUSES:
        Refusal(path, "")("bus", f"1 to {MOST_BUSES} buses", str(len(buses)), "Use fewer.")
    for name in names if len(buses) > 1 else ():
        if not name or names.count(name) > 1:
            came = f"`{name}` twice" if name else "a bus without one"
            refuse("name", "a name for each of several buses", came, "Name each bus on its own.")
    used = set()
    for axis in axes:
        if not axis.bus and len(buses) > 1:
            Refusal(path, _label(axis.name))(
                "bus",
                f"the bus of the drive: {', '.join(names)}",
                "no value",
                "Name the bus to which it is connected.",
            )
        if axis.bus and axis.bus not in names:
            raise unknown(path, _label(axis.name), "bus", "a bus of the rig", axis.bus, names)
        used.add(axis.bus or names[0])
    for name in names:
        if name not in used:
            refuse("name", "a bus with drives", f"`{name}` without one", "Remove the bus.")
    ways = [(bus.interface, bus.channel, repr(sorted(bus.options.items()))) for bus in buses]
    for name, way in zip(names, ways, strict=True):
        if ways.count(way) > 1:
            came = f"that of another bus: {way[0]} {way[1]}"
            refuse(
                "channel", f"a channel that no other bus has, for bus `{name}`", came, "Correct it."
            )


def sorted_axes(tables: Iterable[AxisTable], task: Task, path: str) -> list[AxisTable]:
    """Sort the tables of the axes in the order of the robot's controls."""
    names = task.robot.control_names
    by_name: dict[str, AxisTable] = {}
    for axis in tables:
        if axis.name not in names:
            kind = "a motor of the robot"
            raise unknown(path, _label(axis.name), "name", kind, axis.name, names)
        if axis.name in by_name:
            Refusal(path, _label(axis.name))(
                "name",
                "each motor once",
                f"`{axis.name}` twice",
                "Remove one of the tables, or name another motor: "
                f"{', '.join(n for n in names if n not in by_name) or 'all have an axis'}.",
            )
        by_name[axis.name] = axis
    missing = [name for name in names if name not in by_name]
    if missing:
        Refusal(path, "")(
            "axes",
            f"one axis for each motor of `{task.robot.name}`: {', '.join(names)}",
            f"no axis for {', '.join(f'`{name}`' for name in missing)}",
            "Add a table [[axes]] for it: every control needs its motor.",
        )
    return [by_name[name] for name in names]


def axis_of(table: AxisTable, task: Task, transmission: Transmission, path: str) -> Axis:
    """Join the table of an axis with the numbers of its motor."""
    robot, refuse = task.robot, Refusal(path, _label(table.name))
    file, index = task.robot_file or robot.name, robot.control_names.index(table.name)
    motor = next((motor for motor in robot.motors if motor.name == table.name), None)
    row = np.abs(transmission.ratios[index])
    speeds = robot.speed_limits[list(transmission.v)]
    largest = {
        "torque": robot.control_limits[index],
        "speed": min(
            math.inf if motor is None else motor.speed, float(row[row > 0.0] @ speeds[row > 0.0])
        ),
    }
    for what, value in largest.items():
        if not math.isfinite(value):
            where = f"`{what}` in [[motors]]" if motor else f"`{what}_limit` of its body"
            refuse(
                "name",
                f"a motor with a largest {what}",
                f"`{table.name}` without one",
                f"Give it in the robot file, {file}: {where}."
                if isinstance(robot, Mechanism)
                else "Give the input of the system as a concur.Motor with it.",
            )
    found: dict[str, Any] = {}
    if motor is not None:
        turned = 1.0
        if motor.encoder_at == "joint":
            units = {robot.effort_units[v] for v in np.array(transmission.v)[row > 0.0]}
            turned = motor.reduction / (math.tau if units == {"N"} else 1.0)
        elif robot.control_units[index] == "N":  # a linear motor, whose counts are per metre
            turned = 1.0 / math.tau
        if table.drive in OF_SHAFT:
            found["gear"] = 1.0 / turned
            if table.drive != "mit":
                found["counts"] = min(motor.encoder or FINEST, FINEST)
        elif motor.encoder is not None:
            found["counts"] = motor.encoder / turned
        if motor.thermal_time is not None:
            found |= {"continuous": motor.continuous, "thermal_time": motor.thermal_time}
    low, high = transmission.spans()[index].tolist()
    axis = Axis(
        **vars(table),
        torque_limit=table.torque_share * float(largest["torque"]),
        speed_limit=table.speed_share * largest["speed"],
        position_limits=(low, high),
        **found,
    )
    return replace(axis, ranges=dict(mit_ranges(axis))) if axis.drive == "mit" else axis


def check_kinds(
    axes: Iterable[AxisTable], given: Mapping[str, Any], kinds: Iterable[str], path: str
) -> None:
    """Reject unknown kinds of drives, and fields that belong to another kind.

    `given` has the tables of the axes by name, as written.
    """
    known = list(kinds)
    for axis in axes:
        refuse = Refusal(path, _label(axis.name))
        if axis.drive not in known:
            refuse(
                "drive",
                f"a kind of drive ({', '.join(known)})",
                f"`{axis.drive}`",
                suggest(
                    axis.drive,
                    known,
                    "Register another kind by `hil.drives.register_drive`, in a Python file listed "
                    "in `drive_modules`.",
                ),
            )
        check_fields(axis.drive, given[axis.name], refuse)


# --- the whole --------------------------------------------------------------------------------


def check_rig(rig: Rig) -> None:
    """Reject a rig whose fields contradict each other."""
    _check_times(rig)
    _check_nodes(rig)
    for axis in rig.axes:
        _check_axis(axis, rig)
    _check_hold(rig)
    _check_start(rig)
    _check_ports(rig)
    _check_emulator(rig)


def _check_times(rig: Rig) -> None:
    period = rig.loop.period
    loop = _refusal(rig, "[loop]")
    if rig.loop.rate > 10_000.0:
        loop("rate", "a rate in Hz, at most 10000", f"{rig.loop.rate:g}", "Lower it.")
    for field in ("receive_window", "spin"):
        value = getattr(rig.loop, field)
        if not value < period:
            loop(
                field,
                f"a time shorter than the period of {period:g} s",
                f"{value:g} s",
                f"Shorten it, for example to {0.375 * period:.3g}, or lower the rate.",
            )
    if rig.policies.max_consecutive_faults * period > LONGEST_PATIENCE:
        _refusal(rig, "[policies]")(
            "max_consecutive_faults",
            f"at most {LONGEST_PATIENCE:g} s of faulty cycles, "
            f"{math.floor(LONGEST_PATIENCE / period + 1e-9)} at {rig.loop.rate:g} Hz",
            rig.policies.max_consecutive_faults,
            "Lower it: a rig that holds or damps during a long fault is not under control.",
        )
    if not 2.0 * period < rig.operator.timeout <= 2.0:
        _refusal(rig, "[operator]")(
            "timeout",
            f"more than two periods ({2.0 * period:g} s), at most 2 s",
            f"{rig.operator.timeout:g} s",
            "Set a few tenths of a second: this tolerates a lost datagram and still stops soon.",
        )
    if not 2.0 * rig.estimator.bandwidth < rig.loop.rate:
        _refusal(rig, "[estimator]")(
            "bandwidth",
            f"less than half the loop's rate, {0.5 * rig.loop.rate:g} Hz",
            f"{rig.estimator.bandwidth:g} Hz",
            f"Set for example a tenth of the rate, {0.1 * rig.loop.rate:g}.",
        )
    if rig.estimator.latency > 0.1:
        _refusal(rig, "[estimator]")(
            "latency",
            "at most 0.1 s",
            f"{rig.estimator.latency:g} s",
            "Give it in seconds: 1 ms is 1e-3.",
        )


def _check_nodes(rig: Rig) -> None:
    """Reject two drives of a bus that use the same identifier."""
    for k, bus in enumerate(rig.buses):
        axes = [axis for axis, on in zip(rig.axes, rig.bus_of, strict=True) if on == k]
        _check_nodes_of(axes, rig, f"a bus (here {bus.name})" if bus.name else "a bus")
        _check_format(bus, axes, _refusal(rig, f'[[bus]] "{bus.name}"' if bus.name else "[bus]"))


def _check_nodes_of(axes: Sequence[Axis], rig: Rig, where: str) -> None:
    owners: dict[int, tuple[str, str]] = {}
    for axis in axes:
        refuse = _refusal(rig, _label(axis.name))
        for other in axes:
            if other.name == axis.name:
                break
            if other.node == axis.node and other.drive == axis.drive:
                refuse(
                    "node",
                    "a different node number for each drive",
                    f"{axis.node}, the number of `{other.name}`",
                    "Give one of the two drives another number, and write it here.",
                )
        for identifier, what in identifiers(axis):
            if identifier in owners:
                name, of_other = owners[identifier]
                refuse(
                    "node",
                    "identifiers that no other drive uses",
                    f"{axis.node}: its {what} has identifier {identifier:#05x}, as has the "
                    f"{of_other} of {name}",
                    "Give one of the two drives another number.",
                )
            owners[identifier] = (f"`{axis.name}`", what)
    ours = [axis for axis in axes if axis.drive in PROTOCOLS]
    for axis in ours:
        if axis.drive != ours[0].drive:
            _refusal(rig, _label(axis.name))(
                "drive",
                f"drives of one protocol on {where}",
                f"{PROTOCOLS[axis.drive]} beside {PROTOCOLS[ours[0].drive]}",
                "Use a bus for each protocol: they use the same identifiers for different frames. "
                "MIT drives answer with identifier 0, which starts or stops CANopen nodes; drives "
                "without CAN FD answer its frames with errors.",
            )


def _check_format(bus: BusSettings, axes: Sequence[Axis], refuse: Refusal) -> None:
    """Reject drives whose frames have another format than their bus."""
    kinds = {axis.drive for axis in axes}
    if bus.interface == "ethercat" and kinds != {"cia402"}:
        refuse(
            "interface",
            'drives of kind "cia402" on EtherCAT',
            f'drives of kind "{max(kinds - {"cia402"})}"',
            "Give these drives a CAN bus.",
        )
    if bus.data_bitrate and bus.data_bitrate < bus.bitrate:
        refuse(
            "data_bitrate",
            f"at least `bitrate`, {bus.bitrate}",
            f"{bus.data_bitrate}",
            "Set for example 5000000: data of CAN FD are not slower than the rest of a frame.",
        )
    if "moteus" in kinds and not bus.data_bitrate:
        refuse(
            "data_bitrate",
            "the bit rate of the data of CAN FD frames, as moteus drives send them",
            "no value",
            "Add data_bitrate = 5000000, as these drives have it unless they are configured.",
        )
    classic = kinds & {"cia402", "mit", "odrive"}
    if bus.data_bitrate and classic:
        refuse(
            "data_bitrate",
            f'no such field on a bus with drives of kind "{min(classic)}"',
            f"{bus.data_bitrate}",
            "Remove it: these drives send and receive classic frames.",
        )


def _check_axis(axis: Axis, rig: Rig) -> None:
    refuse = _refusal(rig, _label(axis.name))
    shortest, longest = WATCHDOG
    if not shortest <= axis.watchdog <= longest:
        refuse(
            "watchdog",
            f"{shortest:g} to {longest:g} s",
            f"{axis.watchdog:g} s",
            "Set 50 to 100 ms. Without drives that remove their torque when commands cease, the "
            "rig must not be armed.",
        )
    if not axis.watchdog > 2.0 * rig.loop.period:
        refuse(
            "watchdog",
            f"more than two periods of the loop, {2.0 * rig.loop.period:g} s",
            f"{axis.watchdog:g} s",
            "Lengthen it, or raise the rate: a single late cycle must not stop the drive.",
        )
    if axis.watchdog_torque > LARGEST_LOAD * axis.torque_limit:
        refuse(
            "watchdog_torque",
            f"at most {LARGEST_LOAD * axis.torque_limit:g} N m (N), {LARGEST_LOAD:g} times the "
            "motor's limit",
            f"{axis.watchdog_torque:g} N m (N)",
            "Lower it: the joint is free to move in the test.",
        )
    check_units(axis, refuse)


def _check_hold(rig: Rig) -> None:
    hold, period = rig.task.control_period, rig.loop.period
    if hold is not None and abs(hold - period) > 1e-6 * period:
        _refusal(rig, "[loop]")(
            "rate",
            f"the rate of the simulation of the task, {1.0 / hold:g} Hz "
            f"(control_period = {hold:g} s in {rig.task.path})",
            f"{rig.loop.rate:g} Hz",
            f"Set rate = {1.0 / hold:g}, or control_period = {period:g} in the task.",
        )


def _check_start(rig: Rig) -> None:
    found = rig.transmission
    for name, start, (lower, upper) in zip(
        found.joints, rig.task.q0[list(found.q)], found.limits.tolist(), strict=True
    ):
        if not lower <= start <= upper:
            _refusal(rig, "")(
                "task",
                f"a start of `{name}` within its limits, [{lower:g}, {upper:g}]",
                f"{start:g}",
                f"Change [initial.q] of {rig.task.path}, or the limits in the robot file.",
            )


def _check_ports(rig: Rig) -> None:
    used = {rig.operator.port: "[operator]"}
    ports = [("[pose]", "port", 0 if rig.pose is None else rig.pose.port)]
    ports.append(("[emulator]", "control_port", rig.emulator.control_port))
    for table, field, port in ports:
        if port and port in used:
            _refusal(rig, table)(
                field, "an unused port", f"{port}, the port of {used[port]}", "Choose another port."
            )
        used[port] = table


def _check_emulator(rig: Rig) -> None:
    refuse, emulator = _refusal(rig, "[emulator]"), rig.emulator
    if emulator.dt > rig.loop.period * (1.0 + 1e-9):
        refuse(
            "dt",
            f"a time step not longer than the period of {rig.loop.period:g} s",
            f"{emulator.dt:g} s",
            "Set for example 1 ms.",
        )
    if emulator.pose_rate > 0.0 and rig.pose is None:
        refuse(
            "pose_rate",
            "a table [pose] with the address of the poses",
            f"{emulator.pose_rate:g} Hz without this table",
            "Add [pose], or remove `pose_rate`.",
        )
    names = [axis.name for axis in rig.axes]
    for field in ("viscous", "friction"):
        for name in getattr(emulator, field):
            if name not in names:
                raise unknown(rig.path, f"[emulator.{field}]", name, "an axis", name, names)
            if any(any(m.friction) for m in rig.task.robot.motors if m.name == name):
                _refusal(rig, f"[emulator.{field}]")(
                    name,
                    "an axis whose motor has no friction",
                    f"friction of the motor `{name}` in the robot file too",
                    "Remove it: friction of motors acts in emulated rigs.",
                )
    for number, entry in enumerate(emulator.faults, start=1):
        _check_fault(entry, number, names, rig)


def _check_fault(entry: Mapping[str, Any], number: int, names: list[str], rig: Rig) -> None:
    table = f"[[emulator.faults]] number {number}"
    name = entry.get("axis", "*")
    if name not in ("*", *names):
        raise unknown(rig.path, table, "axis", 'an axis, or "*" for all', str(name), names)
    try:
        Fault.from_table(entry)
    except RigError as error:
        field = re.search(r"`(\w+)`", error.where)
        _refusal(rig, table)(field[1] if field else "", error.expected, error.came, error.cure)
