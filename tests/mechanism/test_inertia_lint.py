"""Inertias out of proportion: what is said, and that sound robots stay without a word."""

import numpy as np
import pytest

import concur as cc
from concur.robot._lint import suspicious_inertias

SOUND = cc.Inertia(2.0, (0.1, 0.0, 0.0), (0.01, 0.02, 0.02))


def pair(inertia=SOUND, reach=0.8):
    """Two bodies on hinges, one `reach` from the other."""
    return cc.Mechanism(
        "pair",
        [
            cc.Body("base", cc.joints.Free(), inertia=SOUND),
            cc.Body("arm", cc.joints.Revolute((0, 0, 1)), "base", cc.Pose((reach, 0, 0)), inertia),
        ],
    )


@pytest.mark.parametrize("name", ["rover_arm", "orbital_crawler"])
def test_shipped_robots_are_not_suspicious(name):
    assert suspicious_inertias(getattr(cc.robots, name)()) == ()


@pytest.mark.parametrize(
    ("factor", "unit"),
    [(1.0, None), (1e4, "kg cm^2"), (1e6, "kg mm^2"), (1e9, "g mm^2")],
)
def test_moments_in_another_unit_are_named(factor, unit):
    moments = (0.05 * factor, 0.08 * factor, 0.08 * factor)  # 0.2 m for 2 kg
    found = suspicious_inertias(pair(cc.Inertia(2.0, moments=moments)))
    if unit is None:
        assert found == ()
        return
    (text,) = found
    assert text == (
        f"body `arm`: radius of gyration {0.2 * factor**0.5:.3g} m on a robot of 0.8 m: "
        f"{unit} instead of kg m^2?"
    )


@pytest.mark.parametrize(("factor", "unit"), [(1e2, "cm"), (1e3, "mm")])
def test_centres_of_mass_in_another_unit_are_named(factor, unit):
    inertia = cc.Inertia(2.0, (0.0, 0.3 * factor, 0.0), (0.01, 0.02, 0.02))
    (text,) = suspicious_inertias(pair(inertia))
    assert f"centre of mass {0.3 * factor:.3g} m from the origin" in text
    assert text.endswith(f"{unit} instead of m?")


def test_no_body_is_denser_than_osmium():
    for density, count in ((22550.0, 0), (22650.0, 1)):
        for size in (1e-3, 0.1):  # a ball, and an ellipsoid with half-axes 1, 2 and 3
            for axes in (np.ones(3), np.array([1.0, 2.0, 3.0])):
                axes = axes * size
                mass = density * 4.0 / 3.0 * np.pi * axes.prod()
                moments = mass / 5.0 * ((axes**2).sum() - axes**2)
                found = suspicious_inertias(pair(cc.Inertia(mass, moments=moments)))
                assert len(found) == count, (density, axes, found)
    assert "mass in g instead of kg" in found[0]


def test_rods_and_plates_have_no_density():
    for thin, count in ((0.9e-9, 0), (1.1e-9, 1)):
        rod = cc.Inertia(2.0, (0.1, 0.0, 0.0), (1e-3, 1e-3, 2e-3 * thin))
        plate = cc.Inertia(2.0, (0.1, 0.0, 0.0), (1e-5, 1e-5, 2e-5 * (1.0 - thin)))
        assert len(suspicious_inertias(pair(rod))) == count
        assert len(suspicious_inertias(pair(plate))) == count
    assert suspicious_inertias(pair(cc.Inertia(2.0, (0.1, 0.0, 0.0)))) == ()


def test_three_sizes_are_the_limit():
    for away, count in ((2.3, 0), (2.5, 1)):
        inertia = cc.Inertia(2.0, (away, 0.0, 0.0), (0.01, 0.02, 0.02))
        assert len(suspicious_inertias(pair(inertia))) == count, away


@pytest.mark.parametrize("mass", [5e-324, 1e-300])
def test_the_lightest_of_bodies_can_be_judged(mass):
    (text,) = suspicious_inertias(pair(cc.Inertia(mass, (0.0, 0.0, 0.0), (0.01, 0.02, 0.02))))
    assert "radius of gyration" in text


def test_a_robot_without_extent_cannot_be_judged():
    alone = cc.Mechanism("alone", [cc.Body("body", cc.joints.Free(), None, cc.Pose(), SOUND)])
    assert suspicious_inertias(alone) == ()


def test_a_body_says_an_inertia_and_that_a_quaternion_has_no_limits():
    with pytest.raises(cc.errors.DescriptionError, match="expected an Inertia, got"):
        cc.Body("part", cc.joints.Free(), inertia=3.0)
    for joint in (cc.joints.Free(), cc.joints.Spherical()):
        words = f"no limits: a {type(joint).__name__} joint has a quaternion"
        with pytest.raises(cc.errors.DescriptionError, match=words):
            cc.Body("part", joint, limits=[(0.0, 1.0)] * joint.nq)
