"""Turning by shape: the displacement after a closed loop, and loops for a wanted displacement."""

from concur.planning._loop_plan import LoopPlan
from concur.planning._phase import GeometricPhase, geometric_phase
from concur.planning._plan import plan_loop

__all__ = ["GeometricPhase", "LoopPlan", "geometric_phase", "plan_loop"]
