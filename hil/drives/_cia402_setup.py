"""What a CiA 402 drive is asked before it is armed, and what is written to it.

Objects that the standards call optional may be missing or refuse; what then cannot be known is a
row of the table, and what the loop cannot do without is an error.
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
"""Time that the drive may take to change mode, to switch off or to leave a fault, s."""

LIFE = 4
"""Life time factor (0x100D): remote frames of life guarding that may be lost in a row, plus one."""

STARVED = 0.5
"""Share of the loop's period above which an inhibit time (0x1800:3) holds reports back."""

POSITION = "position (0x6064), rad (m)"
"""Row of the position before arming; while arming it is judged as the loop will hear it."""

STATUS, COUNTS, TORQUE, MODE = 0x60410010, 0x60640020, 0x60770010, 0x60610008
"""Entries of the report's mapping."""

REPORTS = ((STATUS, COUNTS, TORQUE), (STATUS, COUNTS, MODE), (STATUS, COUNTS))
"""Reports that the loop reads, best first: 8 bytes leave no room for torque and mode."""

_COMMAND_MAP = (0x60400010, 0x60710010)
_INVALID_PDO, _NO_REMOTE = 1 << 31, 1 << 30
_SYNCHRONOUS = (1,)
_AT_ONCE = (255, 254)  # transmission types by which a command acts when it comes

_RESTING = (DriveState.SWITCH_ON_DISABLED, DriveState.FAULT)

# Reactions to a lost host (0x6007) that remove torque, best first, each with the option code that
# must be zero ("disable drive function") for that.
_REACTIONS: tuple[tuple[int, str, int | None], ...] = (
    (2, "power off", None),
    (3, "quick stop, which disables (0x605A = 0)", 0x605A),
    (1, "fault, which disables (0x605E = 0)", 0x605E),
)

_NO_WATCHDOG = (
    "A drive that does not notice a dead host must not be given torques. Look for newer firmware, "
    "or wire a watchdog relay and register a drive class of your own. If it has a watchdog of its "
    "maker's and you have seen it remove torque, set `watchdog_confirmed = true`."
)


class Cia402Setup:
    """Questions to one drive, and the writing of what the loop needs."""

    def __init__(self, axis: Axis, node: SdoSession, period: float) -> None:
        self.axis, self.node, self.period = axis, node, period
        self.report: tuple[int, ...] = REPORTS[0]  # mapping that is in force
        self.guards = False  # whether the watchdog is life guarding, which needs remote frames
        self.shows_mode = True  # whether the drive gives its mode of operation (0x6061)

    # -- questions -----------------------------------------------------------------------------

    def inspect(self, scale: AxisScale) -> list[AxisCheck]:
        """Ask the drive who it is and in which units it counts; nothing is written."""
        device = self.node.find(0x1000, 0, "I")
        checks = [
            self._compare(
                "profile of the device (0x1000)",
                402,
                None if device is None else device & 0xFFFF,
                "Only drives of profile CiA 402 can be driven so; check the node number.",
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
            finding, shown = Finding.UNKNOWN, "not told"
        else:
            right = math.isclose(came, expected, rel_tol=0.0, abs_tol=within)
            finding, shown = Finding.FOUND if right else Finding.WRONG, f"{came:g}"
        return self._check(what, finding, f"{expected:g}", shown, cure)

    def _inspect_identity(self) -> list[AxisCheck]:
        vendor, product = self.node.find(0x1018, 1, "I"), self.node.find(0x1018, 2, "I")
        if vendor is None or product is None:
            return []
        came = f"vendor 0x{vendor:X}, product 0x{product:X}"
        return [self._check("identity (0x1018)", Finding.FOUND, "any", came)]

    def _inspect_mode(self) -> list[AxisCheck]:
        modes = self.node.find(0x6502, 0, "I")
        if modes is None:
            finding, came = Finding.UNKNOWN, "not told"
        else:
            able = modes >> (TORQUE_MODE - 1) & 1
            finding, came = Finding.FOUND if able else Finding.WRONG, f"modes 0x{modes:X}"
        return [
            self._check(
                "cyclic synchronous torque (0x6502)",
                finding,
                "mode 10, bit 9",
                came,
                "This drive or its firmware cannot follow torques; use another.",
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
                    "not told",
                    "Compare a small torque with a spring balance: by a wrong `torque_count` all "
                    "torques are wrong by the ratio.",
                )
            ]
        unit = axis.rated_torque_unit
        rated, largest = self.node.find(0x6076, 0, "I"), self.node.find(0x6072, 0, "H")
        expected = axis.rated_torque / unit
        within = max(1.0, 1e-3 * expected)  # the last place, or one per mille
        cure = (
            f"Set `rated_torque` of axis `{axis.name}` to what the drive says, or correct the "
            "motor data of the drive. All torques would be wrong by the ratio."
        )
        if rated and largest and abs(rated * largest * 1e-3 - expected) <= within:
            cure = (
                f"The rig file gives the drive's maximum torque as `rated_torque` of axis "
                f"`{axis.name}`; give its rated torque, and say by `torque_unit` which of the two "
                "its per mille are of."
            )
        elif rated:
            power = round(math.log10(rated / expected))
            if power and abs(rated / 10.0**power - expected) <= 1e-3 * expected:
                cure = (
                    "The drive seems to count its rated torque in other units: look them up in its "
                    f"manual, and set `rated_torque_unit = {unit / 10.0**power:g}` (N m) if so."
                )
        name = "mN m" if unit == 1e-3 else f"{unit:g} N m"
        checks = [self._compare(f"rated torque (0x6076), {name}", expected, rated, cure, within)]
        if largest is not None:
            checks.append(
                self._check(
                    "maximum torque (0x6072), per mille",
                    Finding.FOUND,
                    f"{limit_per_mille(axis)}, which is set before arming",
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
                f"Set `counts` of axis `{self.axis.name}` to it, or correct the drive's scaling.",
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
                    "Clear it in the drive and use `direction` of the rig file: turned for "
                    "positions but not for torques, every loop around the drive is unstable.",
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
                f"{' and '.join(has)}, tried when the rig is armed" if has else "none of them",
                "" if has else _NO_WATCHDOG,
            )
        ]

    # -- what is written -----------------------------------------------------------------------

    def switch_off(self) -> None:
        """Power off and no target torque. A fault is left for the loop to show."""
        node, clock = self.node, self.node.network.link.clock
        node.attempt(0x6040, 0, "H", Controlword.DISABLE_VOLTAGE)
        if not node.offer(0x6071, 0, "h", 0) and (target := node.find(0x6071, 0, "h")):
            raise DriveError(
                node.where(0x6071),
                expected="no target torque",
                came=f"{target}",
                cure="Free the drive of other masters.",
            )
        until = clock.now() + SETTLE
        while (state := state_of(node.read(0x6041, 0, "H"))) not in _RESTING:
            if clock.now() >= until:
                raise DriveError(
                    node.where(0x6041),
                    expected="a drive that is switched off",
                    came=f"one whose state is {describe(state)}",
                    cure="Free it of other masters, and check supply and enable input.",
                )
            node.network.idle(0.005)

    def set_mode(self) -> None:
        """Set cyclic synchronous torque."""
        node, clock = self.node, self.node.network.link.clock
        taken = node.offer(0x6060, 0, "b", TORQUE_MODE)
        until = clock.now() + SETTLE
        while (mode := node.find(0x6061, 0, "b")) != TORQUE_MODE:
            if mode is None and taken:
                self.shows_mode = False
                return
            if clock.now() >= until:
                raise DriveError(
                    node.where(0x6061),
                    expected="mode 10, cyclic synchronous torque",
                    came=f"mode {mode}",
                    cure="Free the drive of other masters and of a configuration that fixes "
                    "its mode.",
                )
            node.network.idle(0.005)

    def set_limit(self) -> tuple[AxisScale, AxisCheck]:
        """Give the drive the axis' torque limit: behind the guard, it limits as well.

        Where per mille are of the maximum torque, this changes what they mean, and the scale with
        it. Which torque they are of cannot be asked; it is taken from the rig file.
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
                    cure="Lower `torque_limit` to what drive and motor bear, or free the object in "
                    "the drive's configuration. A limit that is not in force limits nothing.",
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
            "Set the current limit of the drive by its maker's tool: it holds when the guard has "
            "failed.",
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
            else "not told; confirmed in the rig file",
        )

    def _set_guarding(self, guard: int) -> bool:
        """Set life guarding, which excludes a heartbeat of the drive."""
        node = self.node
        node.attempt(0x1017, 0, "H", 0)
        self.guards = node.offer(0x100C, 0, "H", guard) and node.offer(0x100D, 0, "B", LIFE)
        return self.guards

    def _set_reaction(self) -> str | None:
        """Set the best reaction that removes torque, or find that it is set."""
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
                came="a drive that keeps neither",
                cure=f"Try another `watchdog`: the drive may have steps or a least value. "
                f"{_NO_WATCHDOG}",
            )
        if reaction is None:
            raise ArmError(
                node.where(0x6007),
                expected="a reaction to the loss of the host that removes torque: power off (2), "
                "quick stop (3) with 0x605A = 0, or fault (1) with 0x605E = 0",
                came="a drive that keeps none of them",
                cure="Its watchdog could expire and leave torque. Set the reaction in the drive's "
                "own configuration. If you have seen it remove torque from a motor that moves, set "
                "`watchdog_confirmed = true`.",
            )

    def set_process_data(self) -> list[AxisCheck]:
        """Lay out command and report, clear the inhibit time, and take other objects out of use.

        What is right already is not written: some drives keep their process data to themselves.
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
                            "out of use",
                            f"in use on identifier 0x{used & 0x7FF:03X}",
                            "The drive keeps it. See that nobody sends or needs it.",
                        )
                    )
        if TORQUE not in self.report:
            checks.append(
                self._check(
                    "torque in the report (0x6077)",
                    Finding.UNKNOWN,
                    "per mille",
                    "none",
                    "The torque of this drive is not compared with what it is commanded.",
                )
            )
        return checks

    def _map(self, index: int, base: int, objects: tuple[int, ...], kinds: tuple[int, ...]) -> None:
        """Lay out the first process data object (CiA 301), unless it is as it should be."""
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
        """Refuse an inhibit time that the drive keeps, and that is longer than the loop waits."""
        inhibit = (self.node.find(0x1800, 3, "H") or 0) * 1e-4
        if inhibit > STARVED * self.period:
            raise ArmError(
                self.node.where(0x1800, 3),
                expected="no inhibit time between reports",
                came=f"{inhibit * 1e3:g} ms, which the drive keeps; the loop's period is "
                f"{self.period * 1e3:g} ms",
                cure="Clear it by the maker's tool, or lower `rate`: reports would be held back.",
            )

    def refuse(self, checks: list[AxisCheck]) -> None:
        """Raise the first of the checks that forbids to arm."""
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
    """Reset a fault by a rising edge of bit 7 of the controlword, and wait for its end."""
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
    """Units of position per turn of the motor, as far as the drive tells them."""

    def ratio(index: int) -> float | None:
        above, below = node.find(index, 1, "I"), node.find(index, 2, "I")
        return above / below if above and below else None

    feed = ratio(0x6092)
    if feed is not None:
        return feed / (ratio(0x6091) or 1.0)
    resolution = ratio(0x608F)
    # Older profile: 0x6093 is increments of the encoder per unit of position.
    return None if resolution is None else resolution / (ratio(0x6093) or 1.0)
