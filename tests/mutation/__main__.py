"""Command line of the mutation runner."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping
from itertools import chain, islice, zip_longest
from pathlib import Path

from tests.mutation._covering import FOLDERS, covering
from tests.mutation._mutants import Mutant, is_valid, mutants
from tests.mutation._report import killed_share, table
from tests.mutation._runner import Campaign, Scratch
from tests.mutation._targets import GROUPS, modules

ROOT = Path(__file__).parents[2]


def sample(
    root: Path,
    only: list[str],
    count: int,
    seed: int,
    match: str = "",
    groups: Mapping[str, tuple[str, ...]] = GROUPS,
) -> list[tuple[str, Mutant]]:
    """Draw mutants from each group in turn, so that a large module does not crowd out others."""
    drawn = []
    for group in groups:
        chosen = [
            mutant
            for module in modules(root, group, groups)
            if not only or group in only or any(module.endswith(name) for name in only)
            for mutant in mutants(root, module)
            if match in mutant.name
        ]
        random.Random(f"{seed} {group}").shuffle(chosen)
        drawn.append([(group, mutant) for mutant in chosen])
    in_turn = chain.from_iterable(zip_longest(*drawn))
    valid = (job for job in in_turn if job is not None and is_valid(root, job[1]))
    return list(islice(valid, count))


def main() -> int:
    """Run a sample of mutants and write the tables; 1 if too few were killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants in the sample")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help=f"a group ({', '.join(GROUPS)}) or the end of a module's path; may be repeated",
    )
    parser.add_argument("--match", default="", help="only mutants whose name contains this text")
    parser.add_argument("--again", action="store_true", help="try survivors against new tests")
    parser.add_argument("--list", action="store_true", help="list the sample and stop")
    parser.add_argument("--workers", type=int, default=2, help="mutants tried at the same time")
    parser.add_argument("--least", type=float, default=0.0, help="kill rate below which it fails")
    parser.add_argument(
        "--yardstick",
        action="store_true",
        help="draw from whole folders; the tests that cover a line may kill, a time-out may not",
    )
    parser.add_argument(
        "--budget", type=float, default=60.0, help="of the yardstick: s of tests for each mutant"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutation", help="folder")
    asked = parser.parse_args()

    groups = {name: (f"concur/{name}/**/*.py",) for name in FOLDERS} if asked.yardstick else GROUPS
    jobs = sample(ROOT, asked.only, asked.count, asked.seed, asked.match, groups)
    if asked.list:
        print("\n".join(f"{group}: {mutant.name}" for group, mutant in jobs))
        return 0
    out, known = asked.out.resolve(), None
    if asked.yardstick:
        known = covering(
            ROOT, out, asked.budget, lambda: Scratch(ROOT, out / "scratch", quick=True), print
        )
    results = Campaign(ROOT, out, asked.workers, known).run(jobs, asked.again)
    text = table(results, asked.seed, groups)
    (asked.out / "mutation.md").write_text(text, encoding="utf-8")
    print(text)
    return int(killed_share(results) < asked.least)


if __name__ == "__main__":
    sys.exit(main())
