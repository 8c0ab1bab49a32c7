"""Robots that come with the package: one function and one TOML file each."""

from concur.formats import load_shipped
from concur.multibody import Mechanism

__all__ = ["orbital_crawler", "rover_arm"]


def orbital_crawler() -> Mechanism:
    """Build a spacecraft with a vehicle on its hull that carries an arm with two tips.

    The structure is that of the case study in section 2.5 of R. Chhabra's thesis (Toronto,
    2014): joints with six, three, three, one, one and one freedoms, the last two side by side.
    Joint frames, masses and inertias are chosen here: the thesis gives none. The vehicle rolls
    on the hull without side slip, v_y = 0 in its axes; since wheels roll on the plane of the
    base, the robot has none, and the row [0, 1, 0] is for the caller to state. No gravity.

    Returns
    -------
    Mechanism
        Bodies spacecraft (free), vehicle (planar), ball (spherical), arm, left_tip and
        right_tip (revolute); all joints but the base are driven.

    Examples
    --------
    >>> robot = orbital_crawler()
    >>> robot.nv, robot.total_mass
    (15, 452.0)
    """
    return load_shipped("orbital_crawler")


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
