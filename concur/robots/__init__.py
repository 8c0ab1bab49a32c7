"""Robots that come with the package: one function and one TOML file each."""

from concur.io import load_shipped
from concur.robot import Mechanism

__all__ = [
    "car_arm",
    "chaplygin_sleigh",
    "crane_car",
    "free_flyer",
    "mecanum_arm",
    "orbital_crawler",
    "planar_floater",
    "rover_arm",
    "servicer",
    "snakeboard",
    "station_arm",
    "tractor_trailers",
    "two_handed_spacecraft",
    "wheel_satellite",
]


def car_arm() -> Mechanism:
    """Build a small car with front steering that carries an arm of four joints.

    The car is that of Example 4.6.2 in R. Chhabra's thesis (Toronto, 2014): the front axle turns
    as a whole, and the rear wheels are no bodies but keep the rear axle from slipping sideways.
    All numbers are chosen here, of the size of a delivery robot: wheelbase 0.8 m, wheels of
    radius 0.15 m at 0.28 m to both sides. The right wheel has no drive, since its spin follows
    from the other velocities. At angles zero the arm points forward. Gravity is 9.81 m/s^2
    along -z.

    Returns
    -------
    Mechanism
        Bodies chassis (planar), steering, left_wheel, right_wheel, turret, upper_arm, forearm
        and hand (revolute); all joints but the base and right_wheel are driven.

    Examples
    --------
    >>> robot = car_arm()
    >>> robot.nv, robot.total_mass
    (10, 78.0)
    """
    return load_shipped("car_arm")


def chaplygin_sleigh() -> Mechanism:
    """Build an unactuated body on one skate.

    S. A. Chaplygin's sleigh: it does not slip sideways under the skate, where the base frame
    lies, and turns and glides freely; the centre of mass is 0.25 m in front of the skate. All
    numbers are chosen here. No gravity.

    Returns
    -------
    Mechanism
        One body, sleigh (planar).

    Examples
    --------
    >>> robot = chaplygin_sleigh()
    >>> robot.nv, robot.constraint_names
    (3, ('sleigh: no side slip',))
    """
    return load_shipped("chaplygin_sleigh")


def crane_car() -> Mechanism:
    """Build a car with front steering that carries a crane of two joints.

    Example 4.6.2 of R. Chhabra's thesis (Toronto, 2014), its bodies B1 to B6. Parameters chosen
    here: the thesis gives none. Wheelbase l = 2.5 m, wheels of radius b = 0.3 m at c = 0.7 m to
    both sides of the front axle, which turns as a whole. The rear wheels are no bodies but keep
    the rear axle, where the base frame lies, from slipping sideways. The right wheel has no
    drive, since its spin follows from the other velocities. No gravity: it would do nothing.

    Returns
    -------
    Mechanism
        Bodies chassis (planar), steering, column, left_wheel, right_wheel and boom (revolute);
        all joints but the base and right_wheel are driven.

    Examples
    --------
    >>> robot = crane_car()
    >>> robot.nv, robot.total_mass
    (8, 1140.0)
    """
    return load_shipped("crane_car")


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


def mecanum_arm() -> Mechanism:
    """Build a base on four mecanum wheels that carries an arm of seven joints.

    All numbers are chosen here, of the size of a mobile manipulator for assembly: wheels of
    radius 0.12 m at the corners of a rectangle of 0.7 m by 0.6 m, their rollers at 45 degrees.
    The rear right wheel has no drive, since its spin follows from those of the others. The axes
    of the arm are z, y, z, y, z, y, z; at angles zero it stands straight up, and is singular.
    Gravity is 9.81 m/s^2 along -z.

    Returns
    -------
    Mechanism
        Bodies base (planar), front_left, front_right, rear_left, rear_right, joint_1 to joint_6
        and hand (revolute); all joints but the base and rear_right are driven.

    Examples
    --------
    >>> robot = mecanum_arm()
    >>> robot.nv, round(robot.total_mass, 12)
    (14, 108.9)
    """
    return load_shipped("mecanum_arm")


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


def snakeboard() -> Mechanism:
    """Build a board on two skates that steer, with a rotor that stands for its rider.

    The structure is that of J. P. Ostrowski, A. D. Lewis, R. M. Murray and J. W. Burdick,
    "Nonholonomic mechanics and locomotion: the snakeboard example" (IEEE ICRA, 1994); all
    numbers are chosen here. The skates steer about axes 0.25 m in front of and behind the middle
    of the board. Its motion along x follows from no drive: it is gained by swinging the rotor
    and steering in time. No gravity.

    Returns
    -------
    Mechanism
        Bodies board (planar), rotor, front_skate and rear_skate (revolute, driven).

    Examples
    --------
    >>> robot = snakeboard()
    >>> robot.nv, robot.total_mass
    (6, 7.0)
    """
    return load_shipped("snakeboard")


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


def tractor_trailers() -> Mechanism:
    """Build a tractor on two driven wheels that pulls two trailers.

    All numbers are chosen here. The first hitch is 0.6 m behind the tractor's axle, the second
    0.5 m behind that of the first trailer; the axles of the trailers are 1.6 m behind their
    hitches. The trailers' wheels are no bodies but keep the axles from slipping sideways; the
    hitches are not driven. No gravity: it would do nothing.

    Returns
    -------
    Mechanism
        Bodies tractor (planar), left_wheel, right_wheel (revolute, driven), first_trailer and
        second_trailer (revolute, their frames in the hitches).

    Examples
    --------
    >>> robot = tractor_trailers()
    >>> robot.nv, robot.total_mass
    (7, 850.0)
    """
    return load_shipped("tractor_trailers")


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
