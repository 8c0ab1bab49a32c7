"""Readers of robot and task files."""

from concur.io._proof_reader import load_proof_task
from concur.io._recorded import recorded_law, recorded_robot
from concur.io._robot import load, load_shipped, shipped_names
from concur.io._task import Task, load_task
from concur.io._urdf_fix import FixedInertia, fix_inertias
from concur.io._urdf_lint import suspicious_urdf
from concur.io._urdf_suggest import suggest_sidecar
from concur.io._world_loop import WorldInputs, WorldLoop

__all__ = [
    "FixedInertia",
    "Task",
    "WorldInputs",
    "WorldLoop",
    "fix_inertias",
    "load",
    "load_proof_task",
    "load_shipped",
    "load_task",
    "recorded_law",
    "recorded_robot",
    "shipped_names",
    "suggest_sidecar",
    "suspicious_urdf",
]
