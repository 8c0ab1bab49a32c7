"""Body, spatial and hybrid twists against Pinocchio and printed numbers.

The numbers of the rigid body (source 003: A. Mueller, J. Nonlinear Sci. 2021) order twists
[angular; linear]; they agree by two routes outside this package.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from concur.errors import UnknownNameError
from concur.groups import se3
from tests.oracles import assert_close

FRAMES = {
    "body": pin.ReferenceFrame.LOCAL,
    "spatial": pin.ReferenceFrame.WORLD,
    "hybrid": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


def _numbers(text: str) -> np.ndarray:
    """Printed [angular; linear] as [linear; angular]."""
    return np.roll(np.array(text.split(), dtype=float), 3)


POSE = np.eye(4)
POSE[:3, :3] = Rotation.from_euler("ZYX", [0.3, -0.7, 1.1]).as_matrix()
POSE[:3, 3] = 0.4, -0.9, 1.7
BODY = pin.Inertia(
    2.3,
    np.array([0.1, -0.2, 0.15]),
    np.array([[1.1, 0.05, -0.04], [0.05, 1.3, 0.06], [-0.04, 0.06, 1.7]]),
)
TWISTS = {
    "body": _numbers("0.5 -1.2 0.8 0.3 0.7 -0.4"),
    "spatial": _numbers(
        "1.171748761774607 -0.953596777569817 -0.218307180569343"
        " 1.565337947616512 2.70677557806549 1.204771791493963"
    ),
    "hybrid": _numbers(
        "1.171748761774607 -0.953596777569817 -0.218307180569343"
        " -0.252253036764585 0.62747981082092 0.531636616924744"
    ),
}
WRENCHES = {
    "body": _numbers("0.2 -0.1 0.4 1.5 -0.6 0.9"),
    "spatial": _numbers(
        "0.552793396865075 1.831162178330786 1.276390886131141"
        " 1.491329678747374 -0.663144608479128 0.869583243589892"
    ),
}


def test_numbers_of_the_rigid_body() -> None:
    """003: (84), (85), (94), (95), (114), (157)-(160), (175)."""
    inertia = BODY.matrix()
    for source, given in TWISTS.items():
        for target, expected in TWISTS.items():
            assert_close(se3.convert_twist(POSE, given, source, target), expected, 1e-14)
        mass = se3.convert_inertia(POSE, inertia, "body", source)
        assert given @ mass @ given / 2 == pytest.approx(2.34169875, abs=1e-14)
        assert_close(se3.convert_inertia(POSE, mass, source, "body"), inertia, 1e-14)
    for source, given in WRENCHES.items():
        for target, expected in WRENCHES.items():
            assert_close(se3.convert_wrench(POSE, given, source, target), expected, 1e-14)
    # The moment of the hybrid wrench is about the body's origin, not about the world's.
    turned = POSE[:3, :3] @ np.reshape(WRENCHES["body"], (2, 3)).T
    ours = se3.convert_wrench(POSE, WRENCHES["spatial"], "spatial", "hybrid")
    assert_close(ours, turned.T.ravel(), 1e-14)
    spatial = se3.convert_inertia(POSE, inertia, "body", "spatial")
    momentum = "-2.313449898751 -3.262223706080 -0.099402443339 -0.622369002579 1.392701673670"
    assert_close(spatial @ TWISTS["spatial"], _numbers(momentum + " 1.216927739344"), 1e-11)


def test_reference_frames_of_pinocchio() -> None:
    """003: (157)-(160), (175). Thesis: (2.1.1)."""
    model = pin.Model()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")
    data, rng = model.createData(), np.random.default_rng(4)
    for _ in range(5):
        q, v = pin.randomConfiguration(model, -np.ones(7), np.ones(7)), rng.normal(size=6)
        pin.forwardKinematics(model, data, q, v)
        pose = data.oMi[1]
        given = pin.getVelocity(model, data, 1, FRAMES["body"]).vector
        force = pin.Force(rng.normal(size=6))
        for name, frame in FRAMES.items():
            twist = pin.getVelocity(model, data, 1, frame).vector
            assert_close(se3.convert_twist(pose.homogeneous, given, "body", name), twist, 1e-13)
            assert_close(se3.convert_twist(pose.homogeneous, twist, name, "body"), given, 1e-13)
        world, local = pose.act(force).vector, force.vector
        aligned = pin.SE3(pose.rotation, np.zeros(3))
        for name, expected in (("spatial", world), ("hybrid", aligned.act(force).vector)):
            ours = se3.convert_wrench(pose.homogeneous, local, "body", name)
            assert_close(ours, expected, 1e-13)
        for name, moved in (("spatial", pose.act(BODY)), ("hybrid", aligned.act(BODY))):
            ours = se3.convert_inertia(pose.homogeneous, BODY.matrix(), "body", name)
            assert_close(ours, moved.matrix(), 1e-12)


def test_other_names_are_rejected() -> None:
    for function, value in (
        (se3.convert_twist, np.ones(6)),
        (se3.convert_wrench, np.ones(6)),
        (se3.convert_inertia, np.eye(6)),
    ):
        for names in (("LOCAL", "body"), ("body", "world")):
            with pytest.raises(UnknownNameError, match="body or spatial or hybrid"):
                function(np.eye(4), value, *names)
