"""Public functions x systems x laws x references x imperfections: no foreign error comes out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import matplotlib.pyplot as plt
import pytest

import concur as cc
from tests.grid._calls import OF_LAWS, OF_SYSTEMS, REFERENCES
from tests.grid._systems import CASES, SHIPPED
from tests.grid._walk import Cell, cells, fault, is_slow, of_law, of_references, of_system, slices

pytestmark = pytest.mark.filterwarnings("ignore")

PLACED = {
    "Body Inertia Mechanism Motor mount Output Pose Wheel joints LagrangianSystem": "systems",
    "PassiveServo Servo laws": "laws",
    "references ReferenceSample": "references",
    "Plant Run Status certified_gains certify compare design_gains "
    "inverse_kinematics plan recheck reduce simulate singularities "
    "symmetry": "calls",
    "Constraints": "an option of laws: tests/control",
    "load load_result load_task verify": "files: tests/fuzz, tests/cli",
    "compare_laws": "tasks: tests/campaign",
    "robots": "shipped systems",
    "control errors outputs planning reduction robot show simulation": "packages",
    "__version__": "a text",
}
"""Where the grid has each public name."""


def walk(found: Iterable[Cell]) -> list[str]:
    """Faults of cells."""
    faults = []
    for name, act in found:
        if text := fault(act):
            faults.append(f"{name}: {text}")
        plt.close("all")
    return faults


def test_each_public_name_has_a_place() -> None:
    placed = " ".join(PLACED).split()
    assert sorted(placed) == sorted({*cc.__all__, "__version__"})
    called = " ".join([*OF_SYSTEMS, *OF_LAWS]).split()
    for names, place in PLACED.items():
        for name in names.split():
            assert (place == "packages") <= isinstance(getattr(cc, name), ModuleType)
            assert place != "calls" or name in called or name == "Status", name
    made = {*REFERENCES, "stack", "from_function", "Loop", "Reference", "Smoothing"}
    assert set(cc.references.__all__) <= made
    assert set(SHIPPED) == set(cc.robots.__all__)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("law", ["servo", "pd_tables", "brake"])
def test_a_robot_with_one_joint(law: str, tmp_path: Path) -> None:
    quick = [cell for cell in of_law("pendulum", law, tmp_path) if not is_slow(cell[0])]
    with slices() as rows:
        assert walk(quick) == []
    assert rows == []


@pytest.mark.extended
@pytest.mark.parametrize("name", CASES)
def test_functions_of_small_systems(name: str, tmp_path: Path) -> None:
    with slices() as rows:
        assert walk(of_system(name, tmp_path)) == []
        assert walk(of_references(name, tmp_path) if CASES[name].regular else ()) == []
    assert rows == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CASES, *SHIPPED])
def test_all_cells(name: str, tmp_path: Path) -> None:
    assert walk(cells(name, tmp_path)) == []
