"""The cycle of a rig in C: estimator, law, guard and stop, for loops outside of Python."""

from hil.spine._export import CycleFolder, export_rig

__all__ = ["CycleFolder", "export_rig"]
