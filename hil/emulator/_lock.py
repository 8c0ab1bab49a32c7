"""Lock that permits one emulated rig per bus: two would answer each other's controllers."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hil.errors import BusError

if TYPE_CHECKING:
    from hil.settings import BusSettings

fcntl: Any = None  # not on Windows: there is no lock
with suppress(ImportError):
    fcntl = import_module("fcntl")


class BusLock:
    """A lock that the operating system releases when its holder dies."""

    def __init__(self, bus: BusSettings) -> None:
        self._bus = bus
        words = f"{bus.interface} {bus.channel} {bus.options.get('port', '')}"
        name = hashlib.sha256(words.encode()).hexdigest()[:16]
        self._path = Path(tempfile.gettempdir()) / f"concur-emulated-{name}"
        self._file: int | None = None

    def take(self) -> None:
        """Lock the bus."""
        if fcntl is None:
            return
        try:
            # Other users could place a link there, whose target would be truncated.
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            self._file = os.open(self._path, flags, 0o666)
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                raise OSError
        except OSError:
            self.release()
            return  # a file of another user: the loop detects frames of another rig
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 20, 0).decode("ascii", "replace").strip()
            os.close(self._file)
            self._file = None
            raise BusError(
                str(self._bus),
                expected="no other emulated rig on the bus",
                came=f"an emulated rig of process {holder or 'unknown'}",
                cure="Stop it, or give one of the rigs another `port` in `options` of `[bus]`.",
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode("ascii"), 0)

    def release(self) -> None:
        """Unlock the bus."""
        if self._file is not None:
            with suppress(OSError):
                os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None
