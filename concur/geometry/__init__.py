"""Connections on configuration manifolds: torsion, curvature, transport, autoparallels.

A `Frame` holds velocities that are linear in the rates of the coordinates, and their brackets, the
Hamel coefficients. A `Connection` differentiates vectors along motions, by symbols in a frame or as
the one that a metric has. Of the kinetic metric of a system the autoparallels are the motions
without forces.

Arrays of three indices have the upper index first and the direction of differentiation second:
``L[k, i, j]`` is the component k of the derivative of the frame's field j along its field i.
"""

from concur.geometry._connection import Connection
from concur.geometry._frame import Frame

__all__ = ["Connection", "Frame"]
