"""The displacement subgroup that is not exponential, as two joints."""

from __future__ import annotations

from collections.abc import Sequence

from concur.robot._body import Body
from concur.robot._inertia import Inertia
from concur.robot._pose import Pose
from concur.robot.joints import Helical, Sliding


def helical_plane(
    name: str,
    normal: Sequence[float],
    pitch: float,
    parent: str | None = None,
    placement: Pose = Pose(),  # noqa: B008 (frozen)
    inertia: Inertia = Inertia(0),  # noqa: B008 (frozen)
) -> tuple[Body, Body]:
    """Build a body that slides in a plane and screws about its normal, H_p x| R^2.

    This group of Table 2.1 is the only one whose exponential misses poses: after a full turn
    no constant twist leads to a point beside the axis, so that screw parameters of the joint
    do not exist there and grow without bound nearby. As `Sliding` followed by `Helical`, with
    a body without mass between them, it has coordinates (x, y, angle) that reach every pose of
    (2.4.21) once and a velocity of full rank everywhere.

    As the first joint of a robot the pair is less than the group: the group that moves the whole
    robot by its first joint alone is then R^2, the translations, and a reduction by it removes
    two freedoms where the group as one joint would remove three.

    Parameters
    ----------
    name : str
        Name of the body; the body without mass is called ``<name>_slide``.
    normal : sequence of float
        Normal of the plane and direction of the screw in the joint frame, shape (3,).
    pitch : float
        Travel along the normal per angle, m/rad; not zero: without it use `Planar`.
    parent : str, optional
        Name of the parent body; none for the inertial frame.
    placement : Pose
        Joint frame in the parent's body frame.
    inertia : Inertia
        Mass, centre of mass and moments of the body in its frame.

    Returns
    -------
    slide, body : Body
        The body without mass and the body itself, both for the list of a `Mechanism`.

    Raises
    ------
    DescriptionError
        If the pitch is zero.

    References
    ----------
    Thesis, (2.4.21).

    Examples
    --------
    >>> import concur as cc
    >>> slide, nut = cc.robot.helical_plane("nut", (0, 0, 1), 0.01, inertia=cc.Inertia(0.2))
    >>> slide.name, nut.parent
    ('nut_slide', 'nut_slide')
    """
    slide = Body(f"{name}_slide", Sliding(normal), parent=parent, placement=placement)
    return slide, Body(name, Helical(normal, pitch), parent=slide.name, inertia=inertia)
