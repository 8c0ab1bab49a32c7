"""Stored proofs: true ones are confirmed, and every false or altered one is rejected."""

from __future__ import annotations

import ast
import copy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from concur.certify import _recheck, examine
from concur.certify._recheck_boxes import _polygon
from concur.certify._recheck_rational import definite, invert, multiply
from concur.certify._status import Status
from concur.checker import recheck
from concur.errors import DescriptionError
from tests.certify._motions import error_map
from tests.certify._recheck_cases import GOOD, changed, numeric_places, rejected
from tests.certify._stored import (
    UNITS,
    digest,
    document,
    grid,
    law_digest,
    scalar_form,
    write,
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "proof.json"


@pytest.mark.parametrize("group", GOOD)
def test_proofs_made_by_hand_are_confirmed(file, group):
    assert examine(write(file, GOOD[group])).status is Status.PROVED


@pytest.mark.parametrize("group", GOOD)
def test_what_is_confirmed_is_true_of_the_vector_field(file, group):
    assert recheck(write(file, GOOD[group])) is Status.PROVED
    assert violation(GOOD[group], 300) <= 1e-9


def violation(doc, count, seed=1):
    """Largest (d/dt z P z / 2 + rate z P z) / |z|^2 of random errors in the domain."""
    rng = np.random.default_rng(seed)
    law, channel = doc["law"], doc["channels"][0]
    kp, kd, metric = (np.array(law[n]) for n in ("stiffness", "damping", "inertia"))
    P, n, worst = np.array(channel["P"]), len(kp), -np.inf
    for k in range(count):
        x = rng.normal(size=n)
        for unit, radius in (("m", channel["distance"]), ("r", channel["angle"])):
            places = [
                i for i, u in enumerate("".join(UNITS[g] for g in law["groups"])) if u == unit
            ]
            if places and radius is not None:
                # Every second one on the edge, where decay is slowest.
                share = 1.0 if k % 2 else rng.uniform()
                x[places] *= radius * share / np.linalg.norm(x[places])
        B = error_map(law["groups"], x)
        z = np.concatenate([x, rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)])
        rate = np.concatenate([-B @ z[n:], np.linalg.solve(metric, B.T @ kp @ x - kd @ z[n:])])
        worst = max(worst, (z @ P @ rate + channel["rate"] * z @ P @ z) / (z @ z))
    return worst


def test_the_isotropic_rotation_is_decided_without_boxes_up_to_the_true_rate(file):
    doc = copy.deepcopy(GOOD["SO3"])
    form = np.array([[4.0, -1.4], [-1.4, 1.0]])
    doc["channels"][0] |= {
        "reduction": "scalar",
        "boxes": [],
        "P": np.kron(form, np.eye(3)).tolist(),
    }
    values = np.linalg.eigvalsh(form)
    doc["channels"][0] |= {"lower": values[0] - 1e-9, "upper": values[1] + 1e-9}
    doc["channels"][0]["weight"] = 1.0
    doc["overshoot"] = float(np.sqrt(values[1] / values[0])) + 1e-6
    # 2.8 is a float a little below 28 / 10, 1.4 is its exact half: the theorem holds with 1.4.
    for rate, status in ((1.4, Status.PROVED), (float(np.nextafter(1.4, 2)), Status.REFUTED)):
        doc["rate"] = doc["channels"][0]["rate"] = rate
        assert recheck(write(file, doc)) is status


@pytest.mark.extended
def test_all_rotation_vectors_may_be_boxed(file):
    """The same proof without its symmetry: a cube of boxes, some beyond the ball."""
    doc = copy.deepcopy(GOOD["SO3"])
    channel = doc["channels"][0]
    channel |= {"angle": 0.8, "reduction": "all"}
    channel["bound"] = 4.0 * 0.8**2 / 2 * (1 - 1e-12)
    ends = [box[0] for box in grid(-0.8, 0.8, 3)]
    channel["boxes"] = [[a, b, c] for a in ends for b in ends for c in ends]
    assert recheck(write(file, doc)) is Status.PROVED
    for k in (0, 4, 13, 26):
        kept = copy.deepcopy(doc)
        del kept["channels"][0]["boxes"][k]
        assert "gap" in rejected(write(file, kept))
    half = copy.deepcopy(doc)
    half["channels"][0]["boxes"] = [
        [a, b, c] for a in ([0.0, 0.8],) for b in ([0.0, 0.8],) for c in ends
    ]
    assert "gap" in rejected(write(file, half))
    half["channels"][0]["reduction"] = "two octants"
    assert recheck(write(file, half)) is Status.PROVED
    half["channels"][0]["L"][0][1] = 1e-9
    assert "diagonal" in rejected(write(file, half))


@pytest.mark.extended
def test_boxes_wholly_beyond_the_ball_may_be_missing(file):
    doc = copy.deepcopy(GOOD["SO3"])
    channel = doc["channels"][0]
    channel |= {"angle": 0.8, "reduction": "all", "bound": 1.2}
    ends = [box[0] for box in grid(-0.8, 0.8, 8)]
    inner = [
        [a, b, c] for a in ends for b in ends for c in ends
        if sum(min(abs(e[0]), abs(e[1])) ** 2 for e in (a, b, c)) <= 0.64
    ]  # fmt: skip
    assert len(inner) < 8**3
    channel["boxes"] = inner
    assert recheck(write(file, doc)) is Status.PROVED


@pytest.mark.by_default(2)
@pytest.mark.parametrize("group", ["SO3", "SE2", "SE3"])
def test_coarse_fine_and_overlapping_boxes_are_as_good(file, group):
    low = -0.6 if group == "SE2" else 0.0
    angle = GOOD[group]["channels"][0]["angle"]
    for boxes in (
        grid(low, angle, 1),
        grid(low, angle, 100),
        grid(low, angle, 4) + grid(low, angle, 3),
        grid(low, angle, 4)[::-1],
        [[[low - 0.1, angle / 2]], [[angle / 3, angle + 0.01]]],
    ):
        doc = changed(group, "channels", 0, "boxes", boxes)
        assert recheck(write(file, doc)) is Status.PROVED


@pytest.mark.parametrize("group", ["SO3", "SE2", "SE3"])
@pytest.mark.parametrize("k", range(8))
def test_a_missing_box_is_a_gap(file, group, k):
    doc = copy.deepcopy(GOOD[group])
    del doc["channels"][0]["boxes"][k]
    assert "gap" in rejected(write(file, doc))


@pytest.mark.parametrize("group", ["SO3", "SE2", "SE3"])
@pytest.mark.parametrize(("k", "side"), [(0, 0), (3, 0), (3, 1), (7, 1)])
def test_a_gap_of_one_step_of_the_floats_is_a_gap(file, group, k, side):
    doc = copy.deepcopy(GOOD[group])
    pair = doc["channels"][0]["boxes"][k][0]
    pair[side] = float(np.nextafter(pair[side], pair[1 - side]))
    assert "gap" in rejected(write(file, doc))


@pytest.mark.parametrize("group", ["SO3", "SE2", "SE3"])
def test_no_boxes_are_a_gap(file, group):
    assert "gap" in rejected(write(file, changed(group, "channels", 0, "boxes", [])))


@pytest.mark.parametrize("group", GOOD)
def test_a_rate_above_the_true_one_is_refuted(file, group):
    doc = changed(group, "rate", 1.45)
    doc["channels"][0]["rate"] = 1.45
    assert recheck(write(file, doc)) is Status.REFUTED


@pytest.mark.parametrize("group", GOOD)
def test_the_rate_of_the_loop_is_that_of_its_channels(file, group):
    rate = GOOD[group]["rate"]
    assert recheck(write(file, changed(group, "rate", rate / 2))) is Status.PROVED
    for wrong in (float(np.nextafter(rate, 9.0)), 0.0, -0.1):
        assert "rate" in rejected(write(file, changed(group, "rate", wrong)))
    slower = changed(group, "channels", 0, "rate", rate * (1 - 1e-15))
    assert "rate" in rejected(write(file, slower))


@pytest.mark.by_default(1)
@pytest.mark.parametrize("group", ["SE2", "SE3"])
def test_a_form_for_a_small_domain_fails_on_a_large_one(file, group):
    """Where the vector field agrees it is refuted; else it is the inequality that is too much."""
    doc = document(group, 2.0, 0.7, 1.0)
    finding = examine(write(file, doc))
    assert finding.status is Status.UNDECIDED
    assert "inequality" in finding.reason
    assert violation(doc, 500) < 0.0
    far = document(group, 3.0, 1.1, 1.3)
    far["channels"][0]["distance"] = 6.0
    assert recheck(write(file, far)) is Status.REFUTED
    assert violation(far, 3000) > 0.0


@pytest.mark.parametrize("group", ["SO2", "SO3", "SE2", "SE3"])
@pytest.mark.parametrize("factor", [1 + 1e-9, 1.1, 1e6])
def test_a_bound_that_is_too_large_is_refuted(file, group, factor):
    bound = GOOD[group]["channels"][0]["bound"]
    doc = changed(group, "channels", 0, "bound", bound * factor)
    assert recheck(write(file, doc)) is Status.REFUTED
    smaller = changed(group, "channels", 0, "bound", bound / factor)
    assert recheck(write(file, smaller)) is Status.PROVED


@pytest.mark.parametrize("name", ["angle", "distance"])
def test_a_larger_domain_is_not_covered_by_the_proof(file, name):
    # The bound would allow it; boxes or corners do not reach that far.
    doc = changed("SE3", "channels", 0, name, 4.0 if name == "distance" else 0.7)
    assert rejected(write(file, doc))


@pytest.mark.parametrize("angle", [float(np.nextafter(np.pi, 4.0)), 6.0])
def test_angles_beyond_pi_are_not_accepted(file, angle):
    doc = changed("SO2", "channels", 0, "angle", angle)
    assert "pi" in rejected(write(file, doc))


@pytest.mark.parametrize("group", ["SO2", "SO3", "SE2", "SE3"])
@pytest.mark.parametrize("name", ["angle", "distance", "bound"])
@pytest.mark.parametrize("value", [None, 0.0, -0.5])
def test_radii_that_are_none(file, group, name, value):
    if GOOD[group]["channels"][0][name] is None:
        assert recheck(write(file, changed(group, "channels", 0, name, value))) is Status.PROVED
    else:
        assert rejected(write(file, changed(group, "channels", 0, name, value)))


@pytest.mark.parametrize("group", GOOD)
@pytest.mark.parametrize("name", ["stiffness", "damping", "inertia"])
def test_other_gains_are_noticed_by_the_hash_of_the_law(file, group, name):
    doc = copy.deepcopy(GOOD[group])
    doc["law"]["hash"] = law_digest(doc["law"])
    doc["law"][name][0][0] = float(np.nextafter(doc["law"][name][0][0], 9.0))
    doc["hash"] = digest(doc)
    with pytest.raises(DescriptionError, match=r"law\.hash"):
        recheck(write(file, doc, sealed=False))


@pytest.mark.parametrize("group", GOOD)
@pytest.mark.parametrize(
    ("name", "factor"),
    [("stiffness", 2.0), ("stiffness", 0.4), ("damping", 0.1), ("damping", 5.0), ("inertia", 3.0)],
)
def test_a_proof_of_other_gains_is_none(file, group, name, factor):
    """Sealed again by a forger: then the inequality must be what fails."""
    doc = copy.deepcopy(GOOD[group])
    doc["law"][name] = (factor * np.array(doc["law"][name])).tolist()
    assert recheck(write(file, doc)) is not Status.PROVED


@pytest.mark.parametrize("group", GOOD)
@pytest.mark.parametrize("name", ["stiffness", "damping", "inertia"])
def test_gains_that_are_not_positive_definite_are_refuted(file, group, name):
    for value in (0.0, -1.0):
        doc = copy.deepcopy(GOOD[group])
        doc["law"][name][0][0] = value
        assert recheck(write(file, doc)) is Status.REFUTED
    if len(doc["law"][name]) > 1:
        doc = copy.deepcopy(GOOD[group])
        doc["law"][name][0][1] = 1e-300
        assert recheck(write(file, doc)) is Status.REFUTED


@pytest.mark.parametrize("group", GOOD)
def test_forms_that_are_wrong(file, group):
    n = len(GOOD[group]["channels"][0]["components"])
    P = np.array(GOOD[group]["channels"][0]["P"])
    asymmetric, negative, singular = P.copy(), -P, P.copy()
    asymmetric[0, -1] += 1e-9
    singular[0, :] = singular[:, 0] = 0.0
    crossed = P.copy()
    crossed[:n, n:] *= -1.0
    crossed[n:, :n] *= -1.0
    turned = np.block([[P[n:, n:], P[:n, n:]], [P[n:, :n], P[:n, :n]]])
    for wrong in (asymmetric, negative, singular, crossed, turned, np.eye(2 * n), 0.0 * P):
        doc = changed(group, "channels", 0, "P", wrong.tolist())
        # Bounds that fit, so that it is not they that fail.
        doc["channels"][0] |= {"lower": 1e-9, "upper": 1e9}
        doc["overshoot"] = 1e10
        assert recheck(write(file, doc)) is Status.REFUTED


@pytest.mark.parametrize("group", GOOD)
def test_a_form_in_other_units_is_as_good(file, group):
    doc = copy.deepcopy(GOOD[group])
    channel = doc["channels"][0]
    for name in ("P", "L", "M", "lower", "upper"):
        channel[name] = (4.0 * np.array(channel[name])).tolist()
    assert recheck(write(file, doc)) is Status.PROVED


@pytest.mark.parametrize("name", ["L", "M"])
def test_multipliers_are_needed_and_cannot_do_harm(file, name):
    """Without them the inequality is another one; whatever they are, no false proof comes out."""
    rng = np.random.default_rng(3)
    without = changed("SE3", "channels", 0, name, np.zeros((12, 6)).tolist())
    wild = changed("SE3", "channels", 0, name, rng.normal(size=(12, 6)).tolist())
    assert rejected(write(file, wild))
    fast = copy.deepcopy(without)
    fast["rate"] = fast["channels"][0]["rate"] = 1.41
    assert recheck(write(file, fast)) is not Status.PROVED


def test_a_form_that_is_not_isotropic_has_no_single_axis(file):
    for i, j, change in ((0, 0, 1e-12), (3, 3, 1e-12), (0, 7, 1e-12), (0, 3, 1e-9), (2, 9, 1e-9)):
        doc = copy.deepcopy(GOOD["SE3"])
        doc["channels"][0] |= {"lower": 1e-9, "upper": 1e9}
        doc["overshoot"] = 1e10
        P = doc["channels"][0]["P"]
        P[i][j] += change
        if i != j:
            P[j][i] += change
        assert "isotropic" in rejected(write(file, doc))
    doc = changed("SE3", "law", "damping", 4, 4, 2.8000001)
    assert "isotropic" in rejected(write(file, doc))


@pytest.mark.parametrize(
    ("group", "reduction"),
    [
        ("SE3", "linear"),
        ("SE3", "scalar"),
        ("SE3", "all"),
        ("SE3", "two octants"),
        ("SO3", "linear"),
        ("SO3", "all"),
        ("SE2", "linear"),
        ("SE2", "one axis, one plane"),
        ("R3", "all"),
        ("R3", "scalar"),
        ("R3", "none"),
        ("R3", None),
        ("R3", ["linear"]),
    ],
)
def test_reductions_that_do_not_fit(file, group, reduction):
    doc = changed(group, "channels", 0, "reduction", reduction)
    assert rejected(write(file, doc))
    doc["channels"][0]["boxes"] = []
    assert rejected(write(file, doc))


@pytest.mark.parametrize(
    ("group", "groups"),
    [
        ("SE3", ["R3", "SO3"]),
        ("SE3", ["SO3", "R3"]),
        ("SE3", ["SE2", "SO3"]),
        ("SO3", ["R3"]),
        ("SO3", ["SE2"]),
        ("SE2", ["R3"]),
        ("SE2", ["R2", "SO2"]),
        ("SO3", ["SO(3)"]),
        ("SO3", []),
        ("SO3", ["SO3", "SO3"]),
        ("SO3", [3]),
        ("SO3", "SO3"),
    ],
)
def test_groups_that_are_not_those_of_the_proof(file, group, groups):
    assert rejected(write(file, changed(group, "law", "groups", groups)))


def test_the_length_is_part_of_the_overshoot(file):
    assert recheck(write(file, changed("SE3", "channels", 0, "length", 3.0))) is Status.REFUTED
    assert recheck(write(file, changed("SO3", "channels", 0, "length", 3.0))) is Status.PROVED


def product(first, second):
    """Certificate of two channels."""
    a, b = copy.deepcopy(GOOD[first]), copy.deepcopy(GOOD[second])
    size = len(a["channels"][0]["components"])
    other = b["channels"][0]
    other["components"] = [size + i for i in other["components"]]
    for name in ("stiffness", "damping", "inertia"):
        rows = [row + [0.0] * len(b["law"][name]) for row in a["law"][name]]
        a["law"][name] = rows + [[0.0] * size + row for row in b["law"][name]]
    a["law"]["groups"] += b["law"]["groups"]
    a["channels"].append(other)
    a["rate"] = min(a["rate"], b["rate"])
    a["overshoot"] = 10.0
    return a


def test_products_of_channels(file):
    good = product("R3", "SO3")
    assert recheck(write(file, good)) is Status.PROVED
    for k in (0, 1):
        missing = copy.deepcopy(good)
        del missing["channels"][k]
        assert "whole loop" in rejected(write(file, missing))
    twice = copy.deepcopy(good)
    twice["channels"].append(twice["channels"][0])
    assert "whole loop" in rejected(write(file, twice))
    for name in ("stiffness", "damping", "inertia"):
        coupled = copy.deepcopy(good)
        coupled["law"][name][0][4] = coupled["law"][name][4][0] = 1e-12
        assert "couples" in rejected(write(file, coupled))
    slow = copy.deepcopy(good)
    slow["channels"][1]["rate"] = 1.0
    assert recheck(write(file, slow)) is Status.UNDECIDED
    slow["rate"] = 1.0
    assert recheck(write(file, slow)) is Status.PROVED
    slow["channels"][1]["weight"] *= 1000.0
    assert "overshoot" in rejected(write(file, slow))
    open_ = copy.deepcopy(good)
    open_["channels"][1]["status"] = "UNDECIDED"
    assert recheck(write(file, open_)) is Status.UNDECIDED


def test_what_claims_nothing_is_undecided(file):
    doc = changed("SO3", "status", "UNDECIDED")
    doc |= {"rate": None, "overshoot": None}
    assert recheck(write(file, doc)) is Status.UNDECIDED
    doc["channels"] = []
    assert recheck(write(file, doc)) is Status.UNDECIDED
    doc["status"] = "PROVED"
    assert recheck(write(file, doc)) is Status.UNDECIDED
    doc["status"] = "REFUTED"
    assert recheck(write(file, doc)) is Status.UNDECIDED
    for status in ("proved", "", None, 1, "NO"):
        with pytest.raises(DescriptionError, match="status"):
            recheck(write(file, changed("SO3", "status", status)))


def worst_velocity(doc):
    """ve / x of the linear channel for which the form falls most slowly."""
    P = np.array(doc["channels"][0]["P"])[::6, ::6]
    F = np.array([[0.0, -1.0], [4.0, -2.8]])
    ratios = np.linspace(-10.0, 10.0, 20001)
    z = np.stack([np.ones_like(ratios), ratios])
    return float(ratios[np.argmax(np.sum(z * (P @ F @ z), 0) / np.sum(z * (P @ z), 0))])


def test_counterexamples_are_checked(file):
    doc = copy.deepcopy(GOOD["SE3"]) | {"status": "REFUTED"}
    x = [0.3, 0.0, 0.2, 0.0, 0.0, 0.5]
    false = {"channel": 0, "x": x, "direction": [*x, 0.1, 0.0, 0.0, 0.0, 0.0, 0.1]}
    assert recheck(write(file, doc | {"counterexample": false})) is Status.UNDECIDED
    doc["channels"][0]["rate"] = 1.5
    # Along the axis the errors stay on a line, where the linear channel's rate is the limit.
    x = [0.3, *[0.0] * 5]
    true = {"channel": 0, "x": x, "direction": [*x, worst_velocity(doc) * 0.3, *[0.0] * 5]}
    assert recheck(write(file, doc | {"counterexample": true})) is Status.REFUTED
    far = true | {"x": [0.7, *[0.0] * 5], "direction": [2.5 * v for v in true["direction"]]}
    assert recheck(write(file, doc | {"counterexample": far})) is Status.UNDECIDED
    other = true | {"x": [0.0] * 6}
    assert recheck(write(file, doc | {"counterexample": other})) is Status.UNDECIDED
    zero = true | {"direction": [0.0] * 12}
    assert recheck(write(file, doc | {"counterexample": zero})) is Status.UNDECIDED
    doc["channels"][0]["P"][0][0] = -1.0
    axis = {"channel": 0, "x": [0.0] * 6, "direction": [1.0] + [0.0] * 11}
    assert recheck(write(file, doc | {"counterexample": axis})) is Status.REFUTED
    for wrong in ({}, {"channel": 1}, true | {"x": [0.0]}, true | {"direction": [0.0] * 6}, "x"):
        with pytest.raises(DescriptionError, match="counterexample"):
            recheck(write(file, doc | {"counterexample": wrong}))


@given(st.data())
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_forged_numbers_pass_only_when_they_are_true(tmp_path, data):
    """Any number changed and sealed again: what still passes is tested on the vector field."""
    group = data.draw(st.sampled_from(["SO3", "SE2", "SE3"]))
    places = [p for p in numeric_places(GOOD[group]) if p != ("version",) and "boxes" not in p]
    place = data.draw(st.sampled_from(places))
    old = GOOD[group]
    for name in place:
        old = old[name]
    factor = data.draw(st.sampled_from([-1.0, 0.0, 0.5, 0.9, 1.001, 1.1, 2.0, 100.0]))
    new = old * factor if old else factor - 1.0
    doc = changed(group, *place, new)
    if rejected(write(tmp_path / "forged.json", doc)) is None:
        assert violation(doc, 100) <= 1e-9
        P = np.array(doc["channels"][0]["P"])
        assert np.array_equal(P, P.T)
        assert np.linalg.eigvalsh(P)[0] > 0.0


def test_the_budget_is_kept(file):
    doc = changed("SE3", "channels", 0, "boxes", grid(0.0, 0.6, 1))
    doc["rate"] = doc["channels"][0]["rate"] = 0.7
    path = write(file, doc)
    assert recheck(path, budget=200) is Status.PROVED
    many = write(file, changed("SE3", "channels", 0, "boxes", grid(0.0, 0.6, 50)))
    finding = examine(many, budget=49)
    assert finding.status is Status.UNDECIDED
    assert "49" in finding.reason


def test_a_rate_at_the_margin_is_never_proved(file):
    """The exact limit makes A singular: any status but PROVED, and an answer in finite time."""
    P = scalar_form(4.0, 2.8, 1.3)
    F = np.array([[0.0, -1.0], [4.0, -2.8]])
    low, high = 0.0, 1.4
    for _ in range(60):
        middle = (low + high) / 2
        slack = -(P @ F + F.T @ P) / 2 - middle * P
        low, high = (middle, high) if np.linalg.eigvalsh(slack)[0] > 0 else (low, middle)
    doc = document("SO3", 1.0, high * (1 + 1e-13), 1.3)
    assert recheck(write(file, doc)) is not Status.PROVED
    doc = document("SO3", 1.0, low * (1 - 1e-9), 1.3)
    assert recheck(write(file, doc)) is Status.PROVED


@pytest.mark.parametrize("corners", [8, 64])
def test_polygons_hold_the_disc(corners):
    from fractions import Fraction

    for radius in (1e-3, 0.7, 1.0, 12.3):
        points = [[Fraction(float(v)) for v in p] for p in _polygon(corners, radius)]
        # By the angle, once around.
        points.sort(key=lambda p: np.arctan2(float(p[1]), float(p[0])))
        assert len(points) == corners
        for a, b in zip(points, points[1:] + points[:1], strict=True):
            area = a[0] * b[1] - a[1] * b[0]
            edge = (b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2
            assert area > 0
            assert area**2 >= Fraction(radius) ** 2 * edge


def test_rational_algebra():
    from fractions import Fraction

    rng = np.random.default_rng(5)
    for n in range(1, 7):
        a = rng.integers(-9, 9, (n, n)).astype(float)
        gram = [[Fraction(v) for v in row] for row in (a @ a.T + np.eye(n))]
        one = [[Fraction(i == j) for j in range(n)] for i in range(n)]
        assert definite(gram)
        assert multiply(invert(gram), gram) == one
        low = [[Fraction(v) for v in row] for row in a[:, : n - 1] @ a[:, : n - 1].T]
        assert not definite(low)
        assert definite(low, semi=True)
        low[0][0] -= Fraction(1, 10**40)
        assert not definite(low, semi=True)
    assert not definite([[Fraction(0), Fraction(1)], [Fraction(1), Fraction(5)]], semi=True)


def test_nothing_that_makes_certificates_is_imported():
    """Only the modules of the checker, the three answers, reading of documents and the errors."""
    folder = Path(_recheck.__file__).parent
    allowed = {"concur.certify._status", "concur.certify", "concur.documents", "concur.errors"}
    own = {path.stem for path in folder.glob("_recheck*.py")}
    assert len(own) >= 6
    for name in own:
        tree = ast.parse((folder / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                modules = [node.module]
                if node.module == "concur.certify":
                    assert {alias.name for alias in node.names} <= own
            else:
                continue
            for module in modules:
                if module.startswith("concur"):
                    assert module in allowed or module.split(".")[-1] in own, (name, module)
                else:
                    assert module.split(".")[0] not in {"casadi", "flint", "cvxpy", "scipy"}
