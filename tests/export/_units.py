"""FMUs as in a simulation tool: loaded by FMPy, with variables by name."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref
from pathlib import Path

import fmpy
import numpy as np
import pytest
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import (
    FMU2Slave,
    fmi2CallbackAllocateMemoryTYPE,
    fmi2CallbackFreeMemoryTYPE,
    fmi2CallbackFunctions,
    fmi2CallbackLoggerTYPE,
)
from fmpy.fmi3 import FMU3Slave, fmi3Boolean, fmi3Float64
from numpy.typing import ArrayLike

VERSIONS = ("3.0", "2.0")
OK, WARNING, DISCARD, ERROR = range(4)


@contextmanager
def with_compiler() -> Iterator[None]:
    """Let units have binaries, which most tests do without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CONCUR_CC", raising=False)
        yield


def unpacked(path: Path) -> Path:
    """Folder with the contents of an archive, beside it."""
    target = path.with_suffix("")
    if not target.exists():
        with zipfile.ZipFile(path) as archive:
            archive.extractall(target)
    return target


class Unit:
    """An instance of a unit, of either version of FMI.

    Parameters
    ----------
    path : pathlib.Path
        The archive.
    token : str, optional
        Instantiation token that the unit receives; default that of its description.
    """

    def __init__(self, path: Path, token: str | None = None) -> None:
        folder = unpacked(path)
        self.description = fmpy.read_model_description(str(folder))
        self.third = self.description.fmiVersion == "3.0"
        self.messages: list[tuple[int, str]] = []
        self.time = 0.0
        self.fmu = (FMU3Slave if self.third else FMU2Slave)(
            guid=token or self.description.instantiationToken or self.description.guid,
            unzipDirectory=str(folder),
            modelIdentifier=self.description.coSimulation.modelIdentifier,
            instanceName="tested",
        )
        if self.third:
            self.fmu.instantiate(loggingOn=True, logMessage=self._third_log)
        else:
            callbacks = fmi2CallbackFunctions()
            callbacks.logger = fmi2CallbackLoggerTYPE(self._second_log)
            callbacks.allocateMemory = fmi2CallbackAllocateMemoryTYPE(fmpy.calloc)
            callbacks.freeMemory = fmi2CallbackFreeMemoryTYPE(fmpy.free)
            self.fmu.instantiate(loggingOn=True, callbacks=callbacks)

    def _third_log(self, environment: object, status: int, category: bytes, text: bytes) -> None:
        self.messages.append((status, text.decode()))

    def _second_log(
        self, environment: object, name: bytes, status: int, category: bytes, text: bytes
    ) -> None:
        self.messages.append((status, text.decode()))

    def variables(self, name: str) -> list:
        """The variables of a name: one of FMI 3, one for each number of FMI 2."""
        found = [v for v in self.description.modelVariables if v.name.partition("[")[0] == name]
        assert found, f"no variable `{name}`"
        return found

    def size(self, name: str) -> int:
        found = self.variables(name)
        return int(np.prod([d.start for d in found[0].dimensions], dtype=int)) * len(found)

    def set(self, **values: ArrayLike) -> None:
        for name, value in values.items():
            references = [v.valueReference for v in self.variables(name)]
            numbers = np.atleast_1d(np.asarray(value, float)).tolist()
            if self.third:
                self.fmu.setFloat64(references, numbers)
            else:
                self.fmu.setReal(references, numbers)

    def get(self, name: str) -> np.ndarray:
        found = self.variables(name)
        references = [v.valueReference for v in found]
        if found[0].type in ("Int32", "Integer"):
            read = self.fmu.getInt32 if self.third else self.fmu.getInteger
            return np.array(read(references))
        if self.third:
            return np.array(self.fmu.getFloat64(references, self.size(name)))
        return np.array(self.fmu.getReal(references))

    def enter(self, start: float = 0.0, stop: float | None = None) -> None:
        self.time = start
        if self.third:
            self.fmu.enterInitializationMode(startTime=start, stopTime=stop)
        else:
            self.fmu.setupExperiment(startTime=start, stopTime=stop)
            self.fmu.enterInitializationMode()

    def start(self, start: float = 0.0, stop: float | None = None, **values: ArrayLike) -> None:
        self.enter(start, stop)
        self.set(**values)
        self.fmu.exitInitializationMode()

    def step(self, h: float, at: float | None = None) -> int:
        """Advance; the status is given back, an error and what is discarded too."""
        t = self.time if at is None else at
        fmu = self.fmu
        try:
            if self.third:
                flags, last = [fmi3Boolean() for _ in range(3)], fmi3Float64()
                status = fmu.fmi3DoStep(
                    fmu.component, t, h, fmi3Boolean(True), *map(byref, flags), byref(last)
                )
                assert not any(flag.value for flag in flags)
                self.time = last.value
            else:
                status = fmu.fmi2DoStep(fmu.component, t, h, 1)
                self.time = fmu.getRealStatus(2)
        except FMICallException as error:
            return int(error.status)
        return int(status)

    def refused(self, call, *arguments) -> bool:
        """Whether a call ends with an error."""
        try:
            call(*arguments)
        except FMICallException as error:
            return bool(error.status == ERROR)
        return False

    def close(self) -> None:
        self.fmu.freeInstance()
