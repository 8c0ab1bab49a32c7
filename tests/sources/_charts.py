"""Exponential coordinates of rotations as CasADi expressions, away from zero."""

from __future__ import annotations

import casadi as ca


def rotation(phi: ca.SX) -> ca.SX:
    """R = exp(phi~)."""
    angle = ca.norm_2(phi)
    turn = ca.skew(phi / angle)
    return ca.SX.eye(3) + ca.sin(angle) * turn + (1 - ca.cos(angle)) * turn @ turn


def quaternion(phi: ca.SX) -> ca.SX:
    """Unit quaternion xyzw."""
    angle = ca.norm_2(phi)
    return ca.vertcat(ca.sin(angle / 2) / angle * phi, ca.cos(angle / 2))


def body_rates(phi: ca.SX, sign: float = -1.0) -> ca.SX:
    """Omega: angular velocity in body axes of R = exp(phi~) is Omega phidot; +1: in world axes."""
    angle = ca.norm_2(phi)
    turn = ca.skew(phi)
    second = (1 - ca.cos(angle)) / angle**2
    third = (angle - ca.sin(angle)) / angle**3
    return ca.SX.eye(3) + sign * second * turn + third * turn @ turn
