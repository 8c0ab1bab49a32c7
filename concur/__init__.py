"""concur: from a robot with a free base to a tracker running on its motors.

The public names are those of this module; see ``docs/api.md`` for one line on each.

>>> import concur as cc
>>> robot = cc.robots.rover_arm()
>>> model = cc.reduce(robot)
>>> model.shape_names
('left_wheel', 'right_wheel', 'turret', 'upper_arm', 'forearm')
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from concur import errors
from concur._version import __version__ as __version__
from concur.certify import (
    Certificate,
    CertifiedGains,
    OperatingCertificate,
    Status,
    certify,
    design_gains,
    operating_bounds,
    recheck,
)
from concur.control import (
    Gains,
    InverseKinematics,
    InverseKinematicsSolver,
    LoopMargins,
    MomentumMismatch,
    Output,
    Redundancy,
    ReferenceSample,
    Servo,
    SingularityPath,
    SingularityReport,
    Tick,
    inverse_kinematics,
    linear_loop,
    loop_margins,
    references,
    singularities,
)
from concur.mechanism import Body, Inertia, Pose, Wheel, helical_plane, joints
from concur.multibody import Mechanism
from concur.reduction import (
    Conservation,
    ConstantOfMotion,
    ConstantsOfMotion,
    JointSymmetry,
    LevelSet,
    MomentumChart,
    MomentumReduction,
    StagedReduction,
    SymmetryGroup,
    SymmetryReport,
    WheelReduction,
    conservation,
    constants_of_motion,
    reduce,
    symmetry,
)
from concur.simulation import (
    Motion,
    Plant,
    Run,
    Tolerances,
    forced_motion,
    reconstruct,
    simulate,
)

if _TYPE_CHECKING:
    from concur import robots
    from concur.formats import Task, load, load_task

__all__ = [
    "Body",
    "Certificate",
    "CertifiedGains",
    "Conservation",
    "ConstantOfMotion",
    "ConstantsOfMotion",
    "Gains",
    "Inertia",
    "InverseKinematics",
    "InverseKinematicsSolver",
    "JointSymmetry",
    "LevelSet",
    "LoopMargins",
    "Mechanism",
    "MomentumChart",
    "MomentumMismatch",
    "MomentumReduction",
    "Motion",
    "OperatingCertificate",
    "Output",
    "Plant",
    "Pose",
    "Redundancy",
    "ReferenceSample",
    "Run",
    "Servo",
    "SingularityPath",
    "SingularityReport",
    "StagedReduction",
    "Status",
    "SymmetryGroup",
    "SymmetryReport",
    "Task",
    "Tick",
    "Tolerances",
    "Wheel",
    "WheelReduction",
    "certify",
    "conservation",
    "constants_of_motion",
    "design_gains",
    "errors",
    "forced_motion",
    "helical_plane",
    "inverse_kinematics",
    "joints",
    "linear_loop",
    "load",
    "load_task",
    "loop_margins",
    "operating_bounds",
    "recheck",
    "reconstruct",
    "reduce",
    "references",
    "robots",
    "simulate",
    "singularities",
    "symmetry",
]

# Reading files needs a validation library that costs start-up time: imported at first use.
_LATE = {"Task": "concur.formats", "load": "concur.formats", "load_task": "concur.formats"}


def __getattr__(name: str) -> _Any:
    if name == "robots":
        return _import_module("concur.robots")
    if name in _LATE:
        return getattr(_import_module(_LATE[name]), name)
    raise AttributeError(f"module 'concur' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
