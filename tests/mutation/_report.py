"""Table of results in Markdown."""

from __future__ import annotations

from collections.abc import Mapping

from scipy.stats import binomtest

from tests.mutation._runner import Result
from tests.mutation._targets import GROUPS


def killed_share(results: list[Result]) -> float:
    """Return how large a part of the mutants was killed; none at all is none killed."""
    return sum(bool(r.killed_by) for r in results) / max(len(results), 1)


def interval(results: list[Result]) -> tuple[float, float]:
    """Return the exact 95 % interval of the kill rate of all mutants (Clopper and Pearson)."""
    killed = sum(bool(r.killed_by) for r in results)
    found = binomtest(killed, max(len(results), 1)).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)


def table(results: list[Result], seed: int, groups: Mapping[str, tuple[str, ...]] = GROUPS) -> str:
    """Return the kill rates, the survivors and all mutants, as Markdown."""
    killed = sum(bool(r.killed_by) for r in results)
    low, high = interval(results)
    lines = [
        f"{killed} of {len(results)} mutants killed ({100 * killed_share(results):.0f} %; "
        f"{100 * low:.0f} % to {100 * high:.0f} % at 95 % confidence), seed {seed}.",
        "",
        "| group | mutants | killed |",
        "| --- | --- | --- |",
    ]
    for group in groups:
        mine = [r for r in results if r.group == group]
        if mine:
            lines.append(f"| {group} | {len(mine)} | {sum(bool(r.killed_by) for r in mine)} |")
    for title, wanted in (("Survivors", False), ("Killed", True)):
        lines += ["", f"{title}:", "", "| module | line | mutation | code | killed by |"]
        lines.append("| --- | --- | --- | --- | --- |")
        lines += [_row(r) for r in results if bool(r.killed_by) is wanted]
    return "\n".join(lines) + "\n"


def _row(result: Result) -> str:
    change = f"`{result.before}` -> `{result.after}`"
    cells = [result.path, str(result.line), change, f"`{result.source}`", result.killed_by]
    return "| " + " | ".join(" ".join(c.split()).replace("|", "\\|") for c in cells) + " |"
