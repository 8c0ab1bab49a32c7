"""The rig: streams the torques of a servo to the drives of wheels and joints.

The loop on the rig runs the same servo object that is certified and simulated, so that going
from simulation to hardware and back changes one word and no control code. A guard stands between
the servo and the bus and judges the whole torque vector before any of it is sent; the same guard
runs with mock drives, when only listening, in the shadow of another controller and when driving.

Stops are named as in IEC 60204-1. Software offers category 1 (damp, then remove power) and
category 2 (hold under power). Category 0, the immediate removal of power, must be wired: no
program may be trusted with it.

This version holds the command line only, which says so; it sends nothing to any drive.
"""

from __future__ import annotations

__all__: list[str] = []
