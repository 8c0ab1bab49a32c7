"""Check of the libraries that the rig needs: the extra `rig`, and those of some drives."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

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


def library(name: str, extra: str) -> ModuleType:
    """Import a library that only some drives need.

    Parameters
    ----------
    name : str
        Name of the module.
    extra : str
        Extra that installs it.

    Returns
    -------
    module
        The library.

    Raises
    ------
    RigError
        If it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise RigError(
            f"drives of kind `{extra}`",
            expected=f"the library `{name}`",
            came=f"an installation without it ({error})",
            cure=f"Run `{install_command(extra)}`.",
        ) from error
