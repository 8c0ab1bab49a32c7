"""What a robot is made of: bodies, joints, wheels, and the tree they form."""

from concur.mechanism import joints
from concur.mechanism._body import Body
from concur.mechanism._inertia import Inertia
from concur.mechanism._pose import Pose
from concur.mechanism._tree import Tree, unknown_name
from concur.mechanism._wheel import Wheel

__all__ = ["Body", "Inertia", "Pose", "Tree", "Wheel", "joints", "unknown_name"]
