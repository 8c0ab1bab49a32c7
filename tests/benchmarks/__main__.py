"""Command line of the benchmarks."""

from __future__ import annotations

import argparse

from tests.benchmarks._floating_comparisons import floating_comparisons
from tests.benchmarks._inverse_kinematics import inverse_kinematics_table
from tests.benchmarks._report import PAGE, facts, rewritten, table
from tests.benchmarks._rover_comparisons import rover_comparisons
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
    sections = {
        "Rover with an arm": table(measure_all(rover_comparisons(), arguments.rounds)),
        "Free-flyer with momentum": table(measure_all(floating_comparisons(), arguments.rounds)),
        "Inverse kinematics": inverse_kinematics_table(),
    }
    text = "\n\n".join([facts(), *(f"## {title}\n\n{rows}" for title, rows in sections.items())])
    print(text)
    if arguments.report:
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(rewritten(page, text), encoding="utf-8")


if __name__ == "__main__":
    main()
