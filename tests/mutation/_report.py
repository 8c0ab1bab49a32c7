"""Table of results in Markdown."""

from __future__ import annotations

from tests.mutation._runner import Result
from tests.mutation._targets import GROUPS


def killed_share(results: list[Result]) -> float:
    """Return how large a part of the mutants was killed; none at all is none killed."""
    return sum(bool(r.killed_by) for r in results) / max(len(results), 1)


def table(results: list[Result], seed: int) -> str:
    """Return the kill rates, the survivors and all mutants, as Markdown."""
    killed = sum(bool(r.killed_by) for r in results)
    lines = [
        f"{killed} of {len(results)} mutants killed ({100 * killed_share(results):.0f} %), "
        f"seed {seed}.",
        "",
        "| group | mutants | killed |",
        "| --- | --- | --- |",
    ]
    for group in GROUPS:
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
