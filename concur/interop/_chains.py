"""Chains of simple joints in place of joints that other descriptions of robots lack."""

from __future__ import annotations

from dataclasses import dataclass

from concur.errors import DescriptionError
from concur.robot import Body, joints


@dataclass(frozen=True)
class Link:
    """One joint of a chain.

    Parameters
    ----------
    suffix : str
        Name of its freedom; empty for a joint that is no chain.
    kind : str
        "slide", "hinge" or "ball".
    axis : tuple of float
        Its axis in the joint frame, shape (3,).
    """

    suffix: str
    kind: str
    axis: tuple[float, ...] = (0.0, 0.0, 0.0)


def chain(joint: joints.Joint) -> tuple[Link, ...]:
    """Simple joints that together move a body as one joint does, outermost first.

    Parameters
    ----------
    joint : Joint
        The joint; a `Free` joint is three slides and a ball.

    Returns
    -------
    tuple of Link
        The simple joints; none for a `Fixed` joint.

    Raises
    ------
    DescriptionError
        If the joint is a screw.
    """
    match joint:
        case joints.Helical():
            raise DescriptionError(
                "Helical joint",
                expected="joints that are chains of hinges, slides and balls",
                came="a screw, which couples a hinge and a slide",
                cure="Replace it by a Revolute or a Prismatic joint, or keep the robot in TOML.",
            )
        case joints.Revolute():
            return (Link("", "hinge", tuple(joint.axis)),)
        case joints.Prismatic():
            return (Link("", "slide", tuple(joint.axis)),)
        case joints.Spherical():
            return (Link("", "ball"),)
        case joints.Free():
            return (*chain(joints.Cartesian()), Link("rotation", "ball"))
    basis = joint.basis.T
    return tuple(
        Link(
            name,
            "hinge" if unit == "rad" else "slide",
            tuple((row[3:] if unit == "rad" else row[:3]).tolist()),
        )
        for name, unit, row in zip(
            joint.coordinate_names, joint.coordinate_units, basis, strict=True
        )
    )


def is_native(body: Body) -> bool:
    """Whether URDF has one joint for the several freedoms of a body.

    Parameters
    ----------
    body : Body
        The body.

    Returns
    -------
    bool
        True for a `Free` joint, and for a base on a `Planar` joint with the normal z: readers
        disagree on planes with another normal, and messages on planar joints within a robot.
    """
    joint = body.joint
    upright = isinstance(joint, joints.Planar) and tuple(joint.normal) == (0.0, 0.0, 1.0)
    return isinstance(joint, joints.Free) or (upright and body.parent is None)


def urdf_joints(body: Body) -> tuple[str, ...]:
    """Names of the joints of a URDF file that carry a body, outermost first.

    Parameters
    ----------
    body : Body
        The body.

    Returns
    -------
    tuple of str
        The name of the joint, or one name per freedom of a chain.

    Raises
    ------
    DescriptionError
        If its joint is a screw.
    """
    label = body.joint_label
    if is_native(body) or not body.joint.nv:
        return (label,)
    if isinstance(body.joint, joints.Spherical):
        return tuple(f"{label}_{axis}" for axis in ("rx", "ry", "rz"))
    links = chain(body.joint)
    return tuple(f"{label}_{link.suffix}" if link.suffix else label for link in links)
