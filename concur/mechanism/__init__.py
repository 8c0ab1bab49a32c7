"""What a robot is made of: bodies, joints, wheels, and the tree they form."""

from concur.mechanism import joints
from concur.mechanism._body import Body
from concur.mechanism._helical_plane import helical_plane
from concur.mechanism._inertia import Inertia
from concur.mechanism._pose import Pose, scalar
from concur.mechanism._tree import Tree, unknown_name
from concur.mechanism._wheel import Wheel

__all__ = [
    "Body",
    "Inertia",
    "Pose",
    "Tree",
    "Wheel",
    "helical_plane",
    "joints",
    "scalar",
    "unknown_name",
]
