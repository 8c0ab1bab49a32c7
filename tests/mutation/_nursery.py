"""Runs pytest again and again in copies of one process, which has loaded the libraries.

Loading NumPy, CasADi and pytest takes longer than most tests of a module. Nothing of this package
is loaded here: what a copy imports is the text on disk.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys

LIBRARIES = (
    "casadi",
    "control",
    "hypothesis",
    "numpy",
    "pytest",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.signal",
    "scipy.spatial.transform",
)


def _be_born(arguments: list[str], limit: int, log: str, lines: str) -> None:
    """Run pytest in this copy, with a limit of processor time in s; note the lines it runs."""
    code = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        signal.alarm(10 * limit)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream, number in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
            os.dup2(stream, number)
        code = _traced(arguments, lines) if lines else _tested(arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _tested(arguments: list[str]) -> int:
    return int(importlib.import_module("pytest").main(arguments))


def _traced(arguments: list[str], lines: str) -> int:
    """Run pytest, and write the lines of the package that ran: module to numbers of lines."""
    package = os.path.join(os.getcwd(), "concur")
    tracer = importlib.import_module("coverage").Coverage(
        data_file=None, config_file=False, source=[package]
    )
    tracer.start()
    code = _tested(arguments)
    tracer.stop()
    data = tracer.get_data()
    found = {
        os.path.relpath(name): sorted(data.lines(name) or []) for name in data.measured_files()
    }
    with open(lines, "w", encoding="utf-8") as file:
        json.dump(found, file)
    return code


def main() -> None:
    """Read jobs from standard input, a line each; answer with exit code and processor time."""
    for name in LIBRARIES:
        importlib.import_module(name)
    for line in sys.stdin:
        arguments, limit, log, lines = json.loads(line)
        child = os.fork()
        if not child:
            _be_born(arguments, limit, log, lines)
        _, status, used = os.wait4(child, 0)
        spent = used.ru_utime + used.ru_stime
        print(json.dumps([os.waitstatus_to_exitcode(status), spent]), flush=True)


if __name__ == "__main__":
    main()
