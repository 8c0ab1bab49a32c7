"""Stored operating boxes: true ones are confirmed, and no claim can be strengthened."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest

import concur as cc
from concur.certify import OperatingCertificate, examine, operating_bounds
from concur.certify._recheck_outward import Interval
from concur.certify._recheck_program import OPERATIONS, _at_point, cases, program_of, run, wave
from concur.control import Servo
from concur.errors import DescriptionError
from tests.certify._stored import write
from tests.certify.test_operating import ELBOW, margin_alone, rover

BOX = {"turret": (-0.02, 0.0), "upper_arm": (0.98, 1.0), "forearm": (-1.62, -1.6)}
ASKED = {"speeds": 0.3, "acceleration": 0.2, "pose_error": 0.05}


@cache
def spinner(stiffness: float = 4.0) -> Servo:
    model = cc.reduce(cc.robots.wheel_satellite(), momentum=[0, 0, 0, 0.3, -0.2, 0.4])
    return Servo(model, [cc.Output("attitude", "satellite", "SO3")], stiffness, 4)


@cache
def bounds(kind: str) -> tuple[OperatingCertificate, Servo]:
    if kind == "margin":
        return margin_alone(), rover()
    if kind == "rover":
        return operating_bounds(rover(), BOX, **ASKED, limits=40.0), rover()
    if kind == "singular":
        return operating_bounds(rover(), ELBOW | {"forearm": (-0.4, 0.3)}, speeds=0.1), rover()
    if kind == "weak":
        return operating_bounds(rover(), ELBOW, **ASKED, limits={"upper_arm": (-5, 5)}), rover()
    asked = ASKED | {"velocity_error": 0.1}
    return operating_bounds(spinner(), {}, **asked, limits=10.0), spinner()


KINDS = ("margin", "rover", "spinner", "singular", "weak")


_STORED: dict[str, str] = {}


def stored(kind: str, folder: Path) -> dict[str, Any]:
    if kind not in _STORED:
        bounds(kind)[0].save(folder / "box.json")
        _STORED[kind] = (folder / "box.json").read_text()
    found: dict[str, Any] = json.loads(_STORED[kind])
    return found


@pytest.mark.extended
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_saved_is_confirmed(kind: str, tmp_path: Path) -> None:
    found, servo = bounds(kind)
    expected = cc.Status.REFUTED if kind in ("singular", "weak") else cc.Status.PROVED
    assert found.status is expected
    path = tmp_path / "box.json"
    found.save(path)
    assert cc.recheck(path) is expected
    answer = cc.recheck(path, servo)
    assert answer.status is expected
    assert answer.law
    assert answer.kind == "operating box"
    assert answer.rate is None
    if expected is cc.Status.PROVED:
        assert f"{found.margin:.6g}" in answer.claims[0]
        assert len(answer.claims) == (1 if kind == "margin" else 2 + len(found.names))
        assert len(answer.region) == len(found.ranges) + len(found.demand)
        assert all(name in text for name, text in zip(found.names, answer.claims[1:], strict=False))


def test_another_law_is_not_proved(tmp_path: Path) -> None:
    path = tmp_path / "box.json"
    bounds("spinner")[0].save(path)
    for other in (
        spinner(float(np.nextafter(4.0, 5.0))),
        rover(),
        replace(spinner(), use_measured_velocity=True),
    ):
        answer = cc.recheck(path, other)
        assert answer.status is cc.Status.UNDECIDED
        assert not answer.law
        assert "another law" in answer.reason


def changed(document: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    forged = copy.deepcopy(document)
    entry: Any = forged
    for name in place[:-1]:
        entry = entry[name]
    entry[place[-1]] = value(entry[place[-1]]) if callable(value) else value
    return forged


def claims(document: dict[str, Any]) -> list[tuple[tuple[Any, ...], Callable[[float], float]]]:
    """Numbers that a forger would change, and into what."""
    found: list[tuple[tuple[Any, ...], Callable[[float], float]]] = [
        (("margin",), lambda v: 1.3 * v),
        (("least",), lambda v: document["margin"]),
        (("least",), lambda v: -1.0),
    ]
    for i, (low, high) in enumerate(zip(document["lower"], document["upper"], strict=True)):
        found.append((("lower", i), lambda v, w=high - low: v + 0.4 * w))
        found.append((("upper", i), lambda v, w=high - low: v - 0.4 * w))
        found.append((("limits", i, 1), lambda v, high=high: high * (1 - 1e-9)))
        found.append((("limits", i, 0), lambda v, low=low: low + 1e-9 * abs(low)))
    for name in document["demand"]:
        found.append((("demand", name, 0), lambda v: 3.0 * v + 5.0))
    if document["ranges"]:
        found.append((("ranges", "forearm", 1), lambda v: 0.0))
    return found


def test_a_bound_may_be_as_large_as_its_limit(tmp_path: Path) -> None:
    document = stored("rover", tmp_path)
    pairs = zip(document["lower"], document["upper"], strict=True)
    path = write(tmp_path / "tight.json", changed(document, ("limits",), [list(p) for p in pairs]))
    assert examine(path).status is cc.Status.PROVED


@pytest.mark.by_default(2)
@pytest.mark.parametrize("kind", ["margin", "spinner", "rover"])
def test_no_claim_can_be_made_better(kind: str, tmp_path: Path) -> None:
    document = stored(kind, tmp_path)
    for place, value in claims(document):
        path = write(tmp_path / "forged.json", changed(document, place, value))
        assert examine(path, work=2e6).status is cc.Status.UNDECIDED, place


def test_a_law_that_was_changed_is_not_the_servos(tmp_path: Path) -> None:
    """Every constant of the instructions, and every other entry of the law."""
    document = stored("spinner", tmp_path)
    law = document["law"]
    places: list[tuple[Any, ...]] = [("law", "w", k) for k in range(3, 9)]
    places += [("law", "scales", 0), ("law", "neutral", 0), ("law", "lowest")]
    for name, program in law["programs"].items():
        constants = [i for i, step in enumerate(program["code"]) if step[0] == "const"]
        places += [("law", "programs", name, "code", i, 1) for i in constants[:1]]
    for place in places:
        forged = changed(document, place, lambda v: v * (1 + 2.3e-16) + 1e-300)
        answer = cc.recheck(write(tmp_path / "forged.json", forged), spinner(), work=2e6)
        assert answer.status is cc.Status.UNDECIDED, place
        assert not answer.law


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("law", "programs", "matrices", "code", 0), ["exp", 0]),
        (("law", "programs", "matrices", "code", 0), ["neg", 0]),
        (("law", "programs", "matrices", "code", 0), ["const", 1e300]),
        (("law", "programs", "matrices", "code", 0), ["input", 0, 99]),
        (("law", "programs", "matrices", "code", 0), ["input", -1, 0]),
        (("law", "programs", "matrices", "code", 0), []),
        (("law", "programs", "matrices", "results", "mass", 0), [0]),
        (("law", "programs", "matrices", "results", "mass", 0, 0), 10**9),
        (("law", "programs", "matrices", "results", "mass", 0, 0), True),
        (("law", "programs"), {}),
        (("law", "places"), [5, 5, 7]),
        (("law", "names"), ["turret", "turret", "forearm"]),
        (("law", "size"), 10**9),
        (("law", "w"), [1.0] * 10**5),
        (("law", "w"), [0.3] * 4),
        (("law", "mixing"), [[2]]),
        (("ranges",), {"turret": [0, 1]}),
        (("ranges", "turret"), [1.0, -1.0]),
        (("ranges", "turret"), [0.0]),
        (("ranges", "turret", 0), "0"),
        (("demand",), {}),
        (("demand", "speeds", 0), -1.0),
        (("lower",), []),
        (("limits",), [[None]]),
        (("margin",), [1]),
        (("status",), "TRUE"),
    ],
)
def test_what_does_not_fit_is_refused(place: tuple[Any, ...], value: Any, tmp_path: Path) -> None:
    forged = changed(stored("rover", tmp_path), place, value)
    # Where speeds do not fit the shape, it is the demand that is incomplete.
    said = "demand" if value == [0.3] * 4 else place[place[0] == "law"]
    with pytest.raises(DescriptionError, match=rf"`(law\.)?{said}"):
        cc.recheck(write(tmp_path / "forged.json", forged))


def test_a_number_that_is_not_finite_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nan.json"
    bounds("rover")[0].save(path)
    path.write_text(path.read_text().replace('"least": ', '"least": NaN, "old": '))
    with pytest.raises(DescriptionError, match="finite"):
        cc.recheck(path)


@pytest.mark.parametrize(("count", "said"), [(400, "demand"), (401, "at most 400 numbers")])
def test_a_vector_has_400_numbers_at_most(count: int, said: str, tmp_path: Path) -> None:
    forged = changed(stored("rover", tmp_path), ("law", "w"), [-1.0] * count)
    with pytest.raises(DescriptionError, match=said):
        cc.recheck(write(tmp_path / "forged.json", forged))


@pytest.mark.parametrize(("size", "said"), [(400, "numbers|rows|list of"), (401, "below 401")])
def test_a_law_has_400_outputs_at_most(size: int, said: str, tmp_path: Path) -> None:
    forged = changed(stored("rover", tmp_path), ("law", "size"), size)
    with pytest.raises(DescriptionError, match=said):
        cc.recheck(write(tmp_path / "forged.json", forged))


def test_what_claims_nothing_is_undecided(tmp_path: Path) -> None:
    document = stored("margin", tmp_path)
    for place, value in ((("law",), None), (("status",), "UNDECIDED")):
        path = write(tmp_path / "less.json", changed(document, place, value))
        assert cc.recheck(path) is cc.Status.UNDECIDED
    with pytest.raises(DescriptionError, match="`margin`"):  # proved, but not how much
        cc.recheck(write(tmp_path / "less.json", changed(document, ("margin",), None)))
    lost = changed(changed(document, ("status",), "REFUTED"), ("counterexample",), None)
    assert cc.recheck(write(tmp_path / "less.json", lost)) is cc.Status.UNDECIDED


def test_only_a_state_that_is_stated_refutes(tmp_path: Path) -> None:
    document = stored("weak", tmp_path)
    shown = document["counterexample"]
    changes: list[tuple[tuple[Any, ...], Any]] = [
        (("counterexample", "q", 6), 1.2),  # outside of the ranges
        (("counterexample", "q", 0), 0.1),  # elsewhere
        (("counterexample", "s", 0), 0.31),
        (("counterexample", "acceleration", 1), 0.21),
        (("counterexample", "pose", 0), lambda v: v + 0.2),
        (("counterexample", "twist", 0), lambda v: v + 0.1),
        (("counterexample", "control"), "turret"),
        (("counterexample", "control"), "elbow"),
        (("limits", document["controls"].index("upper_arm")), [-50.0, 50.0]),
    ]
    assert shown["control"] == "upper_arm"
    for place, value in changes:
        path = write(tmp_path / "forged.json", changed(document, place, value))
        assert cc.recheck(path) is cc.Status.UNDECIDED, place
    document = stored("singular", tmp_path)
    for place, value in ((("least",), 0.0), (("counterexample", "q", 7), lambda v: v + 0.05)):
        path = write(tmp_path / "forged.json", changed(document, place, value))
        assert cc.recheck(path) is cc.Status.UNDECIDED, place


def test_work_and_boxes_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "box.json"
    bounds("rover")[0].save(path)
    assert "work" in examine(path, work=1e5).reason
    assert "boxes" in examine(path, budget=1).reason
    # A law of many entries would not fit into any memory.
    forged = stored("rover", tmp_path)
    forged["law"]["w"] = [0.3] * 400
    rows = forged["law"]["programs"]["matrices"]["results"]
    rows["velocity"] = [[0] * 400] * 5
    rows["products"] = [[0] * (401 * 402 // 2)] * 10
    assert examine(write(tmp_path / "large.json", forged)).status is cc.Status.UNDECIDED


def test_sines_are_enclosed() -> None:
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.uniform(-7, 7, 300), rng.uniform(-9e4, 9e4, 100),
                             np.arange(-8, 9) * (math.pi / 4)])  # fmt: skip
    with flint.ctx.workprec(150):
        for quarter in (0, 1):
            found = _at_point(points, quarter)
            for x, low, high in zip(points, found.lo, found.hi, strict=True):
                exact = flint.arb(float(x))
                exact = exact.cos() if quarter else exact.sin()
                assert flint.arb(float(low)) <= exact <= flint.arb(float(high))
                assert high - low < 1e-15 + 1e-15 * abs(x)
    for low, high in ((0.0, 1.0), (1.5, 1.6), (3.0, 7.0), (-1.7, 0.2), (-20.0, 20.0), (2e5, 2e5)):
        grid = np.linspace(low, high, 2001)
        for quarter, true_ in ((0, np.sin), (1, np.cos)):
            one = wave(Interval(np.array(low), np.array(high)), quarter)
            assert one.lo <= true_(grid).min() + 1e-15
            assert one.hi >= true_(grid).max() - 1e-15
    ends = wave(Interval(np.array(1.5), np.array(1.6)), 0)
    assert ends.hi == 1.0
    assert ends.lo > 0.99


def test_values_and_slopes_of_all_operations_are_enclosed() -> None:
    """Each operation on points, and by finite differences its slope."""
    rng = np.random.default_rng(2)
    plain: dict[str, Callable[..., Any]] = {
        "neg": lambda a: -a, "twice": lambda a: 2 * a, "sq": lambda a: a * a,
        "inv": lambda a: 1 / a, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "fabs": np.abs,
        "not": lambda a: a == 0, "add": np.add, "sub": np.subtract, "mul": np.multiply,
        "div": np.divide, "atan2": np.arctan2, "fmin": np.minimum, "fmax": np.maximum,
        "and": np.logical_and, "or": np.logical_or,
        "if_else_zero": lambda a, b: np.where(a != 0, b, 0.0), "lt": np.less,
        "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
    }  # fmt: skip
    assert set(plain) | {"const", "input"} == OPERATIONS
    smooth = {
        "neg",
        "twice",
        "sq",
        "inv",
        "sqrt",
        "sin",
        "cos",
        "add",
        "sub",
        "mul",
        "div",
        "atan2",
    }
    low = rng.uniform(0.2, 2.0, (2, 50))
    high = low + rng.uniform(0.0, 0.5, (2, 50))
    middle = (low + high) / 2
    unit = np.zeros((2, 2, 50))
    unit[0, 0] = unit[1, 1] = 1.0
    pairs: Any = [
        (Interval(np.stack([middle[k], low[k]]), np.stack([middle[k], high[k]])), Interval(unit[k]))
        for k in range(2)
    ]
    for name, true in plain.items():
        count = (
            2
            if name not in ("neg", "twice", "sq", "inv", "sqrt", "sin", "cos", "fabs", "not")
            else 1
        )
        code = [["input", 0, 0], ["input", 0, 1], [name, *range(count)]]
        table = {"code": code, "results": {"f": [[2]]}}
        value, slope = run(program_of(table, "f", [2], {"f": (1, 1)}), [pairs])["f"]
        assert slope is not None
        for _ in range(20):
            at = low + rng.uniform(0, 1, low.shape) * (high - low)
            exact = np.asarray(true(*at[:count]), dtype=float)
            assert (value.lo[1, :, 0, 0] <= exact + 1e-14).all(), name
            assert (exact <= value.hi[1, :, 0, 0] + 1e-14).all(), name
            if name not in smooth:
                continue
            for k in range(count):
                step = np.zeros_like(at)
                step[k] = 1e-6
                change = (true(*(at + step)[:count]) - true(*(at - step)[:count])) / 2e-6
                assert (slope.lo[k, :, 0, 0] <= change + 1e-8).all(), name
                assert (change <= slope.hi[k, :, 0, 0] + 1e-8).all(), name
        if name not in smooth and name not in ("lt", "le", "eq", "ne"):
            assert np.isnan(slope.lo).all()


def test_undecided_comparisons_are_followed_separately() -> None:
    """x < 1e-3 ? 1 : sin(x) / x: the quotient is not taken where it may be 0 / 0."""
    code = [["input", 0, 0], ["const", 1e-3], ["lt", 0, 1], ["const", 1.0], ["if_else_zero", 2, 3]]
    code += [["not", 2], ["sin", 0], ["div", 6, 0], ["if_else_zero", 5, 7], ["add", 4, 8]]
    program = program_of({"code": code, "results": {"f": [[9]]}}, "f", [1], {"f": (1, 1)})
    x = Interval(np.zeros((2, 1)), np.full((2, 1), 0.5))
    found = cases(program, [[x]])["f"]
    assert found.hi.max() >= 1.0
    assert 0.0 <= found.lo.min() <= math.sin(0.5) / 0.5
