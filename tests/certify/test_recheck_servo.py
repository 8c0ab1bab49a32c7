"""`recheck` with a servo, its limit of work, and proofs forged number by number."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import concur as cc
from concur.certify import Recheck, examine
from concur.certify._recheck_work import LARGEST_FILE, limited, spend
from concur.control import Servo
from concur.errors import DescriptionError
from tests.certify._stored import document, write


@cache
def servo(stiffness: float = 4.0, group: str = "R3xSO3") -> Servo:
    model = cc.reduce(cc.robots.free_flyer())
    return Servo(model, [cc.Output("hand", "tool", group)], stiffness, 4)


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("proof") / "proof.json"
    cc.certify(servo(), angle=1.0, rate_fraction=0.5).save(path)
    return path


def test_the_answer_says_what_is_claimed(proof: Path) -> None:
    found = cc.recheck(proof, servo())
    assert isinstance(found, Recheck)
    assert found.status is cc.recheck(proof) is cc.Status.PROVED
    assert found.law
    stored = json.loads(proof.read_text())
    assert found.rate == stored["rate"]
    assert len(found.region) == len(stored["channels"])
    assert "any start" in found.region[0]
    assert f"{stored['channels'][1]['bound']:.6g}" in found.region[1]
    assert any(f"{stored['rate']:.6g}" in claim for claim in found.claims)
    assert "PROVED" in str(found)
    assert "of the servo's law" in str(found)


@pytest.mark.parametrize(
    "other",
    [(np.nextafter(4.0, 5.0), "R3xSO3"), (4.0, "SE3"), (4.0, "R3")],
    ids=["gain", "group", "size"],
)
def test_another_law_is_not_proved(proof: Path, other: tuple[float, str]) -> None:
    found = cc.recheck(proof, servo(*other))
    assert found.status is cc.Status.UNDECIDED
    assert not found.law
    assert "another law" in found.reason
    assert "NOT of" in str(found)


def test_what_is_no_servo_is_refused(proof: Path) -> None:
    with pytest.raises(DescriptionError, match="a Servo"):
        cc.recheck(proof, 4.0)  # type: ignore[call-overload]


def numbers(entry: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Places of all numbers of a document."""
    if isinstance(entry, dict):
        for name, value in entry.items():
            yield from numbers(value, (*path, name))
    elif isinstance(entry, list):
        for k, value in enumerate(entry):
            yield from numbers(value, (*path, k))
    elif isinstance(entry, float):
        yield path


def forged(stored: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    result = copy.deepcopy(stored)
    entry = result
    for name in path[:-1]:
        entry = entry[name]
    entry[path[-1]] = value
    return result


FAVOUR = {
    "rate": 1,
    "overshoot": -1,
    "angle": 1,
    "distance": 1,
    "bound": 1,
    "lower": 1,
    "upper": -1,
}


@pytest.mark.parametrize("step", [1e-12, 0.3, 1e6], ids=["tiny", "some", "huge"])
def test_a_claim_made_larger_is_not_proved_beyond_the_truth(
    proof: Path, tmp_path: Path, step: float
) -> None:
    """Rates above the linearized one, and regions and transient bounds that P does not imply."""
    stored = json.loads(proof.read_text())
    true_rate = 2.0
    for path in numbers(stored):
        name = next((str(n) for n in reversed(path) if not isinstance(n, int)), "")
        if name not in FAVOUR:
            continue
        old = float(np.array(_at(stored, path)))
        value = old * (1.0 + step) if FAVOUR[name] > 0 else old / (1.0 + step)
        document_ = forged(stored, path, value)
        if name == "rate":
            # The whole loop's follows its slowest channel: both are edited.
            for k in range(len(document_["channels"])):
                document_["channels"][k]["rate"] = value
            document_["rate"] = value
        try:
            status = cc.recheck(write(tmp_path / "forged.json", document_), work=2e7)
        except DescriptionError:
            continue
        if status is cc.Status.PROVED:
            assert name in ("rate", "bound", "angle"), path
            assert step < 1e-6 or (name == "angle" and value <= np.pi)
            if name == "rate":
                assert value <= true_rate


def _at(entry: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        entry = entry[name]
    return entry


def test_sections_that_change_places_are_not_proved(tmp_path: Path) -> None:
    one, other = document("SO3", 1.0, 1.3, 1.35), document("SO3", 1.0, 1.0, 1.35, kp=9.0)
    assert cc.recheck(write(tmp_path / "one.json", one)) is cc.Status.PROVED
    swapped = copy.deepcopy(one)
    swapped["law"] = copy.deepcopy(other["law"])
    assert cc.recheck(write(tmp_path / "two.json", swapped)) is not cc.Status.PROVED
    crossed = copy.deepcopy(one)
    channel = crossed["channels"][0]
    channel["lower"], channel["upper"] = channel["upper"], channel["lower"]
    assert cc.recheck(write(tmp_path / "three.json", crossed)) is not cc.Status.PROVED
    channel = copy.deepcopy(one)
    channel["law"]["stiffness"], channel["law"]["damping"] = (
        channel["law"]["damping"],
        channel["law"]["stiffness"],
    )
    assert cc.recheck(write(tmp_path / "four.json", channel)) is not cc.Status.PROVED


def test_work_is_limited_and_counted_not_timed(proof: Path) -> None:
    needed = 1e3
    while examine(proof, work=needed).status is cc.Status.UNDECIDED:
        needed *= 1.2
    assert examine(proof, work=needed).status is cc.Status.PROVED
    few = examine(proof, work=needed / 1.2)
    assert "work" in few.reason
    assert cc.recheck(proof, servo(), work=1.0).status is cc.Status.UNDECIDED
    with limited(10.0):
        spend(10.0)
        with pytest.raises(Exception, match="more work"):
            spend(1e-9)
    spend(1e30)  # nothing is counted outside


@cache
def hostile() -> dict[str, dict[str, Any]]:
    """Files of some hundred kilobytes that ask for more than any machine has."""
    rng = np.random.default_rng(2)

    def whole(groups: list[str], size: int) -> dict[str, Any]:
        # Entries of all exponents: sums of them are as long as fractions get.
        half = rng.normal(size=(size, size)) * 10.0 ** rng.integers(-50, 0, (size, size))
        gain = ((half + half.T) + 1e3 * np.eye(size)).tolist()
        start = document("R3", 1.0, 1.3, 1.35)
        start["law"] = {"groups": groups} | dict.fromkeys(("stiffness", "damping", "inertia"), gain)
        return start

    large = whole(["R3"] * 20, 60)
    P = np.kron(np.eye(2), np.array(large["law"]["stiffness"])).tolist()
    large["channels"][0] |= {
        "components": list(range(60)),
        "P": P,
        "L": np.zeros((120, 60)).tolist(),
        "M": np.zeros((120, 60)).tolist(),
    }
    boxes = document("SE3", 0.6, 0.7, 1.0)
    thin = np.linspace(0.0, 0.6, 8001)
    boxes["channels"][0]["boxes"] = [[[a, b]] for a, b in pairwise(thin)]
    narrow = document("SO3", 3.1, 1.3, 1.35)
    narrow["channels"][0]["reduction"] = "all"
    ends = rng.uniform(-3.1, 3.1, (3000, 3, 1)) + np.array([0.0, 1e-3])
    narrow["channels"][0]["boxes"] = ends.tolist()
    return {"large": large, "boxes": boxes, "scattered": narrow}


@pytest.mark.parametrize("kind", ["large", "boxes", "scattered"])
def test_a_hostile_file_ends(kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "hostile.json", hostile()[kind])
    assert path.stat().st_size > 100_000
    began = time.process_time()
    found = examine(path, work=2e5)
    assert found.status is cc.Status.UNDECIDED
    assert time.process_time() - began < 20.0


def test_files_that_are_none_end(tmp_path: Path) -> None:
    big = tmp_path / "big.json"
    with big.open("w") as file:
        file.truncate(LARGEST_FILE + 1)
    assert cc.recheck(big) is cc.Status.UNDECIDED
    with big.open("w") as file:
        file.truncate(LARGEST_FILE)
    with pytest.raises(DescriptionError):
        cc.recheck(big)
    os.mkfifo(tmp_path / "pipe.json")
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 3000 + "]" * 3000)
    digits = tmp_path / "digits.json"
    digits.write_text('{"format": "concur certificate", "version": 1, "rate": ' + "9" * 5000 + "}")
    for path in (tmp_path / "pipe.json", deep, digits, tmp_path):
        with pytest.raises(DescriptionError):
            cc.recheck(path)
