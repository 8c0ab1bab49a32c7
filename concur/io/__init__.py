"""Readers of robot and task files."""

from concur.io._check import Check, Start, check, is_task, named_robot
from concur.io._facts import settings, suspicious_task, task_facts
from concur.io._new import new_folder
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
    "Check",
    "Repair",
    "Start",
    "Task",
    "WorldInputs",
    "WorldLoop",
    "check",
    "is_task",
    "load",
    "load_proof_task",
    "load_shipped",
    "load_task",
    "named_robot",
    "new_folder",
    "recorded_law",
    "recorded_robot",
    "repair_urdf",
    "settings",
    "shipped_names",
    "suggest_sidecar",
    "suspicious_task",
    "suspicious_urdf",
    "task_facts",
]
