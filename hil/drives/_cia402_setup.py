"""Set-up of a CiA 402 drive before arming: queries, checks and settings.

Objects that the standards call optional may be missing or locked. A missing optional property is a
row of the table with the finding UNKNOWN; a missing property that the loop requires is an error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hil.drives._cia402_state import Controlword, DriveState, state_of
from hil.drives._drive import AxisCheck, Finding
from hil.drives._network import SdoSession
from hil.drives._units import AxisScale, first_turn, limit_per_mille
from hil.errors import ArmError, DriveError, UnitError

if TYPE_CHECKING:
    from hil.settings import Axis

HOST_NODE = 0x7F
"""Node number under which the loop sends its heartbeat; no drive may have it."""

TORQUE_MODE = 10
"""Cyclic synchronous torque in 0x6060; its bit in 0x6502 is one lower."""

SETTLE = 0.2
"""Time in which the drive must change mode, switch off or leave a fault, s."""

LIFE = 4
"""Life time factor (0x100D): tolerated number of consecutive lost remote frames, plus one."""

STARVED = 0.5
"""Fraction of the loop's period above which an inhibit time (0x1800:3) delays reports."""

POSITION = "position (0x6064), rad (m)"
"""Row of the position by SDO; arming checks the position in the loop's report instead."""

STATUS, COUNTS, TORQUE, MODE = 0x60410010, 0x60640020, 0x60770010, 0x60610008
"""Entries of the report's mapping."""

REPORTS = ((STATUS, COUNTS, TORQUE), (STATUS, COUNTS, MODE), (STATUS, COUNTS))
"""Layouts of the report, best first: 8 bytes have no room for both torque and mode."""

_COMMAND_MAP = (0x60400010, 0x60710010)
_INVALID_PDO, _NO_REMOTE = 1 << 31, 1 << 30
_SYNCHRONOUS = (1,)
_AT_ONCE = (255, 254)  # transmission types with which a command acts on arrival

_RESTING = (DriveState.SWITCH_ON_DISABLED, DriveState.FAULT)

# Reactions to a lost host (0x6007) that remove torque, best first. The last entry is the option
# code that must be zero ("disable drive function") for this reaction.
_REACTIONS: tuple[tuple[int, str, int | None], ...] = (
    (2, "power off", None),
    (3, "quick stop, which disables (0x605A = 0)", 0x605A),
    (1, "fault, which disables (0x605E = 0)", 0x605E),
)

_NO_WATCHDOG = (
    "A drive that does not detect a dead host must not receive torques. Install newer firmware, or "
    "wire a watchdog relay and register your own drive class. If the drive has another watchdog "
    "and you have seen it remove torque, set `watchdog_confirmed = true`."
)


class Cia402Setup:
    """Queries to one drive, and the settings that the loop needs."""

    def __init__(self, axis: Axis, node: SdoSession, period: float) -> None:
        self.axis, self.node, self.period = axis, node, period
        self.report: tuple[int, ...] = REPORTS[0]  # mapping in force
        self.guards = False  # whether the watchdog is life guarding, which needs remote frames
        self.shows_mode = True  # whether the drive reports its mode of operation (0x6061)

    # -- queries -------------------------------------------------------------------------------

    def inspect(self, scale: AxisScale) -> list[AxisCheck]:
        """Query the drive's identity and units; nothing is written."""
        device = self.node.find(0x1000, 0, "I")
        checks = [
            self._compare(
                "profile of the device (0x1000)",
                402,
                None if device is None else device & 0xFFFF,
                "Use a drive of profile CiA 402, and check the node number.",
            )
        ]
        checks += self._inspect_identity()
        checks += self._inspect_mode()
        checks += self._inspect_torque()
        checks += self._inspect_position(scale)
        checks += self._inspect_watchdog()
        return checks

    def _check(
        self, what: str, finding: Finding, expected: str = "", came: str = "", cure: str = ""
    ) -> AxisCheck:
        return AxisCheck(self.axis.name, what, finding, expected, came, cure)

    def _compare(
        self, what: str, expected: float, came: float | None, cure: str, within: float = 0.0
    ) -> AxisCheck:
        if came is None:
            finding, shown = Finding.UNKNOWN, "not reported"
        else:
            right = math.isclose(came, expected, rel_tol=0.0, abs_tol=within)
            finding, shown = Finding.FOUND if right else Finding.WRONG, f"{came:g}"
        return self._check(what, finding, f"{expected:g}", shown, cure)

    def _inspect_identity(self) -> list[AxisCheck]:
        vendor, product = self.node.find(0x1018, 1, "I"), self.node.find(0x1018, 2, "I")
        if vendor is None or product is None:
            return []
        came = f"vendor 0x{vendor:X}, product 0x{product:X}"
        if serial := self.node.find(0x1018, 4, "I"):
            came += f", serial number {serial}"
        return [self._check("identity (0x1018)", Finding.FOUND, "any", came)]

    def _inspect_mode(self) -> list[AxisCheck]:
        modes = self.node.find(0x6502, 0, "I")
        if modes is None:
            finding, came = Finding.UNKNOWN, "not reported"
        else:
            able = modes >> (TORQUE_MODE - 1) & 1
            finding, came = Finding.FOUND if able else Finding.WRONG, f"modes 0x{modes:X}"
        return [
            self._check(
                "cyclic synchronous torque (0x6502)",
                finding,
                "mode 10, bit 9",
                came,
                "Use another drive or firmware: this one has no torque mode.",
            )
        ]

    def _inspect_torque(self) -> list[AxisCheck]:
        axis = self.axis
        if axis.torque_unit == "count":
            return [
                self._check(
                    "torque of one count of 0x6071, N m",
                    Finding.UNKNOWN,
                    f"{axis.torque_count:g}",
                    "not reported",
                    "Compare a small torque with a spring balance: a wrong `torque_count` scales "
                    "all torques by the ratio.",
                )
            ]
        unit = axis.rated_torque_unit
        rated, largest = self.node.find(0x6076, 0, "I"), self.node.find(0x6072, 0, "H")
        expected = axis.rated_torque / unit
        within = max(1.0, 1e-3 * expected)  # the last place, or one per mille
        cure = (
            f"Set `rated_torque` of axis `{axis.name}` to the drive's value, or correct the motor "
            "data of the drive. All torques would be wrong by the ratio."
        )
        if rated and largest and abs(rated * largest * 1e-3 - expected) <= within:
            cure = (
                f"Replace the drive's maximum torque in `rated_torque` of axis `{axis.name}` by "
                "its rated torque, and select in `torque_unit` which of the two is 1000 per mille."
            )
        elif rated:
            power = round(math.log10(rated / expected))
            if power and abs(rated / 10.0**power - expected) <= 1e-3 * expected:
                cure = (
                    "Find the unit of the rated torque in the drive's manual. If it differs, as it "
                    f"seems, set `rated_torque_unit = {unit / 10.0**power:g}` (N m)."
                )
        name = "mN m" if unit == 1e-3 else f"{unit:g} N m"
        checks = [self._compare(f"rated torque (0x6076), {name}", expected, rated, cure, within)]
        if largest is not None:
            checks.append(
                self._check(
                    "maximum torque (0x6072), per mille",
                    Finding.FOUND,
                    f"{limit_per_mille(axis)}, set before arming",
                    f"{largest}",
                )
            )
        return checks

    def _inspect_position(self, scale: AxisScale) -> list[AxisCheck]:
        checks = [
            self._compare(
                "position units per motor turn (0x608F, 0x6091, 0x6092, 0x6093)",
                self.axis.counts,
                _units_per_turn(self.node),
                f"Set `counts` of axis `{self.axis.name}` to the drive's value, or correct the "
                "drive's scaling.",
                within=1e-6 * self.axis.counts,
            )
        ]
        polarity = self.node.find(0x607E, 0, "B")
        if polarity is not None:
            checks.append(
                self._compare(
                    "polarity (0x607E)",
                    0,
                    polarity,
                    "Clear it in the drive and use `direction` of the rig file: with inverted "
                    "positions and unchanged torques every loop around the drive is unstable.",
                )
            )
        counts = self.node.find(0x6064, 0, "i")
        if counts is not None:
            low, high = self.axis.position_limits
            position = scale.position(first_turn(self.axis, scale, counts))
            checks.append(
                self._check(
                    POSITION,
                    Finding.FOUND if low <= position <= high else Finding.WRONG,
                    f"{low:g} to {high:g}",
                    f"{position:.4g}",
                    "Move the joint into its range, or correct `offset`, `counts`, `gear` or "
                    "`direction`.",
                )
            )
        return checks

    def _inspect_watchdog(self) -> list[AxisCheck]:
        objects = (("0x1400:5", 0x1400, 5), ("0x1016", 0x1016, 1))
        has = [name for name, index, sub in objects if self.node.find(index, sub, "I") is not None]
        guarding = (self.node.find(0x100C, 0, "H"), self.node.find(0x100D, 0, "B"))
        if not has and None not in guarding:
            has = ["life guarding (0x100C, 0x100D)"]
        missing = Finding.UNKNOWN if self.axis.watchdog_confirmed else Finding.WRONG
        return [
            self._check(
                "watchdog of the drive",
                Finding.FOUND if has else missing,
                "0x1400:5, 0x1016 or life guarding",
                f"{' and '.join(has)}, tested when the rig is armed" if has else "none of them",
                "" if has else _NO_WATCHDOG,
            )
        ]

    # -- settings ------------------------------------------------------------------------------

    def switch_off(self) -> None:
        """Switch power off and clear the target torque; keep a fault, which the loop reports."""
        node, clock = self.node, self.node.network.link.clock
        node.attempt(0x6040, 0, "H", Controlword.DISABLE_VOLTAGE)
        if not node.offer(0x6071, 0, "h", 0) and (target := node.find(0x6071, 0, "h")):
            raise DriveError(
                node.where(0x6071),
                expected="target torque 0",
                came=f"{target}",
                cure="Disconnect other masters from the drive.",
            )
        until = clock.now() + SETTLE
        while (state := state_of(node.read(0x6041, 0, "H"))) not in _RESTING:
            if clock.now() >= until:
                raise DriveError(
                    node.where(0x6041),
                    expected="a drive that is switched off",
                    came=f"a drive in state {describe(state)}",
                    cure="Disconnect other masters from it, and check supply and enable input.",
                )
            node.network.idle(0.005)

    def set_mode(self) -> None:
        """Set cyclic synchronous torque."""
        node, clock = self.node, self.node.network.link.clock
        accepted = node.offer(0x6060, 0, "b", TORQUE_MODE)
        until = clock.now() + SETTLE
        while (mode := node.find(0x6061, 0, "b")) != TORQUE_MODE:
            if mode is None and accepted:
                self.shows_mode = False
                return
            if clock.now() >= until:
                raise DriveError(
                    node.where(0x6061),
                    expected="mode 10, cyclic synchronous torque",
                    came=f"mode {mode}",
                    cure="Disconnect other masters from the drive, and remove a configuration that "
                    "fixes its mode.",
                )
            node.network.idle(0.005)

    def set_limit(self) -> tuple[AxisScale, AxisCheck]:
        """Write the axis' torque limit to the drive, as a second limit behind the guard.

        If the drive's per mille refer to its maximum torque, this changes the scale. The reference
        of the per mille cannot be queried; the rig file gives it.
        """
        axis, node = self.axis, self.node
        if axis.torque_unit == "count":
            return AxisScale(axis), self._no_limit("its torques are in counts")
        limit = limit_per_mille(axis)
        if node.find(0x6072, 0, "H") is None and axis.torque_unit == "rated":
            return self._scale(limit), self._no_limit("it has no object 0x6072")
        try:
            node.write(0x6072, 0, "H", limit)
        except DriveError as error:
            if error.data.get("silent"):
                raise
            kept = node.find(0x6072, 0, "H")
            if kept is None or not 0 < kept <= limit or axis.torque_unit != "rated":
                raise ArmError(
                    error.where,
                    expected=f"the torque limit of {limit} per mille in force",
                    came=error.came,
                    cure="Lower `torque_limit` to the rating of drive and motor, or unlock the "
                    "object in the drive's configuration. The rig needs a limit that is in force.",
                ) from None
            limit = kept
        what = "torque limit in force (0x6072), per mille"
        shown = f"{limit_per_mille(axis)}"
        return self._scale(limit), self._check(what, Finding.FOUND, shown, f"{limit}")

    def _scale(self, limit: int) -> AxisScale:
        found = self.node.find(0x6076, 0, "I")
        rated = found * self.axis.rated_torque_unit if found else self.axis.rated_torque
        return AxisScale(self.axis, rated_torque=rated, maximum_torque=rated * limit * 1e-3)

    def _no_limit(self, why: str) -> AxisCheck:
        return self._check(
            "torque limit in the drive",
            Finding.UNKNOWN,
            f"{self.axis.torque_limit:g}",
            f"not set: {why}",
            "Set the current limit of the drive with its manufacturer's tool: it still limits if "
            "the guard fails.",
        )

    def set_watchdog(self) -> AxisCheck:
        """Set every watchdog that the drive has, and a reaction that removes torque."""
        axis, node = self.axis, self.node
        milliseconds = round(axis.watchdog * 1e3)
        set_ones = []
        if node.offer(0x1400, 5, "H", milliseconds):
            set_ones.append("0x1400:5")
        if node.offer(0x1016, 1, "I", HOST_NODE << 16 | milliseconds):
            set_ones.append("0x1016")
        if not set_ones and self._set_guarding(milliseconds // LIFE):
            set_ones.append("life guarding (0x100C, 0x100D)")
        reaction = self._set_reaction()
        node.attempt(0x1029, 1, "B", 0)
        if not axis.watchdog_confirmed:
            self._require_watchdog(milliseconds, set_ones, reaction)
        sure = bool(set_ones and reaction)
        return self._check(
            "watchdog in force, ms",
            Finding.FOUND if sure else Finding.UNKNOWN,
            f"{milliseconds}",
            f"{milliseconds} in {' and '.join(set_ones)}, then {reaction}"
            if sure
            else "not reported; confirmed in the rig file",
        )

    def _set_guarding(self, guard: int) -> bool:
        """Set life guarding, which excludes a heartbeat of the drive."""
        node = self.node
        node.attempt(0x1017, 0, "H", 0)
        self.guards = node.offer(0x100C, 0, "H", guard) and node.offer(0x100D, 0, "B", LIFE)
        return self.guards

    def _set_reaction(self) -> str | None:
        """Set the best reaction that removes torque, unless it is set already."""
        node = self.node
        for option, text, code in _REACTIONS:
            disables = code is None or node.offer(code, 0, "h", 0)
            if disables and node.offer(0x6007, 0, "h", option):
                return text
        return None

    def _require_watchdog(
        self, milliseconds: int, set_ones: list[str], reaction: str | None
    ) -> None:
        axis, node = self.axis, self.node
        if not set_ones:
            raise ArmError(
                f"axis `{axis.name}`, node {axis.node}, watchdog of the drive",
                expected=f"{milliseconds} ms in 0x1400:5, 0x1016 or life guarding",
                came="a drive that stores none of them",
                cure=f"Try another `watchdog`: the drive may have steps or a smallest value. "
                f"{_NO_WATCHDOG}",
            )
        if reaction is None:
            raise ArmError(
                node.where(0x6007),
                expected="a reaction to the loss of the host that removes torque: power off (2), "
                "quick stop (3) with 0x605A = 0, or fault (1) with 0x605E = 0",
                came="a drive that stores none of them",
                cure="Set the reaction in the drive's configuration: its watchdog could expire and "
                "leave torque acting. If you have seen it remove torque from a moving motor, set "
                "`watchdog_confirmed = true`.",
            )

    def set_process_data(self) -> list[AxisCheck]:
        """Map command and report, clear the inhibit time, and disable other process data objects.

        Settings that are already right are not written: some drives lock their process data.
        """
        node = self.node
        self._map(0x1400, 0x200, _COMMAND_MAP, _AT_ONCE)
        error: DriveError | None = None
        mappings = REPORTS if self.shows_mode else (REPORTS[0], REPORTS[2])
        for report in mappings:
            try:
                self._map(0x1800, 0x180, report, _SYNCHRONOUS)
            except DriveError as refused:
                if refused.data.get("silent"):
                    raise
                error = error or refused
                continue
            self.report = report
            break
        else:
            assert error is not None
            raise error
        self._require_reports()
        checks = []
        for base in (0x1400, 0x1800):
            for other in range(base + 1, base + 4):
                used = node.find(other, 1, "I")
                if used is None or used & _INVALID_PDO:
                    continue
                if not node.offer(other, 1, "I", used | _INVALID_PDO):
                    checks.append(
                        self._check(
                            f"process data 0x{other:04X}",
                            Finding.UNKNOWN,
                            "disabled",
                            f"in use on identifier 0x{used & 0x7FF:03X}",
                            "The drive cannot disable it. Check that no node sends or needs it.",
                        )
                    )
        if TORQUE not in self.report:
            checks.append(
                self._check(
                    "torque in the report (0x6077)",
                    Finding.UNKNOWN,
                    "per mille",
                    "none",
                    "The loop cannot compare the torque of this drive with its commands.",
                )
            )
        return checks

    def _map(self, index: int, base: int, objects: tuple[int, ...], kinds: tuple[int, ...]) -> None:
        """Map the first process data object (CiA 301), unless its mapping is already right."""
        node, mapping = self.node, index + 0x200
        came = node.read(index, 1, "I")
        identifier = came & _NO_REMOTE | base + self.axis.node
        entries = node.find(mapping, 0, "B")
        laid_out = entries == len(objects) and all(
            node.find(mapping, place, "I") == entry for place, entry in enumerate(objects, 1)
        )
        held_back = bool(node.find(index, 3, "H")) and base == 0x180
        kind = node.find(index, 2, "B")
        if laid_out and came == identifier and kind in kinds and not held_back:
            return
        node.put(index, 1, "I", identifier | _INVALID_PDO)
        if not laid_out:
            node.put(mapping, 0, "B", 0)
            for place, entry in enumerate(objects, 1):
                node.write(mapping, place, "I", entry)
            node.write(mapping, 0, "B", len(objects))
        if held_back:
            node.attempt(index, 3, "H", 0)
        if kind not in kinds:
            node.write(index, 2, "B", kinds[0])
        node.write(index, 1, "I", identifier)

    def _require_reports(self) -> None:
        """Reject an inhibit time that is too long for the loop and cannot be cleared."""
        inhibit = (self.node.find(0x1800, 3, "H") or 0) * 1e-4
        if inhibit > STARVED * self.period:
            raise ArmError(
                self.node.where(0x1800, 3),
                expected="no inhibit time between reports",
                came=f"an inhibit time of {inhibit * 1e3:g} ms, which cannot be cleared; the "
                f"period of the loop is {self.period * 1e3:g} ms",
                cure="Clear it with the manufacturer's tool, or lower `rate`: reports would be "
                "delayed.",
            )

    def refuse(self, checks: list[AxisCheck]) -> None:
        """Raise the first check that forbids arming."""
        for check in checks:
            if check.finding in (Finding.FOUND, Finding.UNKNOWN):
                continue
            kind: type[DriveError | ArmError] = DriveError
            if "(0x60" in check.what:
                kind = UnitError
            if check.what.startswith("watchdog"):
                kind = ArmError
            raise kind(
                f"axis `{self.axis.name}`, node {self.axis.node}, {check.what}",
                expected=check.expected,
                came=check.came,
                cure=check.cure,
            )


def describe(state: DriveState) -> str:
    """Name of a state as the standard writes it."""
    return state.name.lower().replace("_", " ")


def clear_fault(node: SdoSession) -> DriveState:
    """Reset a fault by a rising edge of bit 7 of the controlword; wait until it is cleared."""
    clock = node.network.link.clock
    for word in (Controlword.DISABLE_VOLTAGE, Controlword.FAULT_RESET, Controlword.DISABLE_VOLTAGE):
        node.attempt(0x6040, 0, "H", word)
    until = clock.now() + SETTLE
    while (state := state_of(node.read(0x6041, 0, "H"))) is not DriveState.SWITCH_ON_DISABLED:
        if clock.now() >= until:
            break
        node.network.idle(0.005)
    return state


def _units_per_turn(node: SdoSession) -> float | None:
    """Units of position per turn of the motor, or None if the drive does not report them."""

    def ratio(index: int) -> float | None:
        above, below = node.find(index, 1, "I"), node.find(index, 2, "I")
        return above / below if above and below else None

    feed = ratio(0x6092)
    if feed is not None:
        return feed / (ratio(0x6091) or 1.0)
    resolution = ratio(0x608F)
    # Older profile: 0x6093 is increments of the encoder per unit of position.
    return None if resolution is None else resolution / (ratio(0x6093) or 1.0)
