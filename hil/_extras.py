"""Check of the libraries that the rig needs: the extra `rig`."""

from __future__ import annotations

from importlib.util import find_spec

from hil._concur import install_command
from hil.errors import RigError

NEEDED = ("can", "canopen", "zmq", "msgpack", "mcap")
"""Modules of the extra."""


def require_extra() -> None:
    """Raise if libraries of the rig are missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise RigError(
            "concur-rig",
            expected="the libraries of the extra `rig`",
            came=f"an installation without {', '.join(missing)}",
            cure=f"Run `{install_command('rig')}`.",
        )
