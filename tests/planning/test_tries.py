"""Which guesses are tried, for how many programs, and when it is enough: by a search of numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from concur.planning import _to_goal
from concur.planning._program import Found
from concur.planning._to_goal import ENOUGH, PROGRAMS, SAME, Planner, _distinct


@dataclasses.dataclass
class Numbers:
    """Search whose guesses are the programs that they need to the goal, and the duration there."""

    asked: list[tuple[float, int]] = dataclasses.field(default_factory=list)
    unit: float = 1.0

    def solve(self, unknowns: Any, programs: int = 60) -> Found:
        needed, time = unknowns
        self.asked.append((needed, programs))
        path: Any = None
        missed = 0.0 if needed <= programs else 1.0
        left = np.array([max(needed - programs, 1.0), time])
        return Found(left, path, 0.0, missed, int(min(needed, programs)))


class Tried(Planner):
    """Planner of which every motion holds in the dense check, and none is blocked."""

    def _best(self, search: Any, found: list[Found]) -> Any:
        return min(found, key=lambda one: one.time, default=None)

    def _blocked(self, tries: list[Found]) -> bool:
        return False


def tried(guesses: list[tuple[float, float]], enough: int = ENOUGH) -> tuple[Any, Numbers]:
    nothing: Any = None
    planner, search = Tried(nothing, "plan", None, 8, nothing), Numbers()
    best, _ = planner._tried(search, iter(np.array(guesses)), enough, None)  # type: ignore[arg-type]
    return best, search


@pytest.mark.parametrize(("needed", "first"), [(PROGRAMS, True), (PROGRAMS + 1, False)])
def test_a_guess_is_left_after_some_programs(needed, first) -> None:
    best, search = tried([(needed, 2.0), (5, 3.0)], 1)
    assert search.asked[0] == (needed, PROGRAMS)
    assert best.time == (2.0 if first else 3.0)
    assert len(search.asked) == (1 if first else 2)


@pytest.mark.parametrize(("spent", "third"), [(PROGRAMS - 1, True), (PROGRAMS, False)])
def test_another_motion_is_looked_for_with_as_many_programs(spent, third) -> None:
    """Once there is one: the second guess fails after some, and the third has what is left."""
    fails = Fails(spent)
    nothing: Any = None
    planner = Tried(nothing, "plan", None, 8, nothing)
    guesses = iter(np.array([(5.0, 2.0), (99.0, 9.0), (1.0, 1.0)]))
    best, _ = planner._tried(fails, guesses, ENOUGH, None)  # type: ignore[arg-type]
    assert best.time == (1.0 if third else 2.0)
    assert not third or fails.asked[-1] == (1.0, 1)


class Fails(Numbers):
    """Search that ends beside the goal after some programs where it needs many."""

    def __init__(self, spent: int) -> None:
        super().__init__()
        self.spent = spent

    def solve(self, unknowns: Any, programs: int = 60) -> Found:
        found = super().solve(unknowns, programs)
        return found if found.kept else dataclasses.replace(found, programs=self.spent)


def test_a_late_first_motion_gives_the_others_as_many_programs() -> None:
    late = [(99.0, 9.0), (99.0, 9.0), (20.0, 2.0)]
    _, search = tried([*late, (99.0, 9.0), (99.0, 9.0), (99.0, 9.0), (99.0, 9.0)])
    # 100 programs led to the first, so that 100 more are for others.
    assert [programs for _, programs in search.asked] == [40, 40, 40, 40, 40, 20]


def test_the_faster_of_the_first_two_is_taken() -> None:
    best, search = tried([(5, 3.0), (6, 2.0), (7, 1.0)])
    assert best.time == 2.0
    assert len(search.asked) == 2


def test_guesses_that_were_left_are_continued_the_nearest_first() -> None:
    nothing: Any = None
    planner, search = Tried(nothing, "plan", 1.0, 8, nothing), Numbers()
    _, tries = planner._tried(search, iter(np.array([(99.0, 2.0), (150.0, 3.0)])), 2, None)  # type: ignore[arg-type]
    assert planner._longer(search, tries).time == 2.0  # type: ignore[arg-type, union-attr]
    assert search.asked[2:] == [(59.0, 60)]
    with_none = [dataclasses.replace(one, programs=PROGRAMS - 1) for one in tries[:2]]
    assert planner._longer(search, with_none).time == 2.0  # type: ignore[arg-type, union-attr]
    assert search.asked[3:] == [(59.0, 60)]  # with more effort, from the nearest


@pytest.mark.parametrize(("apart", "count"), [(0.9 * SAME, 1), (1.1 * SAME, 2)])
def test_guesses_that_are_alike_are_tried_once(apart, count) -> None:
    guesses = np.zeros((2, 3))
    guesses[1, 2] = apart
    assert len(list(_distinct(iter(guesses)))) == count


def test_constants_of_these_tests() -> None:
    assert (PROGRAMS, ENOUGH) == (40, 2)
    assert _to_goal.GUESSES == 8
