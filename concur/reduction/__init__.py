"""From a robot to its shape: the affine lift v = H s + h and the dynamics on it."""

from concur.reduction._audit import CON4, Audit, AuditRow, AuditStatus
from concur.reduction._conservation import Conservation, conservation
from concur.reduction._constant import ConstantOfMotion
from concur.reduction._constants import ConstantsOfMotion, constants_of_motion
from concur.reduction._constraints import WheelReduction
from concur.reduction._coupled import CoupledReduction
from concur.reduction._derivative import along, gradient
from concur.reduction._ground import DETERMINATE as DETERMINATE
from concur.reduction._ground import LEAST_LOAD as LEAST_LOAD
from concur.reduction._ground import axle_rows as axle_rows
from concur.reduction._ground import carried_wrench as carried_wrench
from concur.reduction._ground import check_loads as check_loads
from concur.reduction._ground import check_rolling as check_rolling
from concur.reduction._ground import contact_edges
from concur.reduction._ground import contact_points as contact_points
from concur.reduction._ground import ground_loads as ground_loads
from concur.reduction._ground import load_arms as load_arms
from concur.reduction._ground import load_shares as load_shares
from concur.reduction._ground import refusal as refusal
from concur.reduction._ground import tipping_edges as tipping_edges
from concur.reduction._ground import tipping_rows as tipping_rows
from concur.reduction._ground import wheel_forces as wheel_forces
from concur.reduction._ground import wheel_names as wheel_names
from concur.reduction._level_set import LevelSet
from concur.reduction._lift import STAGES_HINT, UNDETERMINED
from concur.reduction._model import ReducedModel, check_model
from concur.reduction._momentum import MomentumReduction, SymmetryReduction
from concur.reduction._reduce import reduce
from concur.reduction._stages import StagedReduction, momenta_text
from concur.reduction._symmetry import symmetry
from concur.reduction._symmetry_report import JointSymmetry, SymmetryGroup, SymmetryReport

__all__ = [
    "CON4",
    "STAGES_HINT",
    "UNDETERMINED",
    "Audit",
    "AuditRow",
    "AuditStatus",
    "Conservation",
    "ConstantOfMotion",
    "ConstantsOfMotion",
    "CoupledReduction",
    "JointSymmetry",
    "LevelSet",
    "MomentumReduction",
    "ReducedModel",
    "StagedReduction",
    "SymmetryGroup",
    "SymmetryReduction",
    "SymmetryReport",
    "WheelReduction",
    "along",
    "check_model",
    "conservation",
    "constants_of_motion",
    "contact_edges",
    "gradient",
    "momenta_text",
    "reduce",
    "symmetry",
]
