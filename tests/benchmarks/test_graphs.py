"""Graphs of other libraries: the same functions as ours, and counted as the record says."""

import json
import shutil
from importlib.metadata import version

import casadi as ca
import numpy as np
import pytest

from tests.benchmarks import _graphs, _pinocchio_model
from tests.benchmarks._graphs import (
    FIXED_ARM,
    LIBRARIES,
    RECORD,
    Graphs,
    graphs_table,
    record,
    recorded,
    shared,
)
from tests.benchmarks._pinocchio_graphs import pinocchio_graph
from tests.benchmarks._quantities import CASES, QUANTITIES, case, length, ours
from tests.benchmarks._report import PAGE
from tests.oracles import assert_close

FLYER = "free-flyer, 6 joints"
NAMES = [name for name in CASES if "joints" not in name or name == FLYER]


@pytest.fixture
def few(monkeypatch):
    """Count ours of one robot only."""
    own = {FLYER: {"bias": length(case(FLYER), "bias")}, FIXED_ARM: {"bias": 1}}
    monkeypatch.setattr(_graphs, "ours", lambda: own)
    return own


def test_what_is_not_installed_is_read_from_the_record(few, monkeypatch):
    monkeypatch.setattr(_graphs, "counted", lambda name: None)
    before = RECORD.read_bytes()
    told, *_, line, arm = graphs_table(report=True).splitlines()
    assert RECORD.read_bytes() == before
    known = recorded()
    assert told.count("not here: counted on 20") == len(LIBRARIES)
    for name, (title, _) in LIBRARIES.items():
        assert f"{title} {known[name].version} with CasADi {known[name].casadi}" in told
    mine = few[FLYER]["bias"]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    theirs = [known[name].lengths[FLYER]["bias"] for name in ("pin", "adam-robotics")]
    shown = [f"{n} (**{mine / n:.2f}**)" for n in theirs]
    assert cells == [FLYER, "bias forces", str(mine), *shown, ""]
    assert f"| {known['urdf2casadi'].lengths[FIXED_ARM]['bias']} (**0.00**) |" in arm


def test_what_is_counted_is_kept_and_the_rest_too(few, monkeypatch, tmp_path):
    path = tmp_path / "lengths.json"
    shutil.copy(RECORD, path)
    new = Graphs("99.0", "3.0", "2030-01-02", {FLYER: {"bias": 10 * few[FLYER]["bias"]}})
    monkeypatch.setattr(_graphs, "counted", lambda name: new if name == "pin" else None)
    text = graphs_table(path=path)
    assert path.read_bytes() == RECORD.read_bytes()  # no report was asked for
    assert graphs_table(report=True, path=path) == text
    assert "Pinocchio 99.0 with CasADi 3.0;" in text
    assert "(**0.10**)" in text
    assert recorded(path) == {**recorded(), "pin": new}
    assert list(json.loads(path.read_text())["libraries"]) == list(LIBRARIES)


def test_record_is_what_a_report_writes(tmp_path):
    path = tmp_path / "lengths.json"
    shutil.copy(RECORD, path)
    record({}, path)
    assert path.read_bytes() == RECORD.read_bytes()


def test_page_shows_the_record():
    section = PAGE.read_text(encoding="utf-8").partition("\n## Graphs\n")[2].partition("\n## ")[0]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in section.splitlines()]
    shown = {(r[0], r[1]): r[3:] for r in rows if len(r) == 3 + len(LIBRARIES)}
    for place, name in enumerate(LIBRARIES):
        for robot, lengths in recorded()[name].lengths.items():
            for quantity, theirs in lengths.items():
                assert shown[robot, QUANTITIES[quantity]][place].split(" (")[0] == str(theirs)


def test_graphs_are_counted_with_common_parts_once():
    x = ca.SX.sym("x", 2)
    twice = ca.Function("f", [x], [ca.vertcat(ca.sin(x[0]) + x[1], ca.sin(x[0]) + x[1])])
    # Two inputs, a sine, a sum, two outputs.
    assert shared(twice).n_instructions() == 6
    y = ca.MX.sym("y", 2)
    assert shared(ca.Function("g", [y], [twice(y)])).n_instructions() == 6


@pytest.mark.slow  # compiles Pinocchio's headers, for minutes where no other run has
@pytest.mark.parametrize("name", NAMES)
def test_pinocchios_graphs_compute_what_ours_do(name, compiler):
    robot = case(name).robot
    was = recorded()["pin"]
    same = (was.version, was.casadi) == (version("pin"), ca.__version__)
    for quantity in QUANTITIES:
        graph = shared(pinocchio_graph(case(name), quantity))
        q, *rest = case(name).calls(quantity)[0]
        if quantity == "forward_dynamics":
            forces = np.zeros(robot.nv)
            forces[list(robot.actuated_freedoms)] = rest[1]
            rest = [rest[0], forces]
        found = graph.call([_pinocchio_model.configuration(robot, q), *rest])
        expected = ours(case(name), quantity)(*case(name).calls(quantity)[0])
        for one, other in zip(
            found, expected if isinstance(expected, tuple) else [expected], strict=True
        ):
            one = np.array(one).reshape(other.shape, order="F")
            # Angular momenta are about the centre of mass there.
            rows = slice(3) if quantity == "momentum_matrix" else slice(None)
            assert_close(one[rows], other[rows], 1e-10)
        count = graph.n_instructions()
        assert count == pytest.approx(was.lengths[name][quantity], rel=0.0 if same else 0.3)


def test_adam_and_urdf2casadi_are_not_counted_where_they_are_not(monkeypatch):
    monkeypatch.setattr(_graphs, "installed", list)
    assert _graphs.counted("adam-robotics") is None
    assert _graphs.counted("urdf2casadi") is None
