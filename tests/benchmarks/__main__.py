"""Command line of the benchmarks."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable

import numpy as np

from tests.benchmarks._builds import ROBOTS, build_times
from tests.benchmarks._campaigns import campaign_table
from tests.benchmarks._certificates import certificate_cases, certificate_table, prove_all
from tests.benchmarks._cycle import cycle_table
from tests.benchmarks._floating_comparisons import floating_comparisons
from tests.benchmarks._graphs import graphs_table
from tests.benchmarks._growth import ROUNDS, draw_growth, growth, growth_table
from tests.benchmarks._inverse_kinematics import inverse_kinematics_table
from tests.benchmarks._limited import limits_table
from tests.benchmarks._limited_ticks import limits_ticks_table
from tests.benchmarks._loading import loading_comparisons
from tests.benchmarks._many_laws import LAWS, law_comparison
from tests.benchmarks._optional_peers import other_peers_table
from tests.benchmarks._plans import plans_table
from tests.benchmarks._qp_solvers import qp_table
from tests.benchmarks._quantities import CASES, QUANTITIES, case, comparison, length
from tests.benchmarks._references import CASES as FOLLOWED
from tests.benchmarks._references import comparison as following
from tests.benchmarks._references import references_table
from tests.benchmarks._report import (
    PAGE,
    QUOTE,
    README,
    builds_table,
    factors_table,
    facts,
    functions_table,
    laws_table,
    quotation,
    rewritten,
    table,
    with_section,
)
from tests.benchmarks._rig import rig_table
from tests.benchmarks._rover_comparisons import rover_comparisons
from tests.benchmarks._timing import measure, measure_all, progress


def free_flyer(asked: argparse.Namespace) -> str:
    """Tables of the free-flyer, with factors first; the README quotes them."""
    measured = measure_all(floating_comparisons(), asked.rounds)
    loop = next(m for m in measured if m.comparison.job.startswith("closed loop"))
    if asked.report and all(np.isfinite(m.times).all() for m in (*measured[:2], loop)):
        quote = quotation(measured[:2], loop)
        text = README.read_text(encoding="utf-8")
        README.write_text(rewritten(text, quote, QUOTE), encoding="utf-8")
    return f"{factors_table(measured[:2], loop)}\n\n{table(measured)}"


def functions(asked: argparse.Namespace) -> str:
    """Tables of single functions, robot by robot."""
    parts = []
    for name in CASES:
        progress(f"functions, {name}")
        rows = [
            (title, measure(comparison(name, quantity), asked.rounds), length(case(name), quantity))
            for quantity, title in QUANTITIES.items()
        ]
        parts.append(f"### {name[0].upper()}{name[1:]}\n\n{functions_table(rows)}")
    return "\n\n".join(parts)


def laws(asked: argparse.Namespace) -> str:
    """Table of whole laws."""
    rows = []
    for name, made in LAWS.items():
        progress(f"law, {name}")
        rows.append(
            (measure(law_comparison(name), asked.rounds), made().servo.compile().instructions)
        )
    return laws_table(rows)


def growing(asked: argparse.Namespace) -> str:
    """Table of costs against joints; draws the figure too where it is to be in the page."""
    lines = growth(rounds=asked.rounds or ROUNDS)
    if asked.report:
        draw_growth(lines)
    return growth_table(lines)


def builds(asked: argparse.Namespace) -> str:
    """Table of build times; each is measured once."""
    found = []
    for name in ROBOTS:
        progress(f"build, {name}")
        found.append(build_times(name))
    return builds_table(found)


SECTIONS: dict[str, Callable[[argparse.Namespace], str]] = {
    "Free-flyer with momentum": free_flyer,
    "Rover with an arm": lambda asked: table(measure_all(rover_comparisons(), asked.rounds)),
    "Laws of many robots": laws,
    "References inside the law": lambda asked: references_table(
        [measure(following(name), asked.rounds) for name in FOLLOWED]
    ),
    "Single functions": functions,
    "Other peers": lambda asked: other_peers_table(asked.rounds),
    "Graphs": lambda asked: graphs_table(asked.report),
    "From a description to the first torque": builds,
    "Loading": lambda asked: table(measure_all(loading_comparisons(), asked.rounds)),
    "Cost against joints": growing,
    "Campaigns": lambda asked: campaign_table(asked.rounds),
    "Rig": lambda asked: rig_table(),
    "Cycle in C": lambda asked: cycle_table(),
    "Inverse kinematics": lambda asked: inverse_kinematics_table(),
    "Plans": lambda asked: plans_table(asked.goals, asked.seed),
    "Solvers of quadratic programs": lambda asked: qp_table(),
    "Limits in the law": lambda asked: limits_ticks_table(),
    "Runs at their limits": lambda asked: limits_table(asked.report),
    "Certificates": lambda asked: certificate_table(prove_all(certificate_cases())),
}


def main() -> int:
    """Measure, print, and on demand rewrite the page."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Time concur beside Pinocchio and MuJoCo, interleaved, and print ratios.",
    )
    parser.add_argument("--rounds", type=int, help="timed runs of each; default 9 to 200 by length")
    parser.add_argument("--report", action="store_true", help=f"rewrite docs/{PAGE.name} too")
    parser.add_argument("--only", choices=SECTIONS, help="measure this section, keep the others")
    parser.add_argument("--seed", type=int, default=0, help="seed of the goals of plans")
    parser.add_argument("--goals", type=int, default=40, help="goals of the plans of the rover")
    arguments = parser.parse_args()
    wanted = list(SECTIONS) if arguments.only is None else [arguments.only]
    return measure_sections(wanted, arguments)


def measure_sections(wanted: list[str], arguments: argparse.Namespace) -> int:
    """Measure sections one by one; what is measured is printed, and kept, before the next begins.

    A section that fails is a line that says so; the exit status then is 1.
    """
    print(facts(), flush=True)
    if arguments.report and arguments.only is None:
        PAGE.write_text(rewritten(PAGE.read_text("utf-8"), facts()), encoding="utf-8")
    failed = 0
    for title in wanted:
        try:
            rows = SECTIONS[title](arguments)
        except Exception as error:  # the other sections are still wanted
            failed += 1
            rows = f"Not measured: {type(error).__name__}: {' '.join(str(error).split())}"
            traceback.print_exc()
        print(f"\n## {title}\n\n{rows}", flush=True)
        if arguments.report:
            page = with_section(PAGE.read_text("utf-8"), title, rows)
            PAGE.write_text(page, encoding="utf-8")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
