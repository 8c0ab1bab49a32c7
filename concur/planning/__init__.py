"""Plans: motions to a goal within limits, and turning by shape with closed loops."""

from concur.planning._loop_plan import LoopPlan
from concur.planning._made_for import changed as changed
from concur.planning._made_for import made_for as made_for
from concur.planning._motion_plan import MotionPlan
from concur.planning._motion_plan import table_of as table_of
from concur.planning._path_limits import PlanLimits
from concur.planning._phase import GeometricPhase, geometric_phase
from concur.planning._plan import plan_loop
from concur.planning._to_goal import plan

__all__ = [
    "GeometricPhase",
    "LoopPlan",
    "MotionPlan",
    "PlanLimits",
    "geometric_phase",
    "plan",
    "plan_loop",
]
