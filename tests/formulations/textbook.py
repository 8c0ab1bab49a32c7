"""Systems as a textbook writes them, from their energies."""

from itertools import pairwise

import casadi as ca
import numpy as np

import concur as cc
from concur.formulations import Factor

G, MASSES, LENGTHS = 9.81, (1.0, 0.7, 0.5), (0.8, 0.6, 0.9)
DIRECTIONS = [
    np.array([0.6, 0.0, -0.8]),
    np.array([2.0, 3.0, -6.0]) / 7,
    np.array([-4.0, 1.0, -8.0]) / 9,
]
TURNS = [np.array([0.8, 0.5, 0.6]), np.array([0.9, 0.4, 0.5]), np.array([0.5, -2.0, -0.5])]
TORQUE, FORCE = np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 0.5])


def chain(n, stiffness=0.0, spin=None, masses=MASSES, lengths=LENGTHS, gravity=G):
    """Chain pendulum on two-spheres, torque on the first link and force at the tip.

    `stiffness` bends a rod with elastic joints; `spin` adds terms that vanish with q . v.
    """
    links = [Factor(f"link{k}", "S2", (0.0, 0.0, -1.0)) for k in range(1, n + 1)]
    kinetic, height, tip, speed = ca.SX(0), ca.SX(0), ca.SX(3, 1), ca.SX(3, 1)
    for link, m, length in zip(links, masses, lengths, strict=False):
        tip, speed = tip + length * link.q, speed + length * link.qdot
        kinetic, height = kinetic + m * ca.sumsqr(speed) / 2, height + m * gravity * tip[2]
    if spin is not None:
        kinetic += sum(ca.dot(f.q, f.v) * ca.dot(spin, f.v) for f in links)
    for a, b in pairwise(links):
        height += stiffness * ca.sumsqr(b.q - a.q) / 2
    inputs = {"torque": (links[0].v, "N m"), "tip": (speed, "N")}
    return cc.LagrangianSystem(kinetic, height, links, inputs=inputs, name=f"chain of {n}")


def rebuilt(robot, momentum=False):
    """A mechanism as a system without bodies; with `momentum` it is constrained to zero."""
    kinds = {"Free": "SE3", "Planar": "SE2", "Spherical": "SO3", "Revolute": "SO2"}
    factors = [
        Factor(body.name, kinds[type(body.joint).__name__])
        for body in robot.bodies
        if body.joint.nv
    ]
    q, v = (ca.vertcat(*[getattr(factor, x) for factor in factors]) for x in "qv")
    rows = robot.momentum_matrix(q) if momentum else robot.constraints(q)
    return cc.LagrangianSystem(
        robot.kinetic_energy(q, v),
        robot.potential_energy(q),
        factors,
        constraints=rows @ v if rows.shape[0] else None,
        inputs=[robot.freedom_names[k] for k in robot.actuated_freedoms],
        name=robot.name,
    )


def rigid_body(mass, center, tensor, frame="body"):
    """A free rigid body, in its body, spatial or hybrid twist; the wrench is the input."""
    body = Factor("body", "SE3")
    rotation, position = body.pose
    linear, angular = ca.vertsplit(body.v, 3)
    moving = linear + ca.cross(angular, center)
    kinetic = mass * ca.sumsqr(moving) / 2 + ca.bilin(ca.DM(tensor), angular, angular) / 2
    turning = rotation @ angular
    twists = {
        "body": body.v,
        "spatial": ca.vertcat(rotation @ linear - ca.cross(turning, position), turning),
        "hybrid": ca.vertcat(rotation @ linear, turning),
    }
    twist = twists[frame]
    return cc.LagrangianSystem(
        kinetic,
        0.0,
        [body],
        None if frame == "body" else {"twist": twist},
        inputs={"wrench": twist},
    )


def rolling_ball(mass, radius, moments):
    """Ball with its centre of mass in the middle on a horizontal plane, in spatial velocities."""
    ball, centre = Factor("ball", "SO3"), Factor("centre", "R3")
    turning = ball.pose[0] @ ball.v
    kinetic = mass * ca.sumsqr(centre.v) / 2 + ca.dot(ca.DM(moments), ball.v**2) / 2
    slip = centre.v - radius * ca.cross(turning, ca.DM([0.0, 0.0, 1.0]))
    return cc.LagrangianSystem(
        kinetic,
        mass * G * centre.q[2],
        [ball, centre],
        frame={"turn": turning, "slip": slip},
        constraints={"slip": slip},
        name="ball",
    )


def sleigh(mass, inertia, offset):
    """Chaplygin's sleigh: a knife edge at the origin, the centre of mass ahead of it."""
    body = Factor("sleigh", "SE2")
    vx, vy, turn = ca.vertsplit(body.v)
    kinetic = mass * (vx**2 + (vy + offset * turn) ** 2) / 2 + inertia * turn**2 / 2
    return cc.LagrangianSystem(kinetic, 0.0, [body], constraints={"edge": vy}, name="sleigh")


def rolling_disk(mass, radius, axial, diametral, point=False):
    """Thin disk on a plane: angular velocity and centre; by the angles of a textbook if `point`."""
    if point:
        angles = Factor("angles", "R3", unit="rad")  # heading, lean from the vertical, spin
        contact = Factor("contact", "R2")
        heading, lean, _ = ca.vertsplit(angles.q)
        yaw, fall, spin = ca.vertsplit(angles.v)
        along = ca.vertcat(ca.cos(heading), ca.sin(heading), 0)
        across = ca.vertcat(-ca.sin(heading), ca.cos(heading), 0)
        up = ca.DM([0.0, 0.0, 1.0])
        axle = ca.cos(lean) * across + ca.sin(lean) * up
        arm = -ca.sin(lean) * across + ca.cos(lean) * up
        # The axle of the disk is horizontal when it stands; it turns with heading and lean.
        omega = yaw * up + fall * along + spin * axle
        base = ca.vertcat(contact.v, 0)
        center = base + radius * (yaw * ca.cross(up, arm) + fall * ca.cross(along, arm))
        kinetic = (
            mass * ca.sumsqr(center) / 2
            + (
                axial * ca.dot(omega, axle) ** 2
                + diametral * (ca.sumsqr(omega) - ca.dot(omega, axle) ** 2)
            )
            / 2
        )
        rolling = contact.v - radius * spin * along[:2]
        return cc.LagrangianSystem(
            kinetic,
            mass * G * radius * ca.cos(lean),
            [angles, contact],
            constraints={"rolling": rolling},
            name="disk",
        )
    disk, centre = Factor("disk", "SO3"), Factor("centre", "R3")
    rotation = disk.pose[0]
    axle, omega = rotation[:, 1], rotation @ disk.v
    down = ca.vertcat(0, 0, -1) + axle * axle[2]
    arm = radius * down / ca.sqrt(ca.sumsqr(down))
    kinetic = (
        mass * ca.sumsqr(centre.v)
        + axial * disk.v[1] ** 2
        + diametral * (disk.v[0] ** 2 + disk.v[2] ** 2)
    ) / 2
    return cc.LagrangianSystem(
        kinetic,
        mass * G * centre.q[2],
        [disk, centre],
        constraints={"rolling": centre.v + ca.cross(omega, arm)},
        name="disk",
    )
