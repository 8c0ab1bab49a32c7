"""State estimation: velocities from encoders, the base's pose from the lift and pose sources."""

from hil.state._differentiation import encoder_step as encoder_step
from hil.state._explanation import Cause as Cause
from hil.state._residual import CAUSES as CAUSES
from hil.state._residual import Finding as Finding
from hil.state._residual import Residual as Residual
from hil.state._residual import acting as acting
