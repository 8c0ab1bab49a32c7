"""`python -m tests.fuzz files|calls COUNT [SEED] [KIND]`: faults, one of each kind."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz._files import fuzz_files

FUZZERS = {"files": fuzz_files}


def main() -> None:
    """Show what a fuzzer finds."""
    what, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    only = sys.argv[4] if len(sys.argv) > 4 else ""
    began, seen = time.perf_counter(), Counter[str]()
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
