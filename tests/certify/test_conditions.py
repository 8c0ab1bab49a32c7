"""Conditions of certificates: torque limits, damping, hold and model travel with the claim."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.certify import certify_integral, narrow_decays, operating_bounds
from concur.certify._recheck_conditions import JOINTS
from concur.documents import document_hash
from concur.errors import OutputError
from concur.proofs import Statement
from concur.proofs._bound import conditions
from concur.proofs._recheck_numbers import gains_of
from concur.proofs._recheck_smooth import Rejection

LIMIT = 0.1  # N
CART = cc.Body("cart", cc.joints.Prismatic((1, 0, 0)), "rail", inertia=cc.Inertia(1.0))
SLIDER = cc.Mechanism("slider", [cc.Body("rail", cc.joints.Fixed()), CART])


def slider(**options) -> cc.Servo:
    return cc.Servo(cc.reduce(SLIDER), [cc.Output("x", "cart", "R")], 4, 4, **options)


def box(law, error=0.012):
    return operating_bounds(law, {}, speeds=1.0, pose_error=error, velocity_error=error)


def moved(law, start, times):
    """Errors of a hold from rest, by SciPy: one kilogram under the limited force of the law."""

    def force(x, ve):
        u = np.clip(4.0 * x - 4.0 * ve, -LIMIT, LIMIT)
        hold = cc.references.hold([start])(0.0)
        np.testing.assert_allclose(law.torque([start - x], [ve], hold), [u], atol=1e-7)
        return u

    found = solve_ivp(
        lambda t, y: [-y[1], force(*y)], times[[0, -1]], [start, 0.0], t_eval=times,
        rtol=1e-9, atol=1e-12, max_step=0.05,
    )  # fmt: skip
    return found.y.T[:, :1], found.y.T[:, 1:]


def shown(found) -> tuple[str, str, str]:
    return str(found), repr(found), found._repr_html_() if hasattr(found, "_repr_html_") else ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ("no hold", "friction", "above 0.001")),
        ({"damping_threshold": 0.2}, ("no damping", "above 0.2")),
    ],
)
def test_conditions_are_part_of_every_form_of_a_claim(tmp_path, options, words):
    law = slider(**options)
    path = tmp_path / "proof.json"
    for found in (
        cc.certify(law),
        certify_integral(slider(integral=1.0, **options)),
        cc.certify(law.error_dynamics),
    ):
        assert found.status is cc.Status.PROVED
        found.save(path)
        if "error dynamics" not in " ".join(found.conditions):
            for word in words:
                assert any(word in one for one in found.conditions)
        assert all(one in str(found) for one in found.conditions)
        assert f"if {len(found.conditions)} conditions hold" in repr(found)
        assert json.loads(path.read_text())["conditions"] == list(found.conditions)
        assert cc.recheck(path) is cc.Status.PROVED
    cc.certify(law).save(path)
    answer = cc.recheck(path, law)
    assert answer.status is cc.Status.PROVED
    assert answer.conditions == cc.certify(law).conditions
    assert all(one in str(answer) for one in answer.conditions)


@pytest.mark.parametrize(("limit", "claims"), [(np.inf, True), (1e30, False)])
def test_infinite_torque_limits_are_none(limit, claims):
    found = cc.certify(slider(torque_limits=limit))
    assert (found.status is cc.Status.PROVED) is claims
    assert ("no torque reaches its limit" in found.conditions) is not claims


def test_with_torque_limits_nothing_is_claimed_without_a_box(tmp_path):
    law, path = slider(torque_limits=LIMIT), tmp_path / "proof.json"
    own = replace(law, integral=1.0)
    for found, servo in ((cc.certify(law), law), (certify_integral(own), own)):
        assert (found.status, found.rate) == (cc.Status.UNDECIDED, 0.0)
        assert "no torque reaches its limit" in found.conditions
        for text in shown(found):
            assert "PROVED" not in text
            assert "any start" not in text
        found.save(path)
        for answer in (cc.recheck(path), cc.recheck(path, servo).status):
            assert answer is cc.Status.UNDECIDED
        assert "any start" not in str(cc.recheck(path, servo))
    assert not cc.certify(law).contains([1e-9], [0.0])
    with pytest.raises(OutputError):
        narrow_decays(cc.certify(law))


def test_with_constraints_nothing_is_claimed(tmp_path):
    """Joints and damping of the law may be active, whatever the torques are."""
    path = tmp_path / "proof.json"
    body = replace(CART, limits=((-0.1, 0.1),))
    model = cc.reduce(replace(SLIDER, bodies=(SLIDER.bodies[0], body)))
    free = cc.Servo(model, [cc.Output("x", "cart", "R")], 4, 4)
    kept = replace(free, constraints=cc.Constraints())
    assert cc.certify(free).status is cc.Status.PROVED
    for law in (kept, replace(kept, integral=1.0)):
        found = (certify_integral if law.integral is not None else cc.certify)(law)
        assert (found.status, found.rate) == (cc.Status.UNDECIDED, 0.0)
        assert {"no torque reaches its limit", JOINTS} <= set(found.conditions)
        found.save(path)
        assert cc.recheck(path, law).status is cc.Status.UNDECIDED
    cc.certify(free).save(path)
    assert cc.recheck(path, free).status is cc.Status.PROVED
    assert cc.recheck(path, kept).status is not cc.Status.PROVED  # another law's proof
    limited = replace(free, torque_limits=LIMIT)
    assert cc.certify(limited, operating=box(limited)).status is cc.Status.PROVED
    with pytest.raises(OutputError, match="`operating`"):
        cc.certify(replace(limited, constraints=cc.Constraints()), operating=box(limited))
    with pytest.raises(Rejection, match="constraints"):
        gains_of(kept, [slice(0, 1)])


@pytest.mark.by_default(1)
@pytest.mark.parametrize("start", [0.005, -0.0059])
def test_starts_in_the_proved_set_keep_the_stated_factor(start):
    """V_L of a hold is 2 x^2: errors of 0.012 m and m/s in the box allow up to 0.006 m."""
    law = slider(torque_limits=LIMIT)
    found = cc.certify(law, operating=box(law))
    assert found.status is cc.Status.PROVED
    assert found.parts[0].level == pytest.approx(0.012**2 / 2, rel=1e-12)
    assert found.contains([start], [0.0])
    times = np.linspace(0.0, 3.0, 31)
    errors = moved(law, start, times)
    norms = [found.norm(x, ve) for x, ve in zip(*errors, strict=True)]
    assert (np.array(norms) <= norms[0] * np.exp(-found.rate * times) * (1 + 1e-6)).all()
    assert np.abs(4.0 * errors[0] - 4.0 * errors[1]).max() < LIMIT


def test_starts_beyond_the_proved_set_are_not_claimed_and_miss_the_factor():
    law = slider(torque_limits=LIMIT)
    found = cc.certify(law, operating=box(law))
    for start, inside in ((0.00599, True), (0.00601, False), (1.0, False)):
        assert found.contains([start], [0.0]) is inside
        assert found.low_transient.contains([start], [0.0]) is inside
    x, ve = moved(law, 1.0, np.array([0.0, 1.5, 3.0]))
    assert found.norm(x[-1], ve[-1]) / found.norm(x[0], ve[0]) > 10 * np.exp(-found.rate * 3.0)
    assert "any start" not in str(found)
    with pytest.raises(OutputError, match="torque limits"):
        narrow_decays(found)


def test_boxes_that_do_not_show_it_are_rejected():
    law = slider(torque_limits=LIMIT)
    weak = box(law, error=0.02)  # 8 x 0.02 N is beyond the limit
    assert weak.status is not cc.Status.PROVED
    other = replace(law, stiffness=[3.0])
    loose = operating_bounds(law, {}, speeds=1.0, pose_error=0.02, velocity_error=0.02, limits=1.0)
    still = operating_bounds(law, {}, speeds=1.0)
    for wrong in (weak, box(other), loose, still, operating_bounds(law, {}), "box"):
        with pytest.raises(OutputError, match="`operating`"):
            cc.certify(law, operating=wrong)
    with pytest.raises(OutputError, match="`operating`"):
        cc.certify(law.error_dynamics, operating=box(law))


@pytest.mark.parametrize("kept", [[], slice(0, 2), slice(0, 3)])
def test_conditions_cannot_be_forged_away(tmp_path, kept):
    law, path = slider(torque_limits=LIMIT), tmp_path / "proof.json"
    cc.certify(law, operating=box(law)).save(path)
    assert cc.recheck(path, law).status is cc.Status.PROVED
    found = json.loads(path.read_text())
    found["conditions"] = found["conditions"][kept] if kept else []
    path.write_text(json.dumps(found))
    with pytest.raises(cc.errors.ConcurError):
        cc.recheck(path)
    found.pop("hash")
    path.write_text(json.dumps(found | {"hash": document_hash(found)}))
    assert cc.recheck(path, law).status is cc.Status.UNDECIDED


@pytest.mark.parametrize(
    ("rate", "share", "words"),
    [
        (1.99996, 0.99998, ("Rate 1.999 1/s, 99.998 % of", "rate 1.999 1/s")),
        (2.0, 1.0, ("Rate 2 1/s, 100 % of", "rate 2 1/s")),
    ],
)
def test_a_proved_rate_is_written_rounded_down(monkeypatch, rate, share, words):
    found = cc.certify(slider())
    monkeypatch.setattr(type(found), "rate", rate)
    monkeypatch.setattr(type(found), "true_rate", rate / share)
    for text, word in zip((str(found), repr(found)), words, strict=True):
        assert word in text


@pytest.mark.parametrize(("masses", "words"), [(0.0999999, "9.99 %"), (0.1, "10 %")])
def test_masses_of_a_statement_are_not_rounded_up(masses, words):
    given = Statement((0.1,), (0.1,), 0.1, masses=masses)
    assert f"masses within {words}" in conditions(given, "heading")
