"""Stored tubes: true ones are confirmed, and no claim can be strengthened."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import concur as cc
from concur.certify import Disturbance, Tube, tube, tubes
from concur.certify._decay import Decay
from concur.certify._recheck_tube import _domain, _within
from concur.control import Servo
from concur.errors import DescriptionError
from tests.certify._stored import write


@cache
def servo(group: str = "R3xSO3", stiffness: float = 4.0) -> Servo:
    model = cc.reduce(cc.robots.free_flyer())
    return Servo(model, [cc.Output("hand", "tool", group)], stiffness, 4)


@cache
def decays(group: str = "R3xSO3") -> tuple[Decay, ...]:
    found = cc.certify(servo(group), angle=1.0, rate_fraction=0.5)
    return tuple(Decay.of(part) for part in found.parts)


def tube_of(kind: str) -> Tube:
    if kind == "length":
        return tube(decays()[0], 0.1)
    if kind == "components":
        return tubes(decays(), np.full(6, 0.05), [0.1, 0.1])[1]
    if kind == "points":
        points = np.array([[0.1, 0.05, 0.0], [0.0, 0.1, -0.05]])
        return tube(decays()[0], Disturbance(np.array([0.1, 0.1, 0.05]), points=points))
    return tube(decays("SE3")[0], 0.01)


KINDS = ("length", "components", "points", "pose")


@pytest.mark.by_default(2)
@pytest.mark.parametrize("kind", KINDS)
def test_tubes_are_confirmed(kind: str, tmp_path: Path) -> None:
    one = tube_of(kind)
    assert one.status is cc.Status.PROVED
    path = tmp_path / "tube.json"
    one.save(path)
    assert cc.recheck(path) is cc.Status.PROVED
    own = servo("SE3" if kind == "pose" else "R3xSO3")
    found = cc.recheck(path, own)
    assert found.status is cc.Status.PROVED
    assert found.kind == "tube"
    assert found.law
    assert found.rate == one.decay.rate
    assert f"{one.radius:.6g}" in found.claims[0]
    other = cc.recheck(path, servo("SE3" if kind == "pose" else "R3xSO3", 9.0))
    assert other.status is cc.Status.UNDECIDED
    assert not other.law


def favoured(stored: dict[str, Any]) -> list[tuple[tuple[Any, ...], int]]:
    """Numbers that a forger would make larger or smaller."""
    found: list[tuple[tuple[Any, ...], int]] = [
        (("rate",), 1),
        (("start",), 1),
        (("ultimate",), -1),
        (("radius",), -1),
    ]
    found += [((name,), 1) for name in ("angle", "distance") if stored[name] is not None]
    found += [(("bounds", "components", k), -1) for k in range(len(stored["components"]))]
    found += [
        (("bounds", name), -1)
        for name in ("angle", "distance")
        if stored["bounds"][name] is not None
    ]
    given = stored["disturbance"]
    if given["length"] is not None:
        found.append((("disturbance", "length"), 1))
    if given["components"] is not None:
        found += [(("disturbance", "components", k), 1) for k in range(len(given["components"]))]
    return found


@pytest.mark.parametrize("step", [1e-9, 0.2, 1e3], ids=["tiny", "some", "huge"])
@pytest.mark.parametrize("kind", ["length", "components"])
def test_no_number_can_be_made_better(kind: str, step: float, tmp_path: Path) -> None:
    tube_of(kind).save(tmp_path / "tube.json")
    stored = json.loads((tmp_path / "tube.json").read_text())
    for path, side in favoured(stored):
        forged = copy.deepcopy(stored)
        entry = forged
        for name in path[:-1]:
            entry = entry[name]
        entry[path[-1]] *= (1.0 + step) if side > 0 else 1.0 / (1.0 + step)
        file = write(tmp_path / "forged.json", forged)
        # A little room is in the rate, and in a start or an end that is not the larger of them.
        slack = {"rate": step < 1e-6, "angle": stored["angle"] and step < 1.0}
        slack |= {"start": entry["start"] <= stored["radius"]} if path == ("start",) else {}
        if not slack.get(str(path[0])):
            assert cc.recheck(file) is not cc.Status.PROVED, path


@pytest.mark.parametrize("name", ["disturbance", "bounds", "radius", "P", "law", "hash"])
def test_what_lacks_a_part_is_refused(name: str, tmp_path: Path) -> None:
    tube_of("length").save(tmp_path / "tube.json")
    stored = json.loads((tmp_path / "tube.json").read_text())
    del stored[name]
    path = write(tmp_path / "less.json", stored, sealed=name != "hash")
    with pytest.raises(DescriptionError):
        cc.recheck(path)


def test_what_claims_nothing_is_undecided(tmp_path: Path) -> None:
    path = tmp_path / "tube.json"
    tube(decays()[1], 100.0).save(path)  # leaves the domain
    assert cc.recheck(path) is cc.Status.UNDECIDED
    sampled = Disturbance(np.full(3, 0.01), sampled=True)
    one = tube(decays()[0], sampled)
    assert "estimate, not proved" in one.reason
    one.save(path)
    assert cc.recheck(path) is cc.Status.UNDECIDED
    tube_of("length").save(path)
    stored = json.loads(path.read_text())
    stored["disturbance"] = dict.fromkeys(stored["disturbance"])
    assert cc.recheck(write(path, stored)) is cc.Status.UNDECIDED


def test_a_tube_that_leaves_its_domain_is_not_proved(tmp_path: Path) -> None:
    """With all numbers consistent but the domain too small for the radius."""
    path = tmp_path / "tube.json"
    tube_of("components").save(path)
    stored = json.loads(path.read_text())
    for angle, expected in ((stored["bounds"]["angle"] * 1.01, True), (0.99, False)):
        forged = copy.deepcopy(stored)
        forged["angle"] = angle if expected else stored["bounds"]["angle"] * angle
        proved = cc.recheck(write(path, forged)) is cc.Status.PROVED
        assert proved is expected


def test_the_boundary_of_the_domain_is_not_inside() -> None:
    one = [[Fraction(int(i == j)) for j in range(2)] for i in range(2)]
    channel: Any = SimpleNamespace(p=one, size=1)
    edge = Fraction(3, 2)
    assert _within(channel, edge, [0], edge)
    assert not _within(channel, edge, [0], edge, strict=True)
    assert _within(channel, edge - Fraction(1, 10**30), [0], edge, strict=True)
    assert not _within(channel, edge + Fraction(1, 10**30), [0], edge)


def test_an_angle_ends_at_pi_whatever_the_decay() -> None:
    channel: Any = SimpleNamespace(
        angle=None, distance=None, turning=[], positions=[], spans=[("R1", 0), ("SO2", 1)]
    )
    assert _domain(channel) == [([1], Fraction(np.pi))]
