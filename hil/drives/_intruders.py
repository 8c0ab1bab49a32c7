"""Detection of frames of another host that command the drives of this rig."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hil.errors import ArmError

if TYPE_CHECKING:
    import can

    from hil.drives._drive import Drive
    from hil.links import Link


class Intruders:
    """Distinguishes frames of another host from echoes of this host's frames.

    Parameters
    ----------
    drives : iterable of Drive
        The drives.
    bus : Link
        Their bus. If its adapter echoes sent frames, or may do so, a frame that equals the last
        sent frame with the same identifier counts as an echo.
    """

    def __init__(self, drives: Iterable[Drive], bus: Link) -> None:
        self.bus = bus
        self._watched: dict[int, list[Drive]] = {}
        for drive in drives:
            for identifier in drive.watched_identifiers:
                self._watched.setdefault(identifier, []).append(drive)
        self._sent: dict[int, bytes] = {}

    def note(self, frame: can.Message) -> None:
        """Store a sent frame if the adapter may echo it.

        Parameters
        ----------
        frame : can.Message
            The frame.
        """
        if self.bus.echoes is not False:
            self._sent[frame.arbitration_id] = bytes(frame.data)

    def is_foreign(self, frame: can.Message) -> bool:
        """Whether a frame of another host commands drives of this rig.

        Parameters
        ----------
        frame : can.Message
            A received frame.

        Returns
        -------
        bool
            False for echoes, and for frames that command no drive of this rig.
        """
        drives = self._watched.get(frame.arbitration_id)
        if drives is None:
            return False
        if self.bus.echoes is not False:
            ours = self._sent.get(frame.arbitration_id)
            if ours is not None and frame.data == ours:
                return False
        return any(drive.is_foreign(frame) for drive in drives)

    @staticmethod
    def refusal(frame: can.Message) -> ArmError:
        """Make the error for a frame of another host before the run.

        Parameters
        ----------
        frame : can.Message
            The frame.

        Returns
        -------
        ArmError
            The error to raise.
        """
        return ArmError(
            f"bus, identifier 0x{frame.arbitration_id:03X}",
            expected="no frame of another controller",
            came=f"a frame with data {frame.data.hex() or 'of no bytes'}",
            cure="Stop the other controller, or the tool of the drives' manufacturer.",
        )
