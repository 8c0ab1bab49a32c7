"""Outputs that follow references: linearization, servo, error dynamics, audit."""

from concur.control import laws
from concur.control._constraint_rows import GroundLimits as GroundLimits
from concur.control._constraint_rows import read_ground as read_ground
from concur.control._constraints import Constraints
from concur.control._core import given_options as given_options
from concur.control._core import taken_velocities as taken_velocities
from concur.control._design import Gains, design_gains
from concur.control._error_dynamics import ErrorDynamics
from concur.control._feasibility import Feasibility, Reach
from concur.control._hanging_load import HangingLoad
from concur.control._inverse_kinematics import (
    InverseKinematics,
    InverseKinematicsSolver,
    inverse_kinematics,
)
from concur.control._inverse_kinematics_step import coupling as coupling
from concur.control._joint_limits import SLACK as SLACK
from concur.control._joint_limits import JointLimits, driven_by, peak_label
from concur.control._kinds import GAINS, KINDS, executed, gains_of_kind, law_of_kind, own_kind
from concur.control._law import decoupling_margin, side
from concur.control._law import signed_margin as signed_margin
from concur.control._limited import law_function
from concur.control._linear_model import labels as labels
from concur.control._loop import (
    LoopMargins,
    LoopResponse,
    linear_loop,
    loop_margins,
    loop_response,
)
from concur.control._loop import longest_latency as longest_latency
from concur.control._loop import loop_of as loop_of
from concur.control._margins import Margins, decoupling_margins
from concur.control._mismatch import MomentumMismatch
from concur.control._mismatch import mismatch as mismatch
from concur.control._own_law import Law, tracking_law
from concur.control._passive import PassiveServo
from concur.control._reading import read_each, read_limits, read_outputs, stated_limits
from concur.control._redundancy import Redundancy
from concur.control._servo import Servo
from concur.control._singularities import (
    SingularityPath,
    SingularityReport,
    singularities,
)
from concur.control._singularity import lost_direction, singular_error
from concur.control._singularity import refusal as refusal
from concur.control._start import Start
from concur.control._state_bounds import StateBounds
from concur.control._tick import ReferenceTick, Tick, TickBuffers
from concur.control._tick_graph import KEPT, TickStatus, tick_function
from concur.control._tick_graph import attitudes as attitudes
from concur.control._torque_reserve import TorqueReserve
from concur.control._tracking_law import SPEED_LIMIT, CFolder, SingleError, TrackingLaw
from concur.control._words import law_parameters as law_parameters

__all__ = [
    "GAINS",
    "KEPT",
    "KINDS",
    "SPEED_LIMIT",
    "CFolder",
    "Constraints",
    "ErrorDynamics",
    "Feasibility",
    "Gains",
    "HangingLoad",
    "InverseKinematics",
    "InverseKinematicsSolver",
    "JointLimits",
    "Law",
    "LoopMargins",
    "LoopResponse",
    "Margins",
    "MomentumMismatch",
    "PassiveServo",
    "Reach",
    "Redundancy",
    "ReferenceTick",
    "Servo",
    "SingleError",
    "SingularityPath",
    "SingularityReport",
    "Start",
    "StateBounds",
    "Tick",
    "TickBuffers",
    "TickStatus",
    "TorqueReserve",
    "TrackingLaw",
    "decoupling_margin",
    "decoupling_margins",
    "design_gains",
    "driven_by",
    "executed",
    "gains_of_kind",
    "inverse_kinematics",
    "law_function",
    "law_of_kind",
    "laws",
    "linear_loop",
    "loop_margins",
    "loop_response",
    "lost_direction",
    "own_kind",
    "peak_label",
    "read_each",
    "read_limits",
    "read_outputs",
    "side",
    "singular_error",
    "singularities",
    "stated_limits",
    "tick_function",
    "tracking_law",
]
