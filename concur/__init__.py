"""concur: from a robot with a free base to a tracker running on its motors.

The public names are those of this module, listed in ``__init__.pyi``; classes of results are in the
subpackages. See ``docs/api.md`` for one line on each. A name is imported when it is first used.

>>> import concur as cc
>>> robot = cc.robots.rover_arm()
>>> model = cc.reduce(robot)
>>> model.shape_names
('left_wheel', 'right_wheel', 'turret', 'upper_arm', 'forearm')
"""

from collections.abc import Callable as _Callable
from typing import Any as _Any

import lazy_loader as _lazy

from concur._version import __version__ as __version__

_find: _Callable[[str], _Any]
_find, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)

_MOVED = {
    "certify": ("Certificate", "CertifiedGains", "OperatingCertificate", "operating_bounds"),
    "control": (
        "Gains",
        "InverseKinematics",
        "InverseKinematicsSolver",
        "LoopMargins",
        "MomentumMismatch",
        "Redundancy",
        "SingularityPath",
        "SingularityReport",
        "Tick",
        "linear_loop",
        "loop_margins",
    ),
    "formats": ("Task",),
    "formulations": ("MomentumChart",),
    "mechanism": ("helical_plane",),
    "reduction": (
        "Conservation",
        "ConstantOfMotion",
        "ConstantsOfMotion",
        "JointSymmetry",
        "LevelSet",
        "MomentumReduction",
        "StagedReduction",
        "SymmetryGroup",
        "SymmetryReport",
        "WheelReduction",
        "conservation",
        "constants_of_motion",
    ),
    "simulation": ("Motion", "Tolerances", "forced_motion", "reconstruct"),
}
"""Names that were here before, by the package in which they are now."""


def __getattr__(name: str) -> _Any:
    if name == "design_gains":  # warns when it is called
        from concur.certify import design_gains

        return design_gains
    package = next((place for place, names in _MOVED.items() if name in names), None)
    if package is None:
        return _find(name)
    import warnings
    from importlib import import_module

    warnings.warn(
        f"`concur.{name}` is now `concur.{package}.{name}`", DeprecationWarning, stacklevel=2
    )
    return getattr(import_module(f"concur.{package}"), name)
