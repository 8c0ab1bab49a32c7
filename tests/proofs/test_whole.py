"""The shipped task of the rover as a whole: its proof, and ten thousand worlds inside it."""

import time
from pathlib import Path

import pytest

from concur.certify import Status
from concur.io import load_task
from concur.proofs import prove_task, sample_statement

EXAMPLES = Path(__file__).parents[2] / "examples"

WORLDS, SEARCH = 10_000, 400

TIGHT, SMALL = 1.5, 0.1
"""Largest ratio of a proved torque to the worst one found, unless it is this share of its limit."""


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
def test_the_whole_slalom_is_proved_tightly_and_no_world_is_outside() -> None:
    task = load_task(EXAMPLES / "rover_arm.toml")
    began = time.process_time()
    proof = prove_task(task)
    print(f"proved in {time.process_time() - began:.0f} s of one core")
    assert proof.status is Status.UNVERIFIED, proof.sentence
    found = sample_statement(task, WORLDS, seed=3, proof=proof, search=SEARCH)
    assert found.worlds >= WORLDS
    assert found.outside(proof) == ()
    assert found.refuted(proof) == ()
    ratios = {}
    for row in found.against(proof):
        name, limit = f"{row.quantity.kind} {row.quantity.name}", row.limit
        if row.quantity.kind == "torque" and not (limit and row.proved <= SMALL * limit):
            ratios[name] = row.ratio
        if name == "corridor hand":
            ratios[name] = row.proved / row.sampled
    assert len(ratios) > 1
    assert max(ratios.values()) <= TIGHT, ratios
