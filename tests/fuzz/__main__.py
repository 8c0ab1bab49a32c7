"""`python -m tests.fuzz files|fields|calls COUNT [SEED] [KIND]`: faults, one of each kind."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from concur.simulation import _integrator
from tests.fuzz._calls import fuzz_calls
from tests.fuzz._fields import fuzz_fields
from tests.fuzz._files import fuzz_files

MEMORY = 5 * 2**30
FUZZERS = {"files": fuzz_files, "fields": fuzz_fields, "calls": fuzz_calls}


def main() -> None:
    """Show what a fuzzer finds."""
    what, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    only = sys.argv[4] if len(sys.argv) > 4 else ""
    began, seen = time.perf_counter(), Counter[str]()
    # A call that takes all memory must not take the machine with it.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    _integrator.MOST_STEPS = 500  # a run of a million steps is sound, and long
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("CONCUR_CC", "none")
        for fault in FUZZERS[what](Path(folder), count, seed, only):
            place = fault.kind.split(": ")[0]
            seen[place] += 1
            if seen[place] == 1:
                print(f"{fault.case}\n    {fault.kind}", flush=True)
                if os.environ.get("TRACE"):
                    print(fault.trace)
    print(
        f"{sum(seen.values())} faults of {len(seen)} kinds in {count} cases, "
        f"{time.perf_counter() - began:.0f} s"
    )


if __name__ == "__main__":
    main()
