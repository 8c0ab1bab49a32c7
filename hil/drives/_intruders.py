"""Frames of somebody else who commands the drives of this rig."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hil.errors import ArmError

if TYPE_CHECKING:
    import can

    from hil.bus import Bus
    from hil.drives._drive import Drive


class Intruders:
    """Tells frames of somebody else from echoes of one's own.

    Parameters
    ----------
    drives : iterable of Drive
        The drives.
    bus : Bus
        Their bus. Where its adapter gives back what was sent, or where that is not known, a frame
        that equals the last one that was sent on its identifier counts as an echo.
    """

    def __init__(self, drives: Iterable[Drive], bus: Bus) -> None:
        self.bus = bus
        self._watched: dict[int, list[Drive]] = {}
        for drive in drives:
            for identifier in drive.watched_identifiers:
                self._watched.setdefault(identifier, []).append(drive)
        self._sent: dict[int, bytes] = {}

    def note(self, frame: can.Message) -> None:
        """Remember a frame that was sent, where its echo may come.

        Parameters
        ----------
        frame : can.Message
            The frame.
        """
        if self.bus.echoes is not False:
            self._sent[frame.arbitration_id] = bytes(frame.data)

    def is_foreign(self, frame: can.Message) -> bool:
        """Whether somebody else commands drives by a frame.

        Parameters
        ----------
        frame : can.Message
            A frame that came.

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
        """Make the error for somebody else's frame before the run.

        Parameters
        ----------
        frame : can.Message
            The frame.

        Returns
        -------
        ArmError
            To be raised.
        """
        return ArmError(
            f"bus, identifier 0x{frame.arbitration_id:03X}",
            expected="nobody else who commands the drives",
            came=f"a frame with data {frame.data.hex() or 'of no bytes'}",
            cure="Stop the other controller, or the tool of the drives' maker.",
        )
