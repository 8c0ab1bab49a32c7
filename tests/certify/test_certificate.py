"""Certificates of whole loops: rates, regions, files, and their claims along motions."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

from concur import robots
from concur.certify import examine
from concur.certify._certificate import Certificate
from concur.certify._certify import certify
from concur.certify._narrow import narrow_decays
from concur.certify._status import Status
from concur.checker import recheck
from concur.control import ErrorDynamics, Servo
from concur.errors import DescriptionError, NonFiniteError, OutputError, ShapeError
from concur.outputs import Output
from concur.outputs.groups import (
    Angle,
    OutputGroup,
    PlanarPose,
    Pose,
    Product,
    Rotation,
    Vector,
)
from concur.reduction import reduce
from concur.rounding import rounded_down
from tests.certify._stored import write

SETS = {"A": (4.0, 5.0), "B": (4.0, 2.8)}


def loop(group: OutputGroup, kp: float = 4.0, kd: float = 2.8) -> ErrorDynamics:
    one = np.eye(group.dim)
    return ErrorDynamics(group, kp * one, kd * one, one)


SPLIT = Product([Vector("xyz"), Rotation()])
CASES = {
    "R3": (Vector("xyz"), 60),
    "SO3": (Rotation(), 120),
    "R3 x SO3": (SPLIT, 120),
    "SE3": (Pose(), 90),
    "SE2": (PlanarPose(), 60),
    "SE3 + SO2": (Product([Pose(), Angle()]), 60),
    "thesis": (SPLIT, 120),
}


@functools.cache
def certificate_of(name: str) -> Certificate:
    """One of the certificates that several tests share."""
    group, degrees = CASES[name]
    method = "thesis" if name == "thesis" else "tight"
    return certify(loop(group), np.radians(degrees), method=method)


@pytest.mark.extended
@pytest.mark.parametrize(("degrees", "ratio"), [(30, 0.877), (90, 0.743), (170, 0.635)])
def test_poses_reach_the_reference_rates(degrees, ratio):
    certificate = certify(loop(Pose()), np.radians(degrees))
    assert certificate.status is Status.PROVED
    assert certificate.true_rate == pytest.approx(1.4, rel=1e-12)
    assert certificate.rate / certificate.true_rate == pytest.approx(ratio, rel=0.01)
    # The default is the largest position error that the same V_L allows.
    assert certificate.parts[0].distance == pytest.approx(np.radians(degrees), rel=1e-8)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", CASES)
def test_files_are_confirmed(name, tmp_path):
    certificate = certificate_of(name)
    assert certificate.status is Status.PROVED
    certificate.save(tmp_path / "proof.json")
    finding = examine(tmp_path / "proof.json")
    assert finding.status is Status.PROVED, finding.reason


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", CASES)
def test_files_with_a_faster_rate_are_not(name, tmp_path):
    certificate_of(name).save(tmp_path / "proof.json")
    document = json.loads((tmp_path / "proof.json").read_text())
    for channel in document["channels"]:
        channel["rate"] *= 4.0 if name == "thesis" else 1.05
    document["rate"] = min(channel["rate"] for channel in document["channels"])
    assert recheck(write(tmp_path / "faster.json", document)) is not Status.PROVED
    # The hash of the stored file is that of the format.
    stored = json.loads((tmp_path / "proof.json").read_text())
    assert recheck(write(tmp_path / "again.json", stored)) is Status.PROVED


def test_the_loop_is_as_fast_as_its_slowest_channel():
    stiffness, damping = np.diag([4.0] * 3 + [9.0] * 3), np.diag([2.8] * 3 + [4.2] * 3)
    certificate = certify(ErrorDynamics(SPLIT, stiffness, damping, np.eye(6)), np.radians(120))
    rates = [part.rate for part in certificate.parts]
    assert len(rates) == 2
    assert certificate.rate == min(rates) < max(rates)
    assert certificate.boxes == sum(len(part.boxes) for part in certificate.parts)


def test_norms_add_up_over_channels():
    certificate = certificate_of("R3 x SO3")
    rng = np.random.default_rng(4)
    x, ve = rng.normal(size=(2, 6))
    parts = []
    for own in (slice(0, 3), slice(3, 6)):
        one, two = np.zeros((2, 6))
        one[own], two[own] = x[own], ve[own]
        parts.append(certificate.norm(one, two))
    assert certificate.norm(x, ve) == pytest.approx(np.hypot(*parts), rel=1e-12)
    assert certificate.norm(3 * x, 3 * ve) == pytest.approx(3 * certificate.norm(x, ve), rel=1e-12)


def test_without_rotations_every_start_is_covered():
    certificate = certificate_of("R3")
    assert certificate.contains([1e6, 0, 0], [0, -1e9, 0])
    assert "any start" in str(certificate)


def test_headings_are_held_below_pi():
    certificate = certify(loop(Angle()), np.pi)
    assert certificate.contains([3.14], [0.0])
    assert not certificate.contains([np.pi], [0.0])
    assert not certificate.contains([0.1], [2 * np.pi])


def test_the_region_is_decided_exactly():
    certificate = certify(loop(Rotation()), 1.0)
    level = certificate.parts[0].level
    assert level <= 2.0
    edge = np.sqrt(2 * level / 4.0)
    assert certificate.contains([np.nextafter(edge, 0.0) * (1 - 1e-15), 0, 0], np.zeros(3))
    assert not certificate.contains([edge * (1 + 1e-15), 0, 0], np.zeros(3))


@pytest.mark.extended
def test_another_unit_of_length_is_the_same_certificate(tmp_path):
    """Rates and angles are the same in millimetres and metres, with I in the same units."""
    metres = certify(loop(Pose()), 1.0)
    scale = np.diag([1e-3] * 3 + [1.0] * 3) ** 2
    dynamics = ErrorDynamics(Pose(), 4.0 * scale, 2.8 * scale, scale)
    other = certify(dynamics, 1.0)
    assert other.status is Status.PROVED
    assert other.rate == pytest.approx(metres.rate, rel=5e-3)
    assert other.parts[0].distance == pytest.approx(1e3 * metres.parts[0].distance, rel=1e-6)
    assert other.transient_bound == pytest.approx(metres.transient_bound, rel=0.05)
    other.save(tmp_path / "proof.json")
    assert recheck(tmp_path / "proof.json") is Status.PROVED


@pytest.mark.extended
def test_a_larger_distance_costs_rate():
    near, far = (certify(loop(Pose()), 1.0, distance) for distance in (0.1, 3.0))
    assert near.status is far.status is Status.PROVED
    assert near.rate > 1.05 * far.rate
    # The region is the smaller of what angle and distance allow.
    assert near.parts[0].level == pytest.approx(4.0 * 0.1**2 / 2)
    assert far.parts[0].level == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["A", "B"])
def test_the_thesis_proves_less(name):
    dynamics = loop(Rotation(), *SETS[name])
    tight, thesis = (certify(dynamics, np.radians(90), method=m) for m in ("tight", "thesis"))
    assert thesis.status is Status.PROVED
    # The thesis's table: 0.310 and 0.227 of the linearized rate.
    ratio = {"A": 0.310, "B": 0.227}[name]
    assert thesis.rate / thesis.true_rate == pytest.approx(ratio, rel=0.01)
    assert tight.rate > 3 * thesis.rate


def test_without_closed_forms_the_thesis_proves_nothing(tmp_path):
    certificate = certify(loop(Pose()), np.radians(90), method="thesis")
    assert certificate.status is Status.UNDECIDED
    assert "no closed form" in str(certificate)
    assert certificate.rate == 0.0
    assert not certificate.contains(np.zeros(6), np.zeros(6))
    assert np.isnan(certificate.norm(np.full(6, 0.1), np.zeros(6)))
    assert np.isnan(certificate.transient_bound)
    certificate.save(tmp_path / "proof.json")
    assert recheck(tmp_path / "proof.json") is Status.UNDECIDED


def test_a_budget_that_is_used_up_leaves_it_undecided(tmp_path):
    certificate = certify(loop(Pose()), np.radians(170), budget=2)
    assert certificate.status is Status.UNDECIDED
    assert certificate.rate == 0.0
    assert "budget" in str(certificate)
    assert not certificate.contains(np.zeros(6), np.zeros(6))
    assert certificate.bounds == ()
    assert certificate.bound(1.0) == np.inf
    with pytest.raises(OutputError, match="PROVED"):
        narrow_decays(certificate)
    certificate.save(tmp_path / "proof.json")
    assert recheck(tmp_path / "proof.json") is Status.UNDECIDED


GAINS = {
    "negative": ("stiffness", np.diag([4.0, -4.0, 4.0])),
    "singular": ("stiffness", np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])),
    "undamped": ("damping", np.diag([1.0, 0.0, 1.0])),
    "unsymmetric": ("damping", np.eye(3) + 1e-9 * np.eye(3, k=1)),
    "massless": ("inertia", np.diag([1.0, 1.0, 0.0])),
}


@pytest.mark.parametrize("case", GAINS)
@pytest.mark.parametrize("method", ["tight", "thesis"])
def test_gains_that_are_not_positive_definite_are_refuted(case, method, tmp_path):
    name, matrix = GAINS[case]
    gains = {"stiffness": 4 * np.eye(3), "damping": 3 * np.eye(3), "inertia": np.eye(3)}
    certificate = certify(ErrorDynamics(Rotation(), **gains | {name: matrix}), 1.0, method=method)
    assert certificate.status is Status.REFUTED
    symbol = {"stiffness": "KP", "damping": "KD", "inertia": "I"}[name]
    assert symbol in str(certificate.counterexample)
    assert str(certificate.counterexample) in str(certificate)
    assert not certificate.contains(np.zeros(3), np.zeros(3))
    assert np.isnan(certificate.norm(np.zeros(3), np.zeros(3)))
    assert certificate.rate == 0.0
    certificate.save(tmp_path / "proof.json")
    assert recheck(tmp_path / "proof.json") is Status.REFUTED


def test_gains_that_couple_outputs_make_one_channel(tmp_path):
    """A position with a heading: still linear, decided as one."""
    group = Product([Vector("xy"), Angle()])
    kp = np.array([[4.0, 0.0, 0.5], [0.0, 5.0, 0.0], [0.5, 0.0, 6.0]])
    dynamics = ErrorDynamics(group, kp, 4.0 * np.eye(3), np.eye(3))
    certificate = certify(dynamics, 1.0)
    assert certificate.status is Status.PROVED
    assert [part.channel.size for part in certificate.parts] == [3]
    # The most heading for a given V_L is the Schur complement's, less than KP's own entry.
    assert certificate.parts[0].level == pytest.approx((6.0 - 0.5**2 / 4.0) / 2, rel=1e-9)
    certificate.save(tmp_path / "proof.json")
    assert recheck(tmp_path / "proof.json") is Status.PROVED


def test_a_servo_is_certified_by_its_error_dynamics(tmp_path):
    model = reduce(robots.rover_arm())
    outputs = [
        Output("base", "chassis", "R2", point=(0.25, 0, 0)),
        Output("hand", "forearm", "R3", point=(0, 0.2, 0)),
    ]
    servo = Servo(model, outputs, stiffness=[4, 9], damping=[4, 6])
    certificate = certify(servo, 1.0)
    # Both channels critically damped: s^2 + 4 s + 4 and s^2 + 6 s + 9.
    assert certificate.true_rate == pytest.approx(2.0, rel=1e-12)
    assert certificate.status is Status.PROVED
    assert certificate.rate > 0.9 * 2.0
    certificate.save(tmp_path / "proof.json")
    document = json.loads((tmp_path / "proof.json").read_text())
    assert document["law"]["groups"] == ["R2", "R3"]
    assert set(document["versions"]) >= {"python", "numpy", "casadi", "cvxpy", "python-flint"}
    assert recheck(tmp_path / "proof.json") is Status.PROVED


def test_the_hash_is_of_the_law(tmp_path):
    hashes = set()
    for dynamics in (loop(Angle()), loop(Vector("x")), loop(Angle(), 4.0 + 1e-15), loop(Angle())):
        certify(dynamics, 1.0, method="thesis").save(tmp_path / "proof.json")
        hashes.add(json.loads((tmp_path / "proof.json").read_text())["law"]["hash"])
    assert len(hashes) == 3


def test_progress_may_be_a_bar(capsys):
    certify(loop(Vector("x")), 1.0, method="thesis", progress=True)
    captured = capsys.readouterr()
    assert "certifying" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("angle", 0.0),
        ("angle", -1.0),
        ("angle", np.nextafter(np.pi, 4.0)),
        ("distance", 0.0),
        ("distance", -2.0),
        ("rate_fraction", 0.0),
        ("rate_fraction", np.nextafter(1.0, 2.0)),
        ("method", "loose"),
        ("method", None),
        ("budget", 0),
        ("budget", 2.5),
        ("budget", True),
    ],
)
def test_options_out_of_range(name, value):
    with pytest.raises(OutputError, match=name):
        certify(loop(Pose()), **{"angle": 1.0, name: value})


@pytest.mark.parametrize("name", ["angle", "distance"])
def test_options_that_are_no_numbers(name):
    with pytest.raises(NonFiniteError, match=name):
        certify(loop(Pose()), **{"angle": 1.0, name: np.nan})
    with pytest.raises(ShapeError, match=name):
        certify(loop(Pose()), **{"angle": 1.0, name: [1.0, 2.0]})


def test_only_outputs_that_rotate_need_an_angle(tmp_path):
    plain = certify(loop(Product([Vector("xy"), Vector("xyz")])))
    assert plain.status is Status.PROVED
    assert plain.rate == certify(loop(Product([Vector("xy"), Vector("xyz")])), 1.0).rate
    assert all(part.angle is None for part in plain.parts)
    plain.save(tmp_path / "proof.json")
    assert recheck(tmp_path / "proof.json") is Status.PROVED
    for group in (Angle(), Rotation(), PlanarPose(), Product([Vector("xy"), Pose()])):
        with pytest.raises(OutputError, match=r"angle=1\.0"):
            certify(loop(group))


@pytest.mark.extended
@pytest.mark.parametrize("unit", [2.0**-30, 2.0**-7, 2.0**17])
def test_the_unit_of_time_does_not_matter(unit):
    for group in (Product([Vector("xy"), Vector("xyz")]), Pose()):
        usual = certify(loop(group, 1.0, 1.0), 1.0)
        other = certify(loop(group, unit**2, unit), 1.0)
        assert other.status is Status.PROVED
        assert other.rate == pytest.approx(unit * usual.rate, rel=5e-3)


@pytest.mark.extended
def test_gains_of_very_quick_loops_are_proved():
    assert certify(loop(Product([Vector("xy"), Vector("xyz")]), 1e10, 1e5)).status is Status.PROVED
    assert certify(loop(Pose(), 1e-4, 2e-2), 1.0).status is Status.PROVED


@pytest.mark.parametrize("path", ["", "no/folder.json", None, b"proof.json"])
def test_what_cannot_be_written_is_told(tmp_path, path):
    target = tmp_path / path if isinstance(path, str) else path
    with pytest.raises(DescriptionError, match="file"):
        certificate_of("R3").save(target)
    with pytest.raises(DescriptionError, match="file"):
        recheck(target)


def test_what_is_no_law():
    with pytest.raises(OutputError, match="Servo"):
        certify(np.eye(3), 1.0)


def test_errors_of_the_wrong_shape():
    for act in (certificate_of("SO3").norm, certificate_of("SO3").contains):
        with pytest.raises(ShapeError, match="ve"):
            act(np.zeros(3), np.zeros(4))
        with pytest.raises(NonFiniteError, match="x"):
            act([np.nan, 0, 0], np.zeros(3))


class Own(Vector):
    """A user-defined group with an unknown error map."""


def test_groups_of_a_users_own_have_no_file(tmp_path):
    certificate = certify(loop(Own("xy")), 1.0)
    assert certificate.status is not Status.REFUTED
    with pytest.raises(OutputError, match="Own"):
        certificate.save(tmp_path / "proof.json")


def test_it_says_what_it_is_about():
    text = str(certificate_of("SO3"))
    assert text.startswith("PROVED. " + Status.PROVED.value)
    assert "120 deg" in text
    assert "1.4 1/s" in text
    assert rounded_down(certificate_of("SO3").rate, 4) in text
