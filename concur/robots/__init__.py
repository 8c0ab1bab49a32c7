"""Robots that come with the package: one function and one TOML file each."""

from concur.formats import load_shipped
from concur.multibody import Mechanism

__all__ = ["rover_arm"]


def rover_arm() -> Mechanism:
    """Build a rover on two driven wheels that carries an arm of three joints.

    The geometry is that of Example 4.6.1 and the case study in section 5.5 of R. Chhabra's
    thesis (Toronto, 2014). Parameters chosen here: the thesis gives none. The base frame is in
    the middle of the wheel axle, x forward and z up; the centre of mass of the chassis lies
    l0 = 0.25 m and the arm's first joint l0 + l1 = 0.4 m in front of it. Wheels: radius
    b = 0.1 m at c = 0.25 m to both sides. Links along y: l2 = l3 = 0.4 m, hand at l4 = 0.2 m
    beyond the elbow. Gravity is 9.81 m/s^2 along -z.

    Returns
    -------
    Mechanism
        Bodies chassis, left_wheel, right_wheel, turret, upper_arm, forearm; all joints but the
        base are driven.

    Examples
    --------
    >>> rover_arm().nv
    8
    """
    return load_shipped("rover_arm")
