"""Robots with symmetries, and what symmetry means for them, written by hand."""

import numpy as np
from scipy.linalg import expm, null_space
from scipy.spatial.transform import Rotation

from concur import Body, Inertia, Mechanism, Pose, joints
from tests.groups.oracles import bracket, conjugation, cross_matrix, twist_matrix
from tests.oracles import (
    Constrained,
    Pinocchio,
    difference_quotient,
)

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
BOX = (0.3, 0.4, 0.5)

# --- twists and inertias, written by hand ------------------------------------------------------


def spatial_inertia(inertia):
    """Inertia about the body frame on twists [linear; angular]."""
    m, c = inertia.mass, cross_matrix(inertia.com)
    moments = np.array(inertia.moments)
    tensor = np.diag(moments) if moments.ndim == 1 else moments
    return np.block([[m * np.eye(3), -m * c], [m * c, tensor - m * c @ c]])


def placement(body):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(body.placement.rotation).as_matrix()
    pose[:3, 3] = body.placement.translation
    return pose


def joint_frame(robot, oracle, q, body):
    above = np.eye(4) if body.parent is None else oracle.pose(q, body.parent)
    return above @ placement(body)


def named(robot, name):
    return next(body for body in robot.bodies if body.name == name)


def carried_by(robot, name):
    found = {name}
    for _ in robot.bodies:
        found |= {body.name for body in robot.bodies if body.parent in found}
    return [body for body in robot.bodies if body.name in found]


def left_translated(robot, q, name, x):
    """Configuration with one joint moved to exp(basis x) q_k, joint kind by joint kind."""
    body, moved = named(robot, name), np.array(q)
    span = robot.q_slice(name)
    own = moved[span]
    match body.joint:
        case joints.Planar():
            turn = np.array([[0, -x[2], x[0]], [x[2], 0, x[1]], [0, 0, 0]])
            own[:2] = (expm(turn) @ [own[0], own[1], 1.0])[:2]
            own[2] += x[2]
        case joints.Spherical():
            own[:] = (Rotation.from_rotvec(x) * Rotation.from_quat(own)).as_quat()
        case joints.Free():
            step = expm(twist_matrix(x))
            own[:3] = step[:3, :3] @ own[:3] + step[:3, 3]
            own[3:] = (Rotation.from_matrix(step[:3, :3]) * Rotation.from_quat(own[3:])).as_quat()
        case _:
            own += x
    return moved


# --- AP2 a second time: the condition (4.4.30), for all twists the bodies can have -------------


def left_by_condition(robot, name, restricted=None, count=16):
    """Generators, in the joint's basis, of left translations that keep the kinetic energy.

    ``sum_i h_i(Ad_(q_k..q_i)^-1 ad_varpi eta, twist_i) = 0`` with eta the twist of the joint
    frame, over what joint k carries. `restricted` columns keep velocities of joint k to a
    subspace, as the thesis prints it.
    """
    rng, oracle, body = np.random.default_rng(99), Pinocchio(robot), named(robot, name)
    span = robot.v_slice(name)
    rows = []
    for _ in range(count):
        q, v = robot.random(rng), rng.uniform(-1.0, 1.0, robot.nv)
        if restricted is not None:
            v[span] = restricted @ v[: restricted.shape[1]]
        frame = joint_frame(robot, oracle, q, body)
        above = np.zeros(6)
        if body.parent is not None:
            above = oracle.jacobian(q, body.parent) @ v
        eta = np.linalg.solve(conjugation(placement(body)), above)
        wrench = sum(
            conjugation(np.linalg.solve(oracle.pose(q, part.name), frame)).T
            @ spatial_inertia(part.inertia)
            @ (oracle.jacobian(q, part.name) @ v)
            for part in carried_by(robot, name)
        )
        rows.append([wrench @ bracket(varpi) @ eta for varpi in body.joint.basis.T])
    return (
        null_space(np.array(rows), rcond=1e-9)
        if np.abs(rows).max() > 1e-12
        else np.eye(body.joint.nv)
    )


def assert_same_span(one, other, tolerance=1e-8):
    assert one.shape == other.shape
    if one.size:
        first, second = np.linalg.qr(one)[0], np.linalg.qr(other)[0]
        assert np.abs(second - first @ (first.T @ second)).max() < tolerance


# --- robots -------------------------------------------------------------------------------------


def chain(*bodies, gravity=(0, 0, 0), actuated=None):
    """Robot of (joint, placement, inertia), each on the one before; bodies b1, b2, ..."""
    made = [
        Body(f"b{i}", joint, None if i == 1 else f"b{i - 1}", place, inertia)
        for i, (joint, place, inertia) in enumerate(bodies, 1)
    ]
    return Mechanism("chain", made, gravity=gravity, actuated=actuated)


CAR = (joints.Planar(), Pose(), Inertia(5.0, (0.1, 0.2, 0.0), BOX))
OUT = Pose((0.3, -0.2, 0.4))
SLANTED = Pose((0.3, -0.2, 0.4), Rotation.from_rotvec([0.3, 0.5, -0.2]).as_quat())
GENERIC = Inertia(2.0, (0.1, 0.05, -0.2), BOX)


def centred(moments):
    return Inertia(2.0, (0, 0, 0), moments)


def turntable(com):
    return chain(CAR, (joints.Revolute(Z), OUT, Inertia(2.0, com, BOX)))


def disc_then_planar():
    return chain(
        (joints.Revolute(Z), Pose(), Inertia(3.0, moments=BOX)), (joints.Planar(), OUT, GENERIC)
    )


def ball_on(base, moments):
    return chain((base, Pose(), GENERIC), (joints.Spherical(), SLANTED, centred(moments)))


def lift_on_car():
    return chain(CAR, (joints.Prismatic(Z), OUT, GENERIC))


def slide_then_planar(axis):
    return chain((joints.Prismatic(axis), Pose(), GENERIC), (joints.Planar(), OUT, GENERIC))


def two_balls():
    return chain((joints.Spherical(), OUT, GENERIC), (joints.Spherical(), Pose(), GENERIC))


FLOATING = Mechanism(
    "floating",
    [
        Body("hull", joints.Free(), None, OUT, GENERIC),
        Body("wheel", joints.Revolute(Y), "hull", SLANTED, centred((1, 1.5, 1))),
        Body("arm", joints.Spherical(), "hull", SLANTED, GENERIC),
    ],
)


def in_gravity(robot, gravity, undriven=()):
    driven = [name for name in robot.actuated if name not in undriven]
    return Mechanism(robot.name, robot.bodies, robot.wheels, gravity, driven)


# --- momenta ------------------------------------------------------------------------------------


def momentum_rates(robot, joint, coordinates, rows=None, count=4, left=True):
    """Rates of <M v, motion> under random forces on the drives, at random states: by Pinocchio.

    Motions are left or right translations of the joint; relative to the forces at work.
    """
    oracle, body, rng = Pinocchio(robot), named(robot, joint), np.random.default_rng(8)
    span, rates = robot.v_slice(joint), []

    def momentum(q, v):
        if not left:
            return (oracle.mass_matrix(q) @ v)[span] @ coordinates
        frame = joint_frame(robot, oracle, q, body)
        turned = conjugation(np.linalg.solve(oracle.pose(q, joint), frame)) @ body.joint.basis
        own = np.linalg.lstsq(body.joint.basis, turned @ coordinates, rcond=None)[0]
        return (oracle.mass_matrix(q) @ v)[span] @ own

    for _ in range(count):
        q, v = robot.random(rng), rng.uniform(-1, 1, robot.nv)
        tau = np.zeros(robot.nv)
        tau[list(robot.actuated_freedoms)] = rng.uniform(-1, 1, len(robot.actuated_freedoms))
        if rows is None:
            vdot = oracle.forward_dynamics(q, v, tau)
        else:
            v = null_space(rows(q)) @ rng.uniform(-1, 1, robot.nv - len(rows(q)))
            vdot, _ = Constrained(oracle, rows).acceleration(q, v, tau)
        qdot = oracle.rate(q, v)
        size = np.abs(oracle.mass_matrix(q) @ vdot).max() + np.abs(oracle.bias(q, v)).max()

        def at(t, q=q, v=v, qdot=qdot, vdot=vdot):
            return momentum(robot.normalize(q + t * qdot), v + t * vdot)

        rates.append(difference_quotient(at) / size)
    return np.array(rates)
