"""Runs mutants: each in a scratch copy of the tree, against the tests that see its module."""

from __future__ import annotations

import compileall
import json
import os
import py_compile
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue

from tests.mutation._covering import Covering
from tests.mutation._mutants import Mutant
from tests.mutation._targets import files_for

_PATIENCE = 3.0
"""Processor time of the unchanged tests, times this, after which a mutant counts as killed."""

_GRACE = 20.0
"""Processor time beside that, s."""

_KILLED = (signal.SIGKILL, signal.SIGXCPU, signal.SIGALRM)
"""Signals that end a run that takes too long."""

_OPTIONS = ("-q", "--tb=no", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:randomly")
_OPTIONS += ("-m", "not slow and not cross and not browser")
_DEFAULT = ("-m", "not slow and not extended and not cross and not browser and not packages")


@dataclass(frozen=True)
class Result:
    """What became of a mutant."""

    group: str
    name: str
    path: str
    line: int
    before: str
    after: str
    source: str  # the line, for a reader
    digest: str  # of the module that was changed
    killed_by: str  # first test that failed, "time-out", or "" for a survivor
    seconds: float


class Scratch:
    """A copy of the tree in which one mutant at a time is tried."""

    def __init__(self, root: Path, folder: Path, quick: bool = False) -> None:
        self.root, self.folder, self.quick = root, folder, quick
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=root, capture_output=True, check=True).stdout
        for name in filter(None, names.decode().split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        # Start-up is half of a quick run: byte code is kept, and checked by the text it is of.
        mode = py_compile.PycInvalidationMode.CHECKED_HASH
        for package in ("concur", "hil", "tests"):
            compileall.compile_dir(folder / package, quiet=2, invalidation_mode=mode)
        (folder / "out").mkdir(exist_ok=True)
        environment = {
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CONCUR_CACHE": str(folder / "out" / "cache"),
            "MPLBACKEND": "Agg",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation._nursery"],
            cwd=folder,
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        """End the process that runs the tests."""
        assert self._nursery.stdin is not None
        self._nursery.stdin.close()
        self._nursery.wait()

    def test(
        self,
        file: str,
        limit: float,
        without: frozenset[str] = frozenset(),
        first: bool = True,
        lines: str = "",
    ) -> tuple[list[str], float]:
        """Run a test file or one test; return what failed and the processor time in s."""
        options = [
            *_OPTIONS,
            *(_DEFAULT if self.quick else ()),
            *(f"--deselect={name}" for name in sorted(without)),
        ]
        options += ["-x"] if first else []
        log = self.folder / "out" / "pytest.log"
        job = json.dumps([[*options, file], int(limit), str(log), lines])
        assert self._nursery.stdin is not None
        assert self._nursery.stdout is not None
        print(job, file=self._nursery.stdin, flush=True)
        code, spent = json.loads(self._nursery.stdout.readline())
        if code in (0, 5):  # 5: none of its tests is in the marks
            return [], spent
        if code < 0:
            return ["time-out" if -code in _KILLED else "crash"], spent
        said = log.read_text(encoding="utf-8", errors="replace")
        failed = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", said, re.MULTILINE)
        if code == 4 and "while loading conftest" in said:  # a mutant that no module can import
            return ["import"], spent
        if not failed:
            raise RuntimeError(f"pytest in {self.folder} ended with:\n{said[-2000:]}")
        return failed, spent

    def try_mutant(self, mutant: Mutant, file: str, limit: float, without: frozenset[str]) -> str:
        """Change the module, run a test file, and undo the change; return what killed the mutant.

        A test of the rig can fail by the load of the machine: such a failure has to repeat.
        """
        target = self.folder / mutant.path
        source = target.read_bytes()
        try:
            target.write_bytes(mutant.apply(source))
            while True:
                failed = next(iter(self.test(file, limit, without)[0]), "")
                sure = "::" not in failed or not mutant.path.startswith("hil/")
                if sure or self.test(failed, limit)[0]:
                    return failed
                without |= {failed}
        finally:
            target.write_bytes(source)


class Campaign:
    """A sample of mutants, with results on disk after each, so that it can be resumed."""

    def __init__(
        self, root: Path, out: Path, workers: int, covering: Covering | None = None
    ) -> None:
        self.root, self.out, self.workers, self.covering = root, out, workers, covering
        self.file = out / "mutation.json"
        self.done: dict[str, Result] = {}
        if self.file.exists():
            read = json.loads(self.file.read_text(encoding="utf-8"))
            self.done = {r["name"]: Result(**r) for r in read["results"]}
        self._baseline: dict[str, tuple[float, frozenset[str]]] = {}
        self._lock = threading.Lock()
        self._first = defaultdict[str, threading.Lock](threading.Lock)  # by test file

    def run(self, sample: list[tuple[str, Mutant]], again: bool) -> list[Result]:
        """Try all mutants that have no result yet for the present source.

        Parameters
        ----------
        sample : list of tuple
            Group and mutant.
        again : bool
            Whether survivors are tried once more, against new tests.
        """
        waiting: SimpleQueue[tuple[str, Mutant] | None] = SimpleQueue()
        for group, mutant in sample:
            old = self.done.get(mutant.name)
            fresh = old is not None and old.digest == digest(self.root / mutant.path)
            if not fresh or (again and old is not None and not old.killed_by):
                waiting.put((group, mutant))
        for _ in range(self.workers):
            waiting.put(None)
        failures: list[BaseException] = []
        threads = [
            threading.Thread(target=self._work, args=(waiting, failures, number))
            for number in range(self.workers)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return [self.done[mutant.name] for _, mutant in sample]

    def _work(
        self,
        waiting: SimpleQueue[tuple[str, Mutant] | None],
        failures: list[BaseException],
        number: int,
    ) -> None:
        folder = self.out / f"scratch{number}"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            scratch = Scratch(self.root, folder, quick=self.covering is not None)
            try:
                while not failures and (job := waiting.get()) is not None:
                    self._store(self._result(scratch, *job))
            finally:
                scratch.close()
        except BaseException as error:
            failures.append(error)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _result(self, scratch: Scratch, group: str, mutant: Mutant) -> Result:
        killed_by, seconds = "", 0.0
        covering = self.covering
        files = covering.files(mutant) if covering else files_for(self.root, mutant.path)
        for file in files:
            spent, without = covering.runs[file] if covering else self._unchanged(scratch, file)
            begun = time.monotonic()
            killed_by = scratch.try_mutant(mutant, file, _PATIENCE * spent + _GRACE, without)
            seconds += time.monotonic() - begun
            if killed_by:
                # The yardstick takes a time-out for a survivor: a busy machine may not kill.
                killed_by = "" if covering and killed_by == "time-out" else killed_by
                break
        lines = (self.root / mutant.path).read_text(encoding="utf-8").splitlines()
        return Result(
            group,
            mutant.name,
            mutant.path,
            mutant.line,
            mutant.before,
            mutant.after,
            lines[mutant.line - 1].strip(),
            digest(self.root / mutant.path),
            killed_by,
            round(seconds, 1),
        )

    def _unchanged(self, scratch: Scratch, file: str) -> tuple[float, frozenset[str]]:
        """Processor time of a test file on the unchanged code, and the tests that fail there."""
        with self._first[file]:
            if file not in self._baseline:
                failed, spent = scratch.test(file, 1200.0, first=False)
                if any("::" not in name for name in failed):
                    raise RuntimeError(f"{failed}: the unchanged code does not pass its tests")
                for name in failed:
                    print(f"left out, it fails on the unchanged code: {name}", flush=True)
                without = frozenset(failed)
                self._baseline[file] = spent, without
        return self._baseline[file]

    def _store(self, result: Result) -> None:
        with self._lock:
            self.done[result.name] = result
            self.out.mkdir(parents=True, exist_ok=True)
            text = json.dumps({"results": [asdict(r) for r in self.done.values()]}, indent=1)
            partial = self.file.with_suffix(".part")
            partial.write_text(text + "\n", encoding="utf-8")
            partial.replace(self.file)
            said = result.killed_by or "SURVIVED"
            print(f"{len(self.done):4d} {said}: {result.name}", flush=True)


def digest(path: Path) -> str:
    """Return what identifies the text of a file."""
    return sha256(path.read_bytes()).hexdigest()[:16]
