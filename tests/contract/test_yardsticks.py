"""What may not grow: lengths of the graphs of each robot, and the journeys of three numbers."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from tests.contract._frozen import frozen
from tests.contract._journeys import JOURNEYS, held, trace
from tests.contract._lengths import lengths, shared
from tests.contract._robots import LAWS

OTHER = 1.05
"""Lengths with another version of CasADi, which shares other parts, over the frozen ones."""


def longer(found: dict[str, int], limits: dict[str, int], factor: float = 1.0) -> dict[str, str]:
    """Name what is longer than its limit, or has none."""
    return {
        name: f"{count} of {limits.get(name, 0)}"
        for name, count in found.items()
        if count > factor * limits.get(name, 0)
    }


@pytest.mark.by_default(9)
@pytest.mark.parametrize("name", LAWS)
def test_no_graph_has_more_instructions_than_the_frozen_one(name: str) -> None:
    table = frozen("lengths")
    factor = 1.0 if ca.__version__ == table["casadi"] else OTHER
    found = lengths(name)
    assert found.keys() == table[name].keys()
    assert not longer(found, table[name], factor)


def test_lengths_are_compared_to_the_last_instruction() -> None:
    assert not longer({"law": 100}, {"law": 100})
    assert longer({"law": 101}, {"law": 100}) == {"law": "101 of 100"}
    assert not longer({"law": 105}, {"law": 100}, OTHER)
    assert longer({"law": 106}, {"law": 100}, OTHER)
    assert longer({"new": 1}, {})
    x = ca.SX.sym("x")
    assert shared("f", [x], [ca.sin(x) + 1.0]) == 5  # input, sine, one, sum, output
    assert shared("f", [x], [ca.vertcat(ca.sin(x), ca.sin(x))]) == 4  # the sine is shared


@pytest.mark.parametrize("name", JOURNEYS)
def test_no_number_travels_further_than_it_did(name: str) -> None:
    assert not longer(JOURNEYS[name](), frozen("journeys")[name])


def test_numbers_are_found_where_they_are_held() -> None:
    x = 0.12345
    for value in (x, [1.0, x], {"a": (x,)}, np.array([[x]]), ca.SX([1.0, x]), "radius = 0.12345"):
        assert held(value, x)
    for value in (x + 1e-9, [1.0], {"a": [[[x]]]}, np.zeros(101) + x, ca.SX.sym("x"), "x", None):
        assert not held(value, x)


def test_tracing_counts_functions_of_the_package_alone() -> None:
    import concur as cc

    def own(number: float) -> object:
        return cc.Wheel("left", number)

    found = trace(0.12345, lambda: own(0.12345))
    assert found["functions"] >= 2  # the constructor, and its checks
    assert found["calls"] >= found["functions"] >= found["files"] >= 1
    assert trace(0.5, lambda: own(0.12345)) == {"functions": 0, "files": 0, "calls": 0, "forms": 0}
