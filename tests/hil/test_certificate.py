"""The certificate's bound on the torque, beside the limits of a rig."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from hil._certificate import load_bound
from hil.errors import RigFileError
from hil.rig import load_rig

RIG = Path(__file__).parents[2] / "examples" / "rover_rig" / "rig.toml"


@pytest.fixture(scope="module")
def rig():
    return load_rig(RIG)


def test_the_rovers_limits_leave_what_is_proved_to_be_needed(rig):
    bound = load_bound(rig)
    assert bound.status == "PROVED"
    assert bound.exceeded(rig) == []
    assert all(0.0 < bound.torque[axis.name] < axis.torque_limit for axis in rig.axes)


def test_a_limit_below_the_bound_is_named(rig):
    axes = list(rig.axes)
    axes[3] = dataclasses.replace(axes[3], torque_limit=5.0)
    weaker = dataclasses.replace(rig, axes=tuple(axes))
    assert load_bound(weaker).exceeded(weaker) == ["upper_arm"]


def test_the_bound_is_the_larger_of_both_ends(rig):
    document = json.loads(rig.certificate.read_text(encoding="utf-8"))
    bound = load_bound(rig)
    for name, low, high in zip(
        document["controls"], document["lower"], document["upper"], strict=True
    ):
        assert bound.torque[name] == max(abs(low), abs(high))


def test_a_rig_without_certificate_has_no_bound(rig):
    assert load_bound(dataclasses.replace(rig, certificate=None)) is None


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", '{"robot": 1}', '{"robot": "rover_arm", "status": "PROVED", "controls": 3}'],
)
def test_what_is_no_certificate_is_refused(rig, tmp_path, text):
    file = tmp_path / "operating.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RigFileError, match="an operating certificate"):
        load_bound(dataclasses.replace(rig, certificate=file))


def test_a_missing_file_is_named(rig, tmp_path):
    with pytest.raises(RigFileError, match=r"nowhere\.json"):
        load_bound(dataclasses.replace(rig, certificate=tmp_path / "nowhere.json"))


def test_a_certificate_of_another_robot_is_refused(rig, tmp_path):
    document = json.loads(rig.certificate.read_text(encoding="utf-8"))
    file = tmp_path / "operating.json"
    file.write_text(json.dumps(document | {"robot": "crane"}), encoding="utf-8")
    with pytest.raises(RigFileError, match="crane"):
        load_bound(dataclasses.replace(rig, certificate=file))


def test_controls_without_a_bound_are_infinite(rig, tmp_path):
    document = json.loads(rig.certificate.read_text(encoding="utf-8"))
    file = tmp_path / "operating.json"
    file.write_text(json.dumps(document | {"lower": [], "upper": []}), encoding="utf-8")
    unbounded = dataclasses.replace(rig, certificate=file)
    assert load_bound(unbounded).exceeded(unbounded) == [axis.name for axis in rig.axes]
