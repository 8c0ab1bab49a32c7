"""Campaigns for tests of executors and files: quick ones, and ones that raise, die or hang."""

import multiprocessing
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass
class Quick:
    """Values that depend on each world alone; `marks` counts what each process does."""

    marks: str = ""
    columns = ("sum", "wave")

    @property
    def facts(self):
        return {"law": "a", "kind": repr(self)}

    @property
    def key(self):
        return repr(self.facts)

    def _mark(self, what):
        if self.marks:
            with open(Path(self.marks, f"{what}-{os.getpid()}"), "a") as file:
                file.write("x\n")

    def prepare(self):
        self._mark("prepared")

    def outcome(self, numbers, worlds):
        self._mark("evaluated")
        for number in numbers.tolist():
            self.at(number)
        return np.column_stack([worlds.sum(axis=1), np.sin(1e3 * worlds[:, 0] + numbers)]), {}

    def at(self, number):
        pass


@dataclass
class Bad(Quick):
    """World 13 raises an error, kills the process or hangs."""

    how: str = "raises"

    def at(self, number):
        if number != 13:
            return
        if self.how == "raises":
            raise ValueError("no model")
        if self.how == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(3600)


@dataclass
class Slow(Quick):
    def at(self, number):
        time.sleep(0.01)


@dataclass
class Foreign(Quick):
    """Has another compiler in other processes."""

    @property
    def facts(self):
        return {"law": "a", "compiler": f"of {multiprocessing.current_process().name[:4]}"}

    @property
    def key(self):
        return "foreign"


def drawn(n, d=3):
    numbers = np.arange(n)
    return numbers, np.random.default_rng(5).normal(size=(n, d))
