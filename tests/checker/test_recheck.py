"""Files of proofs of tasks: whatever lies is never confirmed, and ends within the work limit."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from concur.certify import Recheck, Status
from concur.checker import confirmed, load_task_proof, recheck
from concur.errors import ConcurError, OutputError
from concur.proofs import prove_task
from concur.writers import to_toml
from tests.checker._stored import (
    ADDED,
    HEAD,
    PROOF,
    answer,
    changed,
    claims_no_more,
    document,
    sealed,
    task,
    write,
)
from tests.fuzz._mutate import mutated

PROVED = Status.PROVED.name


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "proof.json", document(tmp_path))


def test_a_sound_file_is_confirmed_from_itself_alone(tmp_path, file):
    (tmp_path / "task.toml").unlink(missing_ok=True)
    assert not confirmed(file)
    assert recheck(file) is Status.PROVED
    assert confirmed(file)
    # Another content of the same name has no receipt.
    write(file, document(tmp_path) | {"hash": ""})
    assert not confirmed(file)


def test_a_file_that_is_replaced_during_the_verification_gets_no_receipt(tmp_path, file):
    """The receipt is for what was read and verified, not for what lies there in the end."""
    sound = file.read_bytes()
    forged = document(tmp_path)
    forged["bounds"][0]["value"] *= 0.5
    forged = sealed(forged)

    def replaced(share):
        file.write_text(json.dumps(forged), encoding="utf-8")

    assert recheck(file, task=task(tmp_path), progress=replaced).status is Status.PROVED
    assert json.loads(file.read_text()) == forged
    assert not confirmed(file)
    assert not confirmed(load_task_proof(file).document)
    file.write_bytes(sound)
    assert confirmed(load_task_proof(file).document)


def test_the_door_is_that_of_certificates(tmp_path, file):
    made = task(tmp_path)
    found = cc.recheck(file, task=made)
    assert isinstance(found, Recheck)
    assert (found.status, found.kind, found.law) == (Status.PROVED, "task", True)
    assert len(found.claims) == len(document(tmp_path)["bounds"])
    assert "starts within 0.002 m, 0.006 m/s and 0.002 rad of heading" in found.region[0]
    assert cc.recheck(file, made.servo).status is Status.PROVED
    certificate = tmp_path / "certificate.json"
    cc.certify(made.servo).save(certificate)
    assert cc.recheck(certificate) is Status.PROVED
    assert cc.recheck(certificate, made.servo).kind == "error dynamics"
    assert cc.recheck(certificate, task=made).law
    with pytest.raises(ConcurError, match="path of a file"):
        cc.recheck(3)


@pytest.mark.extended
def test_the_sentence_is_that_of_the_proof_with_its_wider_bounds(tmp_path, file):
    proof = prove_task(task(tmp_path))
    for other in (replace(proof, status=Status.UNDECIDED), replace(proof, source=None)):
        with pytest.raises(OutputError, match="prove_task"):
            other.save(tmp_path / "other.json")
    stored = load_task_proof(file)
    claims = [one.sentence.partition(": ")[2].partition(": torques")[0] for one in (stored, proof)]
    assert claims[0] == claims[1] != ""
    assert stored.statement == proof.statement
    for bound, claim in zip(proof.bounds, stored.bounds, strict=True):
        assert bound.quantity == claim.quantity
        wider = bound.sign * (claim.value - bound.value)
        size = max(abs(bound.value), {"rad": 0.05, "rad/s": 0.25}.get(bound.unit, 0.0))
        assert 0.0 <= wider <= 0.02 * size * (1 + 1e-9)
        assert claim.kept
        assert claim.limit == bound.limit or not np.isfinite(bound.limit)
    tight = replace(proof, bounds=tuple(replace(b, limit=b.value) for b in proof.bounds))
    tight.save(file)
    values = [entry["value"] for entry in json.loads(file.read_text())["bounds"]]
    assert values == [bound.value for bound in proof.bounds]


OTHERS = {
    "law": HEAD.replace("stiffness = 9.0", "stiffness = 9.0000001"),
    "reference": HEAD.replace("radius = 0.07", "radius = 0.0700001"),
    "start": HEAD.replace("upper_arm = 1.0", "upper_arm = 1.0000001"),
    "duration": HEAD.replace("duration = 0.1", "duration = 0.2"),
    "control period": HEAD.replace('"rk4"', '"rk4"\ncontrol_period = 0.002'),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_task_is_named_and_not_confirmed(tmp_path, file, name):
    other = task(tmp_path, OTHERS[name] + PROOF.replace("period = 0.001\n", ""))
    found = recheck(file, task=other)
    assert (found.status, found.law) == (Status.UNDECIDED, False)
    assert name in found.reason
    assert not confirmed(file)
    alone = task(tmp_path, OTHERS[name])  # without a statement
    assert load_task_proof(file).differences(alone) == (name,)
    expected = ("law",) if name == "law" else ()
    assert load_task_proof(file).differences(servo=alone.servo) == expected


def test_another_robot_or_statement_is_named(tmp_path, file):
    made, stored = task(tmp_path), load_task_proof(file)
    assert stored.differences(made, made.servo) == ()
    robot = tmp_path / "heavy.toml"
    text = to_toml(made.robot)
    robot.write_text(text.replace("mass = 2.0", "mass = 2.0000001", 1))
    heavy = task(tmp_path, (HEAD + PROOF).replace('"rover_arm"', '"heavy.toml"'))
    assert stored.differences(heavy) == ("robot",)
    assert recheck(file, heavy.servo).status is Status.UNDECIDED
    for old, new in (
        ("heading = 0.002", "heading = 0.003"),
        ("masses = 0.005", "masses = 0.006"),
        ("torque_limits = 20.0", "torque_limits = 19.0"),
        ("[-1.0, 1.0]", "[-1.0, 0.9]"),
    ):
        other = task(tmp_path, HEAD + PROOF.replace(old, new))
        assert stored.differences(other) == ("statement",)
    # A faster loop is covered.
    faster = task(tmp_path, HEAD.replace('"rk4"', '"rk4"\ncontrol_period = 0.001') + PROOF)
    assert stored.differences(faster) == ()


def _claims(kind, value):
    def change(found):
        for entry in found["bounds"]:
            if entry["kind"] == kind:
                entry["value"] = value(entry["value"])

    return change


LIES = {
    # Statement changed: what is claimed no longer follows.
    "masses": lambda f: f["statement"].update(masses=0.02),
    "heading": lambda f: f["statement"].update(heading=0.1),
    "place": lambda f: f["statement"]["place"].update(hand=0.02),
    "speed": lambda f: f["statement"]["speed"].update(base=0.1),
    "period": lambda f: f["statement"].update(period=0.02),
    "delay": lambda f: f["statement"].update(delay=0.02),
    "push": lambda f: f["statement"]["push"].update(hand=0.5),
    "torque error": lambda f: f["statement"]["torque_error"].update(turret=1.0),
    "torque limit": lambda f: f["statement"]["torques"].update(turret=19.0),
    "limit without bound": lambda f: f["statement"]["speeds"].update(axle=19.0),
    "corridor": lambda f: f["statement"]["corridor"].update(hand=0.1),
    "margin": lambda f: f["statement"].update(margin=2.0),
    "angles": lambda f: f["statement"]["angles"].update(turret=[-0.01, 0.01]),
    "obstacles": lambda f: f["statement"].update(obstacles=[]),
    # Robot, law, reference or start changed.
    "robot": lambda f: f.update(robot=f["robot"].replace("mass = 2.0", "mass = 6.0")),
    "law": lambda f: f.update(task=f["task"].replace("[9.0, 9.0, 9.0]", "[8.0, 8.0, 8.0]")),
    "reference": lambda f: f.update(task=f["task"].replace("radius = 0.07", "radius = 0.2")),
    "start": lambda f: f.update(task=f["task"].replace("upper_arm = [1.0]", "upper_arm = [0.9]")),
    "duration": lambda f: f.update(task=f["task"].replace("duration = 0.1", "duration = 0.2")),
    "held for longer": lambda f: f.update(
        task=f["task"].replace('"rk4"', '"rk4"\ncontrol_period = 0.002')
    ),
    "floater": lambda f: f.update(kind="floater"),
    # Segments.
    "gap at the start": lambda f: f.update(first=[1, *f["first"][1:]]),
    "backwards": lambda f: f.update(first=f["first"][::-1]),
    "beyond the end": lambda f: f.update(first=[0, f["steps"]]),
    "one step": lambda f: f.update(steps=1),
    "coarse": lambda f: f.update(steps=2, first=[0, 1]),
    "segment lost": lambda f: f.update(leaves=f["leaves"][:1]),
    "leaves lost": lambda f: f["leaves"][1].clear(),
    "half of the leaves": lambda f: f.update(leaves=[part[::2] for part in f["leaves"]]),
    "other cells": lambda f: f.update(cells=[[a, i + 5, j, k] for a, i, j, k in f["cells"]]),
    "edge": lambda f: f.update(edge=f["edge"] / 4),
    "many leaves": lambda f: f.update(leaves=[[0] * 600_000] * 2),
    # D and bounds.
    "D": lambda f: f["disturbance"].update(hand=[0.5 * d for d in f["disturbance"]["hand"]]),
    "D of another output": lambda f: f["disturbance"].update(arm=f["disturbance"].pop("hand")),
    "D short": lambda f: f["disturbance"]["hand"].pop(),
    "D huge": lambda f: f["disturbance"].update(hand=[1e14] * 2),
    "tighter torque": _claims("torque", lambda x: 0.9 * x),
    "tighter speed": _claims("speed", lambda x: 0.9 * x),
    "tighter margin": _claims("margin", lambda x: 1.1 * x),
    "tighter corridor": _claims("corridor", lambda x: 0.9 * x),
    "torque beyond its limit": _claims("torque", lambda x: 21.0),
    "margin beyond its limit": _claims("margin", lambda x: 0.05),
    "bound lost": lambda f: f["bounds"].pop(),
    "bound twice": lambda f: f["bounds"].append(f["bounds"][0]),
    "limit": lambda f: f["bounds"][0].update(limit=30.0),
    "no limit": lambda f: f["bounds"][0].update(limit=None),
    "side": lambda f: f["bounds"][0].update(side="lower"),
    "unit": lambda f: f["bounds"][0].update(unit="kN m"),
}  # fmt: skip


# `tests/proofs/test_recheck.py` has lies of these kinds by default, without files.
ELSEWHERE = ("period", "push", "torque error", "D", "tighter speed", "tighter margin",
             "tighter corridor")  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.extended if name in ELSEWHERE else ()) for name in LIES],
)
def test_lies_are_never_confirmed(tmp_path, name):
    path = changed(tmp_path, LIES[name])
    began = time.process_time()
    found = answer(path)
    assert found != PROVED
    assert not confirmed(path)
    # A million units are about a second, and the limit is ten.
    assert time.process_time() - began < 60.0


@pytest.mark.extended
def test_swapped_segments_are_not_confirmed(tmp_path):
    """The first and the last second of a motion in which the hand passes some cells."""
    file = tmp_path / "proof.json"
    made = task(tmp_path, HEAD.replace("duration = 0.1", "duration = 1.0") + PROOF)
    prove_task(made).save(file)
    assert recheck(file, task=made).status is Status.PROVED
    for name in ("leaves", "disturbance", "both"):
        found = json.loads(file.read_text())
        rows = [found["leaves"]] if name == "leaves" else [*found["disturbance"].values()]
        for part in [*rows, found["leaves"]] if name == "both" else rows:
            part[0], part[-1] = part[-1], part[0]
        write(tmp_path / "swapped.json", sealed(found))
        assert answer(tmp_path / "swapped.json", 1e9) == Status.UNDECIDED.name, name


def _deep(found):
    found["leaves"] = []
    text = json.dumps(found)
    return text.replace('"leaves": []', '"leaves": ' + "[" * 100_000 + "]" * 100_000)


FORMS = {
    "version": lambda f: f.update(version=2),
    "version as text": lambda f: f.update(version="1"),
    "version true": lambda f: f.update(version=True),
    "format": lambda f: f.update(format="concur certificate"),
    "kind": lambda f: f.update(kind="boat"),
    "status": lambda f: f.update(status="UNDECIDED"),
    "another name": lambda f: f.update(confirmed=True),
    "another name in a bound": lambda f: f["bounds"][0].update(proved=True),
    "statement is a list": lambda f: f.update(statement=[]),
    "hashes": lambda f: f["hashes"].update(law="0" * 64),
    "hashes are a list": lambda f: f.update(hashes=[]),
    "robot is no text": lambda f: f.update(robot={}),
    "robot is none": lambda f: f.update(robot=""),
    "robot is long": lambda f: f.update(robot="#" * 300_000),
    "robot is a path": lambda f: f.update(task=f["task"].replace("robot.toml", "../task.toml")),
    "shipped robot": lambda f: f.update(task=f["task"].replace("robot.toml", "rover_arm")),
    "task with a plant": lambda f: f.update(task=f["task"] + '\n[plant]\nfile = "robot.toml"\n'),
    "task with limits": lambda f: f.update(task=f["task"] + "\n[servo]\ntorque_limits = 1.0\n"),
    "robot with a comment": lambda f: f.update(robot=f["robot"] + "\n[[[\n"),
    "cells of three": lambda f: f.update(cells=[[0, 1, 2]]),
    "cells of fractions": lambda f: f["cells"][0].__setitem__(1, 0.5),
    "huge cells": lambda f: f["cells"][0].__setitem__(1, 10**30),
    "far cells": lambda f: f["cells"][0].__setitem__(1, 2**62),
    "no such cell": lambda f: f["leaves"][0].append(10**9),
    "cell below zero": lambda f: f["leaves"][0].append(-1),
    "leaves of texts": lambda f: f["leaves"].__setitem__(0, ["0"]),
    "leaves are a number": lambda f: f.update(leaves=10**9),
    "a billion steps": lambda f: f.update(steps=10**9),
    "steps below zero": lambda f: f.update(steps=-1),
    "fraction of steps": lambda f: f.update(steps=20.5),
    "first as text": lambda f: f.update(first=["0", "10"]),
    "angles reversed": lambda f: f["statement"]["angles"].update(turret=[1.0, -1.0]),
    "angles of three": lambda f: f["statement"]["angles"].update(turret=[-1.0, 0.0, 1.0]),
    "negative radius": lambda f: f["statement"].update(heading=-0.002),
    "masses": lambda f: f["statement"].update(masses=1.0),
    "place of another output": lambda f: f["statement"]["place"].update(foot=0.1),
    "place lost": lambda f: f["statement"].update(place={}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_files_of_another_form_are_rejected(tmp_path, name):
    assert answer(changed(tmp_path, FORMS[name])) != PROVED


def _places(entry, path=()):
    """Places of all entries, the first ones of lists."""
    if isinstance(entry, dict):
        for name, value in entry.items():
            yield (*path, name)
            yield from _places(value, (*path, name))
    elif isinstance(entry, list):
        for k, value in enumerate(entry[:1]):
            yield (*path, k)
            yield from _places(value, (*path, k))


def _at(found, place):
    for name in place[:-1]:
        found = found[name]
    return found


def test_every_entry_is_needed_and_has_its_type(tmp_path):
    sound = document(tmp_path)
    numbers = 0
    for place in _places({k: v for k, v in sound.items() if k != "versions"}):
        if place[-1] == "hash" or place[:1] == ("hashes",):
            continue
        if isinstance(place[-1], str) and place[:2] not in (("statement", "corridor"),):
            found = document(tmp_path)
            del _at(found, place)[place[-1]]
            assert answer(write(tmp_path / "lost.json", sealed(found))) != PROVED, place
        value = _at(sound, place)[place[-1]]
        if isinstance(value, (int, float)):
            numbers += 1
            for wrong in (str(value), None, [value], True, float("1e16"), 10**400):
                if place == ("bounds", 0, "limit") and wrong is None:
                    continue  # the limit is lost: see the lies
                found = document(tmp_path)
                _at(found, place)[place[-1]] = wrong
                if wrong == 10**400:
                    path = write(tmp_path / "wrong.json", found)
                else:
                    path = write(tmp_path / "wrong.json", sealed(found))
                assert answer(path) != PROVED, (place, wrong)
    assert numbers > 25


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("place", [("edge",), ("bounds", 0, "value"), ("statement", "masses")])
def test_numbers_that_are_not_finite_are_rejected(tmp_path, text, place):
    found = document(tmp_path)
    _at(found, place)[place[-1]] = 123456.75
    path = write(tmp_path / "proof.json", sealed(found))
    path.write_text(path.read_text().replace("123456.75", text))
    assert "finite" in answer(path) or "beyond the floats" in answer(path)


def test_texts_that_are_no_proofs_are_rejected(tmp_path):
    path, sound = tmp_path / "proof.json", json.dumps(document(tmp_path))
    texts = [
        sound[: len(sound) // 2],
        sound[:-1],
        sound + "}",
        "[" * 100_000,
        _deep(document(tmp_path)),
    ]
    texts += [sound.replace('"steps"', '"kind": "rover", "steps"'), sound.replace("0.0", "00.0")]
    texts += ["", "{}", "null", '{"format": "concur task proof"}']
    for text in texts:
        path.write_text(text)
        assert "expected" in answer(path), text[:50]
    path.write_bytes(b"\xff" + sound.encode())
    assert "expected" in answer(path)
    path.write_text(sound + " " * 2**24)
    assert answer(path) == Status.UNDECIDED.name
    assert "expected" in answer(tmp_path)
    assert "expected" in answer(tmp_path / "nowhere.json")


def test_other_content_with_the_old_hash_is_rejected(tmp_path, file):
    text = file.read_text()
    file.write_text(text.replace('"masses": 0.005', '"masses": 0.004'))
    assert "was changed after it was written" in answer(file)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_default(1)
def test_mutated_bytes_are_never_confirmed_unless_the_content_is_the_same(tmp_path, seed):
    path, sound = tmp_path / "proof.json", document(tmp_path)
    data = json.dumps(sound).encode()
    rng, same = random.Random(seed), 0
    for _ in range(40):
        path.write_bytes(mutated(data, rng))
        if answer(path) == PROVED:
            assert json.loads(path.read_text()) == sound
            same += 1
    assert same < 30


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.by_default(1)
def test_mutated_files_with_valid_hashes_claim_no_more(tmp_path, seed):
    path, sound = tmp_path / "proof.json", document(tmp_path)
    data = json.dumps(sound).encode()
    rng, confirmed_ones = random.Random(100 + seed), 0
    for _ in range(15):
        try:
            found = sealed(json.loads(mutated(data, rng)))
        except (ValueError, RecursionError, TypeError, AttributeError):
            continue
        write(path, found)
        if answer(path) == PROVED:
            assert claims_no_more(found, sound)
            confirmed_ones += 1
    assert confirmed_ones < 12


def test_little_work_is_not_enough(tmp_path, file):
    began = time.process_time()
    assert recheck(file, work=1e3) is Status.UNDECIDED
    assert "more work than allowed" in recheck(file, task=task(tmp_path), work=1e3).reason
    assert time.process_time() - began < 20.0
    assert not confirmed(file)


def test_progress_is_reported(file):
    shares = []
    recheck(file, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("wrong", [None, True, "x", [None], [[]], {"a": None}], ids=repr)
def test_lists_and_objects_of_another_kind_are_rejected(tmp_path, wrong):
    """Null in place of an entry that may be absent is its absence."""
    sound = document(tmp_path, ADDED)
    added = {key: sound["statement"][key] for key in ("reading", "ground", "clearance")}
    assert all(added.values())
    for place in _places({k: v for k, v in sound.items() if k != "hashes"}):
        value = _at(sound, place)[place[-1]]
        if isinstance(value, (list, dict)) and place != ("versions",):
            found = document(tmp_path, ADDED)
            _at(found, place)[place[-1]] = wrong
            path = write(tmp_path / "wrong.json", sealed(found))
            assert answer(path) != PROVED, place
