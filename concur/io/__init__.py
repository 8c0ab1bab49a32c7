"""Readers of robot and task files."""

from concur.io._proof_reader import load_proof_task
from concur.io._recorded import recorded_law, recorded_robot
from concur.io._robot import load, load_shipped, shipped_names
from concur.io._task import Task, load_task
from concur.io._urdf_draft import Repair
from concur.io._urdf_lint import suspicious_urdf
from concur.io._urdf_repair import repair_urdf
from concur.io._urdf_suggest import suggest_sidecar
from concur.io._world_loop import WorldInputs, WorldLoop

__all__ = [
    "Repair",
    "Task",
    "WorldInputs",
    "WorldLoop",
    "load",
    "load_proof_task",
    "load_shipped",
    "load_task",
    "recorded_law",
    "recorded_robot",
    "repair_urdf",
    "shipped_names",
    "suggest_sidecar",
    "suspicious_urdf",
]
