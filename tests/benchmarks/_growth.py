"""How the cost grows with the joints of an arm: measured in loops in C, with a fitted exponent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from concur.show.style import PALETTE, new_figure, styled
from tests.benchmarks import _quantities
from tests.benchmarks._contender import law_inner
from tests.benchmarks._inner import OurInner, TheirInner
from tests.benchmarks._many_laws import hands
from tests.benchmarks._quantities import Case
from tests.benchmarks._report import duration
from tests.benchmarks._robots import bent, chain
from tests.benchmarks._timing import on_one_processor, progress

JOINTS = 6, 12, 24, 48, 96
ROUNDS = 30
FIGURE = Path(__file__).parents[2] / "docs" / "images" / "cost_against_joints.png"


@dataclass(frozen=True)
class Line:
    """Cost of one job against the number of joints.

    Parameters
    ----------
    name : str
        The job, and whose it is.
    ours : bool
        Whether it is ours.
    joints : tuple of int
        Joints of the arms.
    times : tuple of float
        Median seconds of one call.
    """

    name: str
    ours: bool
    joints: tuple[int, ...]
    times: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """Slope of the logarithm of the cost over that of the joints, fitted."""
        return float(np.polyfit(np.log(self.joints), np.log(self.times), 1)[0])


def growth(joints: Sequence[int] = JOINTS, rounds: int = ROUNDS) -> list[Line]:
    """Time law and single functions of arms of more and more joints, in turns."""
    times: dict[tuple[str, bool], list[float]] = {}
    for count in joints:
        progress(f"growth, {count} joints")
        robot = chain(count)
        made = Case(robot.name, robot, "link_tool", bent(robot))
        law = hands(robot, "link_tool")
        runs: dict[tuple[str, bool], OurInner | TheirInner] = {
            ("whole law", True): law_inner(law.servo, law.states),
            **{
                (_quantities.QUANTITIES[quantity], mine): inner
                for quantity in ("mass_matrix", "bias", "forward_dynamics")
                for mine, inner in (
                    (True, _quantities.our_inner(made, quantity)),
                    (False, _quantities.their_inner(made, quantity)),
                )
            },
        }
        measured: dict[tuple[str, bool], list[float]] = {key: [] for key in runs}
        for inner in runs.values():
            inner.seconds()
        with on_one_processor():
            for _ in range(rounds):
                for key, inner in runs.items():
                    measured[key].append(inner.seconds() / inner.rows.count)
        for key, seconds in measured.items():
            times.setdefault(key, []).append(float(np.median(seconds)))
    return [Line(name, mine, tuple(joints), tuple(t)) for (name, mine), t in times.items()]


def growth_table(lines: Sequence[Line]) -> str:
    """Costs and exponents as a Markdown table."""
    joints = lines[0].joints
    heads = ["job", "in a loop in", *(f"{count} joints" for count in joints), "grows as"]
    rows = [
        f"| {' | '.join(heads)} |",
        f"| --- | --- |{' ---: |' * (len(joints) + 1)}",
    ]
    for line in lines:
        who = "C, ours" if line.ours else "C++, Pinocchio's headers"
        cells = [line.name, who, *map(duration, line.times), f"n^{line.exponent:.2f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def draw_growth(lines: Sequence[Line], path: Path = FIGURE) -> None:
    """Draw costs against joints, ours solid, the peer's dashed."""
    names = list(dict.fromkeys(line.name for line in lines))
    with styled():
        figure = new_figure(7.0, 4.6)
        axes = figure.add_subplot()
        for line in lines:
            who = "" if line.ours else ", Pinocchio's headers"
            axes.loglog(
                line.joints,
                np.array(line.times) * 1e6,
                "o-" if line.ours else "s--",
                color=PALETTE[names.index(line.name)],
                label=f"{line.name}{who}: $n^{{{line.exponent:.2f}}}$",
            )
        axes.set_xticks(lines[0].joints, [str(count) for count in lines[0].joints])
        axes.minorticks_off()
        axes.set_xlabel("joints of the arm, n")
        axes.set_ylabel("one call in a loop in C or C++ [µs]")
        axes.legend()
        figure.savefig(path, dpi=110)
