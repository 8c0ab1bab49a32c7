"""Readers of robot and task files."""

from concur.formats._robot import load, load_shipped, shipped_names
from concur.formats._task import Task, load_task

__all__ = ["Task", "load", "load_shipped", "load_task", "shipped_names"]
