"""Command line of the benchmarks."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from tests.benchmarks._certificates import certificate_cases, certificate_table, prove_all
from tests.benchmarks._floating_comparisons import floating_comparisons
from tests.benchmarks._inverse_kinematics import inverse_kinematics_table
from tests.benchmarks._report import PAGE, facts, rewritten, table, with_section
from tests.benchmarks._rover_comparisons import rover_comparisons
from tests.benchmarks._timing import measure_all

SECTIONS: dict[str, Callable[[int | None], str]] = {
    "Rover with an arm": lambda rounds: table(measure_all(rover_comparisons(), rounds)),
    "Free-flyer with momentum": lambda rounds: table(measure_all(floating_comparisons(), rounds)),
    "Inverse kinematics": lambda rounds: inverse_kinematics_table(),
    "Certificates": lambda rounds: certificate_table(prove_all(certificate_cases())),
}


def main() -> None:
    """Measure, print, and on demand rewrite the page."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Time concur beside Pinocchio and MuJoCo, interleaved, and print ratios.",
    )
    parser.add_argument("--rounds", type=int, help="timed runs of each; default 9 to 200 by length")
    parser.add_argument("--report", action="store_true", help=f"rewrite docs/{PAGE.name} too")
    parser.add_argument("--only", choices=SECTIONS, help="measure this section, keep the others")
    arguments = parser.parse_args()
    wanted = SECTIONS if arguments.only is None else (arguments.only,)
    tables = {title: SECTIONS[title](arguments.rounds) for title in wanted}
    text = "\n\n".join(
        [facts(), *(f"## {title}\n\n{rows}" for title, rows in tables.items())],
    )
    print(text)
    if arguments.report:
        page = PAGE.read_text(encoding="utf-8")
        if arguments.only is None:
            page = rewritten(page, text)
        else:
            page = with_section(page, arguments.only, tables[arguments.only])
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
