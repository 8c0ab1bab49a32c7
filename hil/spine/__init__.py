"""The cycle of a rig in C: estimator, law, guard and stop, for loops outside of Python."""

from hil.spine._bench import BenchResult, bench_rig
from hil.spine._export import CycleFolder, export_rig
from hil.spine._loop import LoopInC, why_in_python
from hil.spine._memory import count

__all__ = [
    "BenchResult",
    "CycleFolder",
    "LoopInC",
    "bench_rig",
    "count",
    "export_rig",
    "why_in_python",
]
