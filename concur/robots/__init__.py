"""Robots that come with the package: one function and one TOML file each."""

from concur.formats import load_shipped
from concur.multibody import Mechanism

__all__ = [
    "free_flyer",
    "orbital_crawler",
    "planar_floater",
    "rover_arm",
    "servicer",
    "station_arm",
    "two_handed_spacecraft",
    "wheel_satellite",
]


def free_flyer() -> Mechanism:
    """Build a small satellite with an arm of six revolute joints and a tool at its end.

    All numbers are chosen here. The joints turn about z, y, y, x, y and x, as those of many
    industrial arms; at angles zero the arm points along x of the satellite. The centre of mass
    of the satellite is off the origin of its frame on purpose. No gravity.

    Returns
    -------
    Mechanism
        Bodies spacecraft (free), turret, upper_arm, forearm, wrist_roll, wrist_pitch, hand
        (revolute) and tool, a frame 0.15 m in front of the hand's; all joints but the base are
        driven.

    Examples
    --------
    >>> robot = free_flyer()
    >>> robot.nv, robot.total_mass
    (12, 85.5)
    """
    return load_shipped("free_flyer")


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


def planar_floater() -> Mechanism:
    """Build a body that floats in a plane, with an arm of two links.

    The space robot with two parallel revolute joints of section 6b in A. Müller's paper "Hamel's
    equations and geometric mechanics of constrained and floating multibody and space systems"
    (Proc. R. Soc. A 479, 2023), here in the plane. All numbers are chosen here: the paper prints
    none. At angles zero the centre of mass of the base, both joints and both links lie on one
    line, so that loops of the joints with a point of symmetry there do not turn the base.

    Returns
    -------
    Mechanism
        Bodies base (planar), upper_arm and forearm (revolute about z, driven).

    Examples
    --------
    >>> robot = planar_floater()
    >>> robot.nv, robot.total_mass
    (5, 13.5)
    """
    return load_shipped("planar_floater")


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


def servicer() -> Mechanism:
    """Build a servicing satellite with two arms of seven joints.

    All numbers are chosen here, of the size of a satellite of one tonne with arms of 2.6 m:
    x points forward, y to the left, z up. The right arm is the mirror image of the left one. The
    three axes of each shoulder (yaw, pitch, roll of the upper arm) meet, as do those of each
    wrist (pitch, yaw, roll of the hand). At angles zero both arms point forward; with straight
    elbows they are singular. No gravity.

    Returns
    -------
    Mechanism
        Bodies satellite (free) and, for each side, left_shoulder_yaw, left_shoulder_pitch,
        left_upper_arm, left_forearm, left_wrist_pitch, left_wrist_yaw, left_hand (revolute, all
        driven). The frame of a hand is where it grasps.

    Examples
    --------
    >>> robot = servicer()
    >>> robot.nv, robot.total_mass
    (20, 1104.0)
    """
    return load_shipped("servicer")


def station_arm() -> Mechanism:
    """Build an arm of seven joints like that of the International Space Station, on a station.

    Lengths, axes, masses, moments and joint limits of the arm are from P. K. Nguyen and
    P. C. Hughes, "Teleoperation: from the space shuttle to the space station" (Progress in
    Astronautics and Aeronautics 161, 1994), as transcribed in the public collection
    TraceableRobotModels. The centres of mass are chosen here, half way between the ends of each
    link, and the moments taken about them. Of the station only the mass is near a published one,
    417 to 450 t; its moments and the place of the arm are chosen here. At angles zero the arm
    stands straight up from the station, and is singular. No gravity.

    Returns
    -------
    Mechanism
        Bodies station (free), foot (fixed to it), shoulder_roll, shoulder_yaw, upper_boom,
        lower_boom, wrist_pitch, wrist_yaw, hand (revolute, driven) and tip, a frame at the end
        of the hand.

    Examples
    --------
    >>> robot = station_arm()
    >>> robot.nv, round(robot.total_mass)
    (13, 421505)
    """
    return load_shipped("station_arm")


def two_handed_spacecraft() -> Mechanism:
    """Build a spacecraft with an arm on a ball joint, an elbow and two hands.

    The structure is that of the case study in section 3.4 of R. Chhabra's thesis (Toronto,
    2014), its bodies B1 to B5. Parameters chosen here: the thesis gives none. Links along y:
    l1 = 1 m from the centre of mass of the spacecraft to the ball joint, l2 = 0.8 m to the elbow,
    l3 = 0.6 m to the hands, which sit c = 0.25 m to both sides. Every revolute axis is x. No
    gravity.

    Returns
    -------
    Mechanism
        Bodies spacecraft (free), upper_arm (spherical), forearm, right_hand and left_hand
        (revolute); all joints but the base are driven.

    Examples
    --------
    >>> robot = two_handed_spacecraft()
    >>> robot.nv, robot.total_mass
    (12, 119.5)
    """
    return load_shipped("two_handed_spacecraft")


def wheel_satellite() -> Mechanism:
    """Build a small satellite with three reaction wheels whose axes are orthogonal.

    The structure is that of sections 5f and 6c in A. Müller's paper "Hamel's equations and
    geometric mechanics of constrained and floating multibody and space systems" (Proc. R. Soc.
    A 479, 2023). All numbers are chosen here: the paper prints none. Each wheel's axis goes
    through the origin of the satellite's frame; turning the wheels moves no mass, so that the
    inertia matrix is constant. They touch no ground, and ``robot.wheels`` is empty. No gravity.

    Returns
    -------
    Mechanism
        Bodies satellite (free), wheel_x, wheel_y and wheel_z (revolute, driven).

    Examples
    --------
    >>> robot = wheel_satellite()
    >>> robot.nv, round(robot.total_mass, 12)
    (9, 2.9)
    """
    return load_shipped("wheel_satellite")
