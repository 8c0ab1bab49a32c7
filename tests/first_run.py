"""README's rig commands, again and again, while another process keeps a core busy.

    python -m tests.first_run --runs 10 --option=--mock
    python -m tests.first_run --runs 10 --option=--emulate

Prints the end of each run; exit status 0 if each one has reached its end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RIG = Path(__file__).parents[1] / "examples" / "rover_rig" / "rig.toml"


def main() -> int:
    """Run the command; 0 if all runs ended well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--option", default="--mock", choices=["--mock", "--emulate"])
    parser.add_argument("--duration", type=float, help="length of each run, s")
    parser.add_argument("--idle", action="store_true", help="without the busy process")
    asked = parser.parse_args()
    command = [Path(sys.executable).with_name("concur-rig"), "drive", RIG, asked.option]
    command += ["--yes", "--json"]
    command += [] if asked.duration is None else ["--duration", str(asked.duration)]
    busy = None if asked.idle else subprocess.Popen([sys.executable, "-c", "while True: pass"])
    good = 0
    try:
        for number in range(1, asked.runs + 1):
            with tempfile.TemporaryDirectory() as folder:
                begun = time.monotonic()
                done = subprocess.run(
                    [*command, "--out", Path(folder) / "record"], capture_output=True, text=True
                )
                taken = time.monotonic() - begun
            good += done.returncode == 0
            said = done.stderr.strip()
            if done.stdout.startswith("{"):
                result = json.loads(done.stdout)
                said = f"{result['reason']}: {result['sentence']}; {result['machine'] or 'steady'}"
            print(f"{number}: status {done.returncode} after {taken:.0f} s. {said}", flush=True)
    finally:
        if busy is not None:
            busy.kill()
            busy.wait()
    print(f"{good} of {asked.runs}")
    return int(good < asked.runs)


if __name__ == "__main__":
    sys.exit(main())
