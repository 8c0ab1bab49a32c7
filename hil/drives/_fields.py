"""Checks of an axis in a rig file: fields and limits for its kind of drive."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from hil._concur import Refusal, suggest
from hil.drives._moteus_frames import ANSWER
from hil.drives._moteus_frames import HOST as MOTEUS_HOST
from hil.drives._moteus_frames import LARGEST_NODE as LARGEST_MOTEUS_NODE
from hil.drives._odrive_frames import LARGEST_NODE as LARGEST_ODRIVE_NODE
from hil.drives._units import LARGEST, AxisScale, MitScale
from hil.drives.mit_models import BITS, MIT_MODELS

if TYPE_CHECKING:
    from hil.settings import Axis

COARSEST = 0.05
"""Largest step of a drive's torque, as a fraction of the axis' limit."""

LARGEST_NODE = 126
"""Largest node number: 127 is the host (CANopen), or begins a command of zero torque (MIT)."""

_IDENTIFIERS = {
    0x080: "emergency message",
    0x180: "report",
    0x200: "command",
    0x580: "SDO answer",
    0x600: "SDO request",
    0x700: "heartbeat",
}
_OWNERS = {
    **dict.fromkeys(("rated_torque", "torque_unit", "torque_count"), "cia402"),
    **dict.fromkeys(("rated_torque_unit", "modulo"), "cia402"),
    **dict.fromkeys(("model", "ranges"), "mit"),
    "endpoints": "odrive",
}
"""Kind of drive of each field that only one kind has."""

_NAMES = {"cia402": "a CiA 402 drive", "mit": "an MIT drive", "moteus": "a moteus drive"}
_NAMES["odrive"] = "an ODrive"


def check_fields(kind: str, given: Mapping[str, Any], refuse: Refusal) -> None:
    """Reject missing fields of an axis, and fields of another kind of drive.

    Parameters
    ----------
    kind : str
        Kind of the drive.
    given : mapping
        Fields that the rig file gives.
    refuse : Refusal
        Makes the errors.
    """
    for field, owner in _OWNERS.items() if kind in _NAMES else ():
        if field in given and owner != kind:
            refuse(
                field,
                f"no such field on {_NAMES[kind]}",
                given[field],
                f'Remove it, or set drive = "{owner}".',
            )
    check = _FIELDS.get(kind)
    if check is not None:
        check(given, refuse)


def check_units(axis: Axis, refuse: Refusal) -> None:
    """Reject limits that the drive of an axis cannot represent.

    Parameters
    ----------
    axis : Axis
        The axis.
    refuse : Refusal
        Makes the errors.
    """
    check = _UNITS.get(axis.drive)
    if check is not None:
        check(axis, refuse)


def identifiers(axis: Axis) -> list[tuple[int, str]]:
    """Identifiers that belong to one drive, each with the name of its frame.

    Parameters
    ----------
    axis : Axis
        The axis.

    Returns
    -------
    list of (int, str)
        Empty for kinds that are not built in.
    """
    if axis.drive == "moteus":
        return [(ANSWER | MOTEUS_HOST << 8 | axis.node, "command")]
    if axis.drive == "cia402":
        return [(base + axis.node, what) for base, what in _IDENTIFIERS.items()]
    return [(axis.node, "command")] if axis.drive == "mit" else []


def _check_cia402(given: Mapping[str, Any], refuse: Refusal) -> None:
    in_counts = given.get("torque_unit") == "count"
    needed = {"torque_count": "the motor's torque for one count of 0x6071, N m"}
    if not in_counts:
        needed = {"rated_torque": "the rated torque of the motor, N m"}
    for field, what in needed.items():
        if field not in given:
            refuse(field, what, "no value", f"Add the field `{field}`; see the motor's data sheet.")
    if "torque_count" in given and not in_counts:
        refuse(
            "torque_count",
            'no such field unless torque_unit = "count"',
            f"{given['torque_count']:g}",
            'Remove it, or set torque_unit = "count".',
        )
    _check_node(
        given,
        refuse,
        "a CANopen node number",
        f"Give the drive a lower number; {LARGEST_NODE + 1} is the host.",
    )


def _check_mit(given: Mapping[str, Any], refuse: Refusal) -> None:
    model, ranges = given.get("model"), given.get("ranges")
    if (model is None) == (ranges is None):
        refuse(
            "model",
            "either a model or `ranges`",
            "no value" if model is None else "both",
            f"Name one of {', '.join(MIT_MODELS)}, or add the ranges of the drive's manual.",
        )
    _check_node(
        given,
        refuse,
        "a number",
        "Give the drive a lower number: the first byte distinguishes a report from a command.",
    )
    if model is not None and model not in MIT_MODELS:
        refuse(
            "model",
            f"a known model ({', '.join(MIT_MODELS)})",
            f"`{model}`",
            suggest(model, MIT_MODELS, "Write the ranges of the drive's manual into `ranges`."),
        )
    for field in BITS if ranges is not None else ():
        lower, upper = (ranges or {})[field]
        expected, valid = "lower <= 0 < upper", True
        if field in ("kp", "kd"):
            expected, valid = "lower = 0 < upper", lower == 0.0
        if not (lower <= 0.0 < upper and valid):
            refuse(f"ranges.{field}", expected, f"[{lower:g}, {upper:g}]", "Correct the range.")


def _check_moteus(given: Mapping[str, Any], refuse: Refusal) -> None:
    if given["node"] > LARGEST_MOTEUS_NODE:
        refuse(
            "node",
            f"a number from 1 to {LARGEST_MOTEUS_NODE}",
            given["node"],
            f"Give the drive a lower number; {MOTEUS_HOST} is the host.",
        )


def _check_odrive(given: Mapping[str, Any], refuse: Refusal) -> None:
    if given["node"] > LARGEST_ODRIVE_NODE:
        refuse(
            "node",
            f"a number from 1 to {LARGEST_ODRIVE_NODE}",
            given["node"],
            "Give the drive a lower number: axis.config.can.node_id.",
        )


def _check_node(given: Mapping[str, Any], refuse: Refusal, what: str, cure: str) -> None:
    if given["node"] > LARGEST_NODE:
        refuse("node", f"{what} from 1 to {LARGEST_NODE}", given["node"], cure)


def _check_per_mille(axis: Axis, refuse: Refusal) -> None:
    if not axis.counts:
        refuse(
            "name",
            "a motor with an encoder, whose counts the drive reports",
            f"`{axis.name}` without one",
            "Give it in the robot file, `encoder` in [[motors]]; see the motor's data sheet.",
        )
    if axis.modulo:
        _check_modulo(axis, refuse)
    scale = AxisScale(axis)
    if axis.torque_unit == "count":
        unit, fields, what = f"counts of {axis.torque_count:g} N m", "`torque_count`", "one count"
        largest = scale.largest_torque
    else:
        unit = f"per mille of rated_torque {axis.rated_torque:g} N m"
        fields, what = "`rated_torque` (N m, not mN m)", f"1 per mille of {axis.torque_unit} torque"
        largest = LARGEST * 1e-3 * axis.rated_torque * axis.gear
    if axis.torque_limit > largest:
        refuse(
            "torque_share",
            f"a torque of at most {largest:.4g}, the drive's largest number: {LARGEST} {unit}",
            f"{axis.torque_limit:g}",
            f"Check {fields} and `torque` of the motor in the robot file, or lower the share.",
        )
    _check_step(scale.step, what, axis, refuse)


def _check_modulo(axis: Axis, refuse: Refusal) -> None:
    """Reject a range or a speed at which turns of a wrapping encoder cannot be counted."""
    span = axis.modulo / axis.counts * math.tau / axis.gear
    lower, upper = axis.position_limits
    if math.isfinite(upper - lower) and upper - lower >= span:
        refuse(
            "modulo",
            f"counts for more than the range of the motor, {upper - lower:.4g} rad (m)",
            f"{axis.modulo}, which are {span:.4g} rad (m)",
            "Let the drive count over several turns, or narrow the limits of the joints in the "
            "robot file: the position at the start would be ambiguous.",
        )
    _check_countable(
        axis,
        span,
        "the turns of its encoder",
        "Lower it, shorten the watchdog, or let the drive count over several turns.",
        refuse,
    )


def _check_countable(axis: Axis, span: float, what: str, cure: str, refuse: Refusal) -> None:
    """Reject a speed at which reports can miss more than a quarter of the span."""
    countable = 0.25 * span / axis.watchdog
    if axis.speed_limit > countable:
        refuse(
            "speed_share",
            f"a speed of at most {countable:.4g}, so that {what} can be counted even when "
            "reports are lost for the time of the watchdog",
            f"{axis.speed_limit:g}",
            cure,
        )


def _check_step(step: float, what: str, axis: Axis, refuse: Refusal) -> None:
    if not step < COARSEST * axis.torque_limit:
        refuse(
            "torque_share",
            f"a torque above {step / COARSEST:.4g}, twenty steps of the drive ({what} is "
            f"{step:.4g})",
            f"{axis.torque_limit:g}",
            "Check its units and the motor in the robot file, or use a smaller drive: its steps "
            "are too coarse for this motor.",
        )


def _check_ranges(axis: Axis, refuse: Refusal) -> None:
    scale, cure = MitScale(axis), "Check `model` and the motor, or lower the share."
    at_most = "at most {:g} at the motor, the largest that the drive can {}"
    if axis.torque_limit > scale.largest_torque:
        expected = at_most.format(scale.largest_torque, "be sent")
        refuse("torque_share", expected, f"{axis.torque_limit:g}", cure)
    _check_step(scale.step, "one step of its range", axis, refuse)
    if axis.speed_limit > scale.fastest:
        expected = at_most.format(scale.fastest, "report")
        refuse("speed_share", expected, f"{axis.speed_limit:g}", cure)
    first, last = scale.span
    lower, upper = axis.position_limits
    if any(math.isfinite(end) and not first <= end <= last for end in (lower, upper)):
        refuse(
            "offset",
            f"positions of the motor that the drive can report, within [{first:.4g}, {last:.4g}]",
            f"[{lower:g}, {upper:g}]",
            "Set the drive's zero near the middle of its range and correct `offset`, or narrow "
            "the limits of the joints in the robot file.",
        )
    # A joint without ends leaves the range: its turns are counted from report to report.
    if math.isinf(upper - lower):
        what, cure = "the turns of its position", "Lower it, or shorten the watchdog."
        _check_countable(axis, last - first, what, cure, refuse)


_FIELDS: dict[str, Callable[[Mapping[str, Any], Refusal], None]] = {
    "cia402": _check_cia402,
    "mit": _check_mit,
    "moteus": _check_moteus,
    "odrive": _check_odrive,
}
_UNITS: dict[str, Callable[[Axis, Refusal], None]] = {
    "cia402": _check_per_mille,
    "mit": _check_ranges,
}
