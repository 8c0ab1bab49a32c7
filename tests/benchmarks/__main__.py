"""Command line of the benchmarks."""

from __future__ import annotations

import argparse

from tests.benchmarks._comparisons import comparisons
from tests.benchmarks._inverse_kinematics import inverse_kinematics_table
from tests.benchmarks._report import PAGE, facts, rewritten, table
from tests.benchmarks._timing import measure_all


def main() -> None:
    """Measure, print, and on demand rewrite the page."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Time concur beside Pinocchio and MuJoCo, interleaved, and print ratios.",
    )
    parser.add_argument("--rounds", type=int, help="timed runs of each; default 9 to 200 by length")
    parser.add_argument("--report", action="store_true", help=f"rewrite docs/{PAGE.name} too")
    arguments = parser.parse_args()
    compared = table(measure_all(comparisons(), arguments.rounds))
    text = f"{facts()}\n\n{compared}\n\n{inverse_kinematics_table()}"
    print(text)
    if arguments.report:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(rewritten(page, text), encoding="utf-8")


if __name__ == "__main__":
    main()
