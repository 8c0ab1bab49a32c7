"""Planar arms and outputs for tests of inverse kinematics."""

from __future__ import annotations

import concur as cc

SMALL = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))

ABOUT_Z = cc.joints.Revolute((0, 0, 1))


def two_links(shoulder: object = None, elbow: object = None) -> cc.Mechanism:
    """Planar arm with links of 1 m and 0.7 m."""
    return cc.Mechanism(
        "two links",
        [
            cc.Body("ground", cc.joints.Fixed()),
            cc.Body("upper", ABOUT_Z, "ground", inertia=SMALL, limits=shoulder),
            cc.Body("fore", ABOUT_Z, "upper", cc.Pose((1, 0, 0)), SMALL, limits=elbow),
        ],
    )


TIP = cc.Output("tip", "fore", "R2", point=(0.7, 0, 0))
HAND = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
