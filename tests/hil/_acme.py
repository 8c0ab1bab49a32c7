"""A file that registers a kind of drive, and a fixture that restores the registries."""

import sys
from contextlib import contextmanager

import hil.emulator
from hil.drives import _modules, _registry

ACME = """
from hil.drives import Cia402Drive, register_drive
from hil.emulator import KINDS, EmulatedCia402

class AcmeDrive(Cia402Drive):
    ...

register_drive("acme", AcmeDrive)
KINDS["acme"] = EmulatedCia402
"""


@contextmanager
def forgotten():
    """Remove the registrations of drive files after the test."""
    kept = _registry._KINDS, hil.emulator.KINDS, _modules._IMPORTED
    before = [kind.copy() for kind in kept]
    try:
        yield
    finally:
        for name in _modules._IMPORTED - before[2]:
            del sys.modules[name]
        for kind, old in zip(kept, before, strict=True):
            kind.clear()
            kind.update(old)
