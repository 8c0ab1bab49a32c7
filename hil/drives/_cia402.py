"""CiA 402 drives over CANopen in cyclic synchronous torque mode.

Each cycle the host sends SYNC; every drive answers with its first transmitted process data object
(statusword, position, torque), sampled at the SYNC. The host then sends each drive its first
received one (controlword, target torque), which is applied at once. The report contains the mode of
operation if it has room; otherwise the host queries it by SDO twice within each watchdog time.

Before the first torque the host sets the drive's watchdog and its reaction to an expired watchdog
(`_cia402_setup`). The event timer of the received process data (0x1400:5) monitors the commands.
The heartbeat consumer (0x1016) monitors the heartbeat that the loop sends beside SYNC. A drive with
neither gets life guarding (0x100C, 0x100D), which the loop serves by remote frames. Then all drives
are tested together and twice (`_cia402_trial`): they apply a small torque, the host stops sending,
and each drive must leave *operation enabled*, without torque. A drive that was not tested is never
enabled.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import can

from hil.drives._cia402_cycle import Cia402Cycle
from hil.drives._cia402_setup import POSITION, Cia402Setup, clear_fault
from hil.drives._cia402_state import FAULTS, Controlword, state_of
from hil.drives._cia402_trial import try_watchdogs
from hil.drives._drive import AxisCheck, Drive, Finding, Wanted
from hil.drives._network import Nmt, SdoSession
from hil.errors import DriveError
from hil.links import Link


class Cia402Drive(Cia402Cycle):
    """A CiA 402 drive.

    Parameters
    ----------
    axis : Axis
        The axis as the rig file describes it.
    index : int
        Index of the axis.
    rig : Rig
        The whole rig.

    Attributes
    ----------
    scale : AxisScale
        Conversion between the drive's numbers and the joint; `prepare` recomputes it from the
        torques that the drive reports.
    state : DriveState
        Last reported state.
    """

    def inspect(self, bus: Link) -> list[AxisCheck]:
        if bus.silent:
            return [self._check("drive", Finding.UNKNOWN, cure="Nothing is sent in this mode.")]
        try:
            return self._setup(bus).inspect(self.scale)
        except DriveError as error:
            missing, expected = Finding.MISSING, "an answer to SDO"
            return [self._check("drive", missing, expected, error.came, error.cure)]

    def _setup(self, bus: Link) -> Cia402Setup:
        session = SdoSession(bus, self.axis.name, self.axis.node)
        return Cia402Setup(self.axis, session, self.rig.loop.period)

    def reset(self, bus: Link) -> None:
        """Clear a fault by an edge of bit 7; `prepare` detects a fault that remains.

        Parameters
        ----------
        bus : Link
            The bus.
        """
        node = SdoSession(bus, self.axis.name, self.axis.node)
        with suppress(DriveError):
            node.command(Nmt.PRE_OPERATIONAL)  # a stopped node serves no SDO
            status = node.find(0x6041, 0, "H")
            if status is not None and state_of(status) in FAULTS:
                clear_fault(node)

    def prepare(self, bus: Link) -> list[AxisCheck]:
        """Switch the drive off, inspect it, write the loop's settings, read each value back.

        Settings of earlier runs are written again, as a power cycle in between would have erased
        them. A fault of the drive is not cleared. The drive is not enabled before `prove` has
        tested its watchdog.

        Parameters
        ----------
        bus : Link
            The open bus.

        Returns
        -------
        list of AxisCheck
            The drive's properties, and the settings in force.

        Raises
        ------
        ArmError
            If the drive has no watchdog, or no reaction to its expiry that removes torque.
        DriveError, UnitError
            See `Drive.prepare`.
        """
        self._refuse_silence(bus)
        self._forget()
        with suppress(DriveError):  # a stopped node does not answer
            SdoSession(bus, self.axis.name, self.axis.node, attempts=1).put(
                0x6040, 0, "H", Controlword.DISABLE_VOLTAGE
            )
        setup = self._setup(bus)
        setup.node.command(Nmt.PRE_OPERATIONAL)
        # The position is checked below, in the report that the loop uses.
        checks = [check for check in self.inspect(bus) if check.what != POSITION]
        setup.refuse(checks)
        setup.switch_off()
        setup.set_mode()
        self.scale, limit = setup.set_limit()
        checks += [limit, setup.set_watchdog()]
        checks += setup.set_process_data()
        self._configure(setup.report, setup.shows_mode, setup.guards)
        checks.append(self._first_report(setup.node, bus))
        self._prepared = True
        return checks

    @classmethod
    def prove(cls, drives: Sequence[Drive], bus: Link) -> list[AxisCheck]:
        return try_watchdogs([drive for drive in drives if isinstance(drive, Cia402Drive)], bus)

    def release(self, bus: Link) -> None:
        if bus.silent:
            return
        bus.send(self.command(Wanted.OFF, 0.0))
        node = SdoSession(bus, self.axis.name, self.axis.node, timeout=0.02, attempts=2)
        off = False
        try:
            # the frame above may be lost; these are confirmed
            off = node.attempt(0x6040, 0, "H", Controlword.DISABLE_VOLTAGE)
            node.attempt(0x6071, 0, "h", 0)
            node.command(Nmt.PRE_OPERATIONAL)
            node.attempt(0x1016, 1, "I", 0)  # the heartbeat ends with the loop
            node.attempt(0x100C, 0, "H", 0)  # and so does guarding
        except DriveError:
            bus.send(
                can.Message(
                    arbitration_id=0,
                    data=bytes((Nmt.PRE_OPERATIONAL, self.axis.node)),
                    is_extended_id=False,
                )
            )
            if not off:
                raise
